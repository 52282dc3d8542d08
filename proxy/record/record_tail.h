// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file of records (record_file.h) that is still being written, read from its front: what is there
// is handed out, and more when it comes.
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

  // Errors as RecordFile::open().
  static Result<RecordTail> open(const RecordFormat& format, const std::string& path);
  RecordTail(RecordTail&& other) noexcept;
  RecordTail& operator=(RecordTail&&) = delete;
  ~RecordTail();

  // nullopt: there is no more for now, or for good.  kDamaged: a record is broken.
  Result<std::optional<Record>> next();
  // Its writer has ended it, and all of it was handed out.
  bool ended() const noexcept { return ended_; }

  std::uint32_t replica() const noexcept { return replica_; }
  // Behind what was handed out.
  std::uint64_t position() const noexcept { return buffer_at_ + used_; }

 private:
  explicit RecordTail(int fd) : fd_(fd) {}
  Result<bool> fill(std::size_t size);
  bool has_end();

  int fd_;
  std::uint8_t kinds_ = 0;
  std::uint32_t replica_ = 0;
  std::vector<std::byte> buffer_;  // of the file, from buffer_at_ on
  std::uint64_t buffer_at_ = 0;
  std::size_t used_ = 0;  // of buffer_, handed out
  bool ended_ = false;
};

}  // namespace crane::proxy
