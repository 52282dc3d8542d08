// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/record_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "dmt/base/codec.h"
#include "dmt/base/crc.h"

namespace crane::proxy {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;

}  // namespace

Result<RecordTail> RecordTail::open(const RecordFormat& format, const std::string& path) {
  // RecordFile::open() checks the header.
  auto file = RecordFile::open(format, path);
  if (!file.ok()) return file.error();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open");
  RecordTail tail(fd);
  tail.kinds_ = format.kinds;
  tail.replica_ = file.value().replica();
  tail.buffer_at_ = kRecordingHeaderBytes;
  return tail;
}

RecordTail::RecordTail(RecordTail&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      kinds_(other.kinds_),
      replica_(other.replica_),
      buffer_(std::move(other.buffer_)),
      buffer_at_(other.buffer_at_),
      used_(other.used_),
      ended_(other.ended_) {}

RecordTail::~RecordTail() {
  if (fd_ >= 0) ::close(fd_);
}

// Fills the buffer with at least `size` bytes from position() on; false: the file does not have
// them.
Result<bool> RecordTail::fill(std::size_t size) {
  while (buffer_.size() - used_ < size) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    buffer_at_ += std::exchange(used_, 0);
    const std::size_t had = buffer_.size();
    buffer_.resize(had + std::max(kReadBytes, size));
    const ssize_t got = ::pread(fd_, buffer_.data() + had, buffer_.size() - had,
                                static_cast<off_t>(buffer_at_ + had));
    buffer_.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read a recording");
    if (got == 0) return false;
  }
  return true;
}

bool RecordTail::has_end() {
  std::uint32_t end = 0;
  return ::pread(fd_, &end, sizeof end, kRecordingEndOffset) == sizeof end &&
         end != static_cast<std::uint32_t>(RecordingEnd::kEndsEarly);
}

Result<std::optional<RecordTail::Record>> RecordTail::next() {
  const bool last = has_end();  // read first: nothing is written after the end mark
  const auto nothing = [&]() -> Result<std::optional<Record>> {
    ended_ = last;
    return std::optional<Record>{};
  };
  auto there = fill(kRecordHeadBytes);
  if (!there.ok()) return there.error();
  if (!there.value()) return nothing();
  const std::span<const std::byte> bytes{buffer_};
  Reader head{bytes.subspan(used_)};
  const auto crc = head.get<std::uint32_t>();
  const auto body_bytes = head.get<std::uint32_t>();
  const auto kind = head.get<std::uint64_t>();
  const auto number = head.get<std::uint64_t>();
  if (body_bytes > RecordWriter::kBodyMax || kind < 1 || kind > kinds_) {
    return Error{Code::kDamaged, 0, "a record is damaged"};
  }
  if (there = fill(kRecordHeadBytes + body_bytes); !there.ok()) return there.error();
  if (!there.value()) return nothing();
  const std::byte* record = buffer_.data() + used_;
  if (crc32c(record + 4, kRecordHeadBytes - 4 + body_bytes) != crc) {
    return Error{Code::kDamaged, 0, "a record is damaged"};
  }
  used_ += kRecordHeadBytes + body_bytes;
  return std::optional<Record>{
      Record{static_cast<std::uint8_t>(kind), number, {record + kRecordHeadBytes, body_bytes}}};
}

}  // namespace crane::proxy
