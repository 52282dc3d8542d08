// SPDX-License-Identifier: Apache-2.0
#include "consensus/store/tail_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include "consensus/store/recovery.h"
#include "consensus/store/tail_format.h"
#include "dmt/base/crc.h"

namespace crane::consensus::store {
namespace {

// One piece delays the store's owner by a read of this size and a write into the page cache.
constexpr std::size_t kPieceBytes = 256U << 10;

TailPlace place_of(const core::Cursor& c) {
  return {c.pos, value(c.last.view), value(c.last.index)};
}

Error file_error(const char* what) {
  if (errno == ENOSPC || errno == EDQUOT) return {Code::kFull, errno, what};
  return system_error(what);
}

}  // namespace

TailWriter::~TailWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Outcome TailWriter::step(Store& store) {
  if (done_) return Done{};
  if (fd_ < 0) return begin(store);
  if (at_.last.index < to_) return piece(store);
  return finish(store.state().identity.log_id);
}

// Checks that the store holds the log after the very entry of the checkpoint.
Outcome TailWriter::begin(Store& store) {
  const State& s = store.state();
  if (begin_.last.index < s.first.last.index) {
    return Error{Code::kGone, 0, "the store begins after the checkpoint"};
  }
  const auto held = cursor_at(store, begin_.last.index);
  if (!held) return held.error();
  if (held.value() != begin_)
    return Error{Code::kBadArgument, 0, "the checkpoint belongs to another log"};
  fd_ = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0) return file_error("open the file for the log");
  return Done{};
}

Outcome TailWriter::piece(Store& store) {
  buffer_.clear();
  const auto behind = store.read(next(at_.last.index), kPieceBytes, buffer_);
  if (!behind) {
    if (behind.error().code != Code::kNotFound) return behind.error();
    return Error{Code::kGone, 0, "entries left the store meanwhile"};
  }
  std::size_t used = 0;
  const std::uint64_t begin = at_.pos;
  core::EntryHeader h;
  while (at_.last.index < to_ && used < buffer_.size()) {
    const auto rest = std::span<const std::byte>(buffer_).subspan(used);
    if (!core::valid_entry(at_, store.state().identity.log_id, rest, h)) {
      return Error{Code::kDamaged, 0, "an entry of the store does not follow the previous one"};
    }
    at_ = core::LogRing::after(h);
    used += core::entry_bytes(h.length);
  }
  digest_ = crc64(buffer_.data(), used, digest_);
  return write(buffer_.data(), used, sizeof(TailHead) + begin - begin_.pos);
}

// The file becomes a valid tail only when the head is written.
Outcome TailWriter::finish(std::uint64_t log_id) {
  TailHead head;
  head.magic = kTailMagic;
  head.log_id = log_id;
  head.begin = place_of(begin_);
  head.end = place_of(at_);
  head.entries = value(at_.last.index) - value(begin_.last.index);
  head.digest = digest_;
  head.crc = crc_of(head);
  if (const Outcome written = write(&head, sizeof head, 0); !written) return written;
  done_ = true;
  return Done{};
}

Outcome TailWriter::write(const void* bytes, std::size_t size, std::uint64_t offset) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::pwrite(fd_, from, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return file_error("write the log to a file");
    from += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return Done{};
}

}  // namespace crane::consensus::store
