// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that is written through zstd, with zstd's checksum of the content.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/descriptor.h"

struct ZSTD_CCtx_s;

namespace crane::checkpoint {

// After an error every later call returns that error.
class CompressedFile {
 public:
  // `path` is for messages and create(); `level` is zstd's.
  CompressedFile(std::string path, int level);
  ~CompressedFile();
  CompressedFile(const CompressedFile&) = delete;
  CompressedFile& operator=(const CompressedFile&) = delete;

  // Writes to a new file; kExists.
  Outcome create();
  // Writes to an open file or a pipe.
  void write_to(Descriptor fd) { fd_ = std::move(fd); }
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
  Descriptor fd_;
  std::uint64_t bytes_ = 0, unpacked_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace crane::checkpoint
