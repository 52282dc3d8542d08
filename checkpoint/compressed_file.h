// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that is one zstd frame, with zstd's checksum of the content: written, and read in order.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/descriptor.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
struct ZSTD_outBuffer_s;

namespace crane::checkpoint {

// After an error every later call returns that error.
class CompressedFile {
 public:
  // Writes to `fd`, an open file or a pipe; `path` is for messages, `level` is zstd's.
  CompressedFile(Descriptor fd, std::string path, int level);
  ~CompressedFile();
  CompressedFile(const CompressedFile&) = delete;
  CompressedFile& operator=(const CompressedFile&) = delete;

  Outcome put(const void* data, std::size_t size);
  // Ends the content: all is written, but not yet synced.
  Outcome end();
  Outcome sync();

  int fd() const noexcept { return fd_.get(); }
  std::uint64_t bytes() const noexcept { return bytes_; }        // of the file
  std::uint64_t unpacked() const noexcept { return unpacked_; }  // of the content
  std::uint32_t crc() const noexcept { return crc_; }            // CRC32C of the file

 private:
  Outcome compress(const void* data, std::size_t size, bool last);
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };

  const std::string path_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::vector<char> out_;
  const Descriptor fd_;
  std::uint64_t bytes_ = 0, unpacked_ = 0;
  std::uint32_t crc_ = 0;
};

// After an error no other call is allowed.
class DecompressedFile {
 public:
  // Makes the error of a damaged file from the reason.
  using Damaged = Error (*)(const std::string& path, const std::string& how);
  DecompressedFile(Descriptor fd, std::string path, Damaged damaged);
  ~DecompressedFile();
  DecompressedFile(const DecompressedFile&) = delete;
  DecompressedFile& operator=(const DecompressedFile&) = delete;

  // Reads exactly `size` bytes of the content.
  Outcome get(void* to, std::size_t size);
  // Call it after the last byte of the content: nothing may follow in the frame, nor after it.
  // `surplus`: the reason if more content follows.
  Outcome finish(const char* surplus = "bytes follow its end");

  std::uint32_t crc() const noexcept { return crc_; }  // CRC32C of the file, after finish()
  // Whether decompression failed although the file begins as a zstd frame does: it was one before.
  bool is_cut_or_changed() const noexcept { return begins_as_frame_ && failed_; }

 private:
  Outcome step(ZSTD_outBuffer_s& out);
  std::string place() const;  // the end of the bytes that were read, for messages
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };

  const std::string path_;
  const Damaged damaged_;
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::vector<char> in_;
  std::size_t in_size_ = 0, in_used_ = 0;  // bytes in `in_`, and how many of them are used
  const Descriptor fd_;
  std::uint32_t crc_ = 0;
  std::uint64_t read_ = 0;  // bytes of the file
  bool ended_ = false;      // the frame
  bool is_first_ = true, begins_as_frame_ = false, failed_ = false;
};

}  // namespace crane::checkpoint
