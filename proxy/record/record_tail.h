// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a file of records (record_file.h) from its beginning while it is still being written.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/record/record_file.h"

namespace crane::proxy {

class RecordTail {
 public:
  struct Record {
    std::uint8_t kind = 0;
    std::uint64_t number = 0;
    std::span<const std::byte> body;  // valid until the next call
  };

  // Errors: those of RecordFile::open().
  static Result<RecordTail> open(const RecordFormat& format, const std::string& path);
  RecordTail(RecordTail&& other) noexcept;
  RecordTail& operator=(RecordTail&&) = delete;
  ~RecordTail();

  // nullopt: there is no more now, or the file has ended.  kDamaged: a record is broken.
  Result<std::optional<Record>> next();
  // The writer has ended the file, and all of it was returned.
  bool ended() const noexcept { return ended_; }

  std::uint32_t replica() const noexcept { return replica_; }
  // The position after the returned records.
  std::uint64_t position() const noexcept { return buffer_at_ + used_; }

 private:
  explicit RecordTail(int fd) : fd_(fd) {}
  Result<bool> fill(std::size_t size);
  bool has_end();

  int fd_;
  std::uint8_t kinds_ = 0;
  std::uint32_t replica_ = 0;
  std::vector<std::byte> buffer_;  // part of the file, from buffer_at_ on
  std::uint64_t buffer_at_ = 0;
  std::size_t used_ = 0;  // bytes of buffer_ that were returned
  bool ended_ = false;
};

}  // namespace crane::proxy
