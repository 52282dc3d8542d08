// SPDX-License-Identifier: Apache-2.0
#include "consensus/log_tail.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "consensus/core/log.h"
#include "consensus/core/step.h"
#include "consensus/store/tail_format.h"

namespace crane::consensus {
namespace {

constexpr std::size_t kPieceBytes = 256U << 10;

LogPlace place_of(const store::TailPlace& p) { return {{View{p.view}, Index{p.index}}, p.pos}; }
core::Cursor cursor_of(const LogPlace& p) { return {p.pos, p.at}; }

Error damaged(std::string how) {
  return failure(Code::kDamaged, "read the log of a backup", std::move(how));
}

std::string text_of(Index index) { return std::to_string(value(index)); }

struct File {
  int fd = -1;
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

}  // namespace

Result<TailSource> tail_of_file(const std::string& path) {
  const auto file = std::make_shared<File>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file->fd < 0) return system_error("open the log of a backup");
  return TailSource([file](std::span<std::byte> to) -> Result<std::size_t> {
    std::size_t got = 0;
    while (got < to.size()) {
      const ssize_t n = ::read(file->fd, to.data() + got, to.size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read the log of a backup");
      if (n == 0) break;
      got += static_cast<std::size_t>(n);
    }
    return got;
  });
}

Result<LogTailReader> LogTailReader::open(TailSource source) {
  LogTailReader reader(std::move(source));
  store::TailHead head;
  const auto got = reader.source_(std::as_writable_bytes(std::span(&head, 1)));
  if (!got) return got.error();
  if (got.value() != sizeof head || head.magic != store::kTailMagic) {
    return damaged("the file has no head");
  }
  if (head.version != store::kTailVersion) {
    return failure(Code::kWrongVersion, "read the log of a backup",
                   "it has version " + std::to_string(head.version) + " of its format, not " +
                       std::to_string(store::kTailVersion));
  }
  const bool grows = head.end.index >= head.begin.index && head.end.pos >= head.begin.pos &&
                     head.end.view >= head.begin.view;
  if (head.crc != store::crc_of(head) || !grows ||
      head.entries != head.end.index - head.begin.index) {
    return damaged("the head is damaged");
  }
  reader.tail_ = {head.log_id, place_of(head.begin), place_of(head.end), head.entries};
  reader.head_digest_ = head.digest;
  reader.at_ = reader.tail_.begin;
  return reader;
}

// Reads more; false at the end.
Result<bool> LogTailReader::fill() {
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kPieceBytes);
  const auto got = source_(std::span(buffer_).subspan(before));
  buffer_.resize(before + (got ? got.value() : 0));
  if (!got) return got.error();
  return got.value() > 0;
}

// Takes the entries that are complete in the buffer.
Outcome LogTailReader::take_entries() {
  const std::uint32_t payload_max = core::Config{}.payload_bytes_max;
  while (at_.at.index < tail_.end.at.index) {
    const auto rest = std::span<const std::byte>(buffer_).subspan(used_);
    if (rest.size() < core::kHeaderBytes) return Done{};
    core::EntryHeader h;
    std::memcpy(static_cast<void*>(&h), rest.data(), sizeof h);
    const std::string name = "entry " + text_of(crane::next(at_.at.index));
    if (h.length > payload_max) return damaged(name + " is damaged");
    const std::size_t size = core::entry_bytes(h.length);
    if (rest.size() < size) return Done{};
    if (!core::valid_entry(cursor_of(at_), tail_.log_id, rest.first(size), h)) {
      return damaged(name + " is damaged, or does not follow the previous one");
    }
    digest_ = crc64(rest.data(), size, digest_);
    const core::Cursor behind = core::LogRing::after(h);
    at_ = {behind.last, behind.pos};
    used_ += size;
  }
  return Done{};
}

Result<std::span<const std::byte>> LogTailReader::next() {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ = 0;
  for (;;) {
    if (const Outcome taken = take_entries(); !taken) return taken.error();
    if (used_ > 0) return std::span<const std::byte>(buffer_).first(used_);
    if (at_.at.index == tail_.end.at.index) return finish();
    const auto more = fill();
    if (!more) return more.error();
    if (!more.value()) {
      return damaged("the file ends after entry " + text_of(at_.at.index) + " of " +
                     text_of(tail_.end.at.index));
    }
  }
}

Result<std::span<const std::byte>> LogTailReader::finish() {
  if (at_ != tail_.end) return damaged("the last entry is not the one that the head names");
  if (digest_ != head_digest_) return damaged("the digest differs from the head's");
  const auto more = buffer_.empty() ? fill() : Result<bool>(true);
  if (!more) return more.error();
  if (more.value()) return damaged("data follows the last entry");
  return std::span<const std::byte>{};
}

Result<LogTail> check_log_tail(const std::string& path) {
  auto source = tail_of_file(path);
  if (!source) return source.error();
  auto reader = LogTailReader::open(std::move(source).value());
  if (!reader) return reader.error();
  for (;;) {
    const auto piece = reader.value().next();
    if (!piece) return piece.error();
    if (piece.value().empty()) return reader.value().tail();
  }
}

}  // namespace crane::consensus
