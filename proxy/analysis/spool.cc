// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// Blocks are freed in pieces of this size.
constexpr std::uint64_t kPieceBytes = 8ULL << 20;

}  // namespace

Result<std::unique_ptr<Spool>> Spool::open(const std::string& dir, std::uint8_t replica,
                                           const std::string& about, std::uint64_t limit) {
  auto history = proxy::HistoryRecorder::open(dir, replica);
  if (!history.ok()) return history.error();
  std::string path = fmt::format("{}/replica-{}.history", dir, replica);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open the spool");
  history.value()->about(about);
  history.value()->flush();
  return std::unique_ptr<Spool>(new Spool(std::move(history).value(), fd, std::move(path), limit));
}

Spool::~Spool() { ::close(fd_); }

void Spool::committed(const consensus::EntryView& entry) {
  if (ended_) return;
  const std::uint64_t bytes = proxy::history_entry_bytes(entry);
  if (kept() + bytes > limit_) {
    return end(
        fmt::format("{} holds {} MB of entries that the server has not run, which is the limit "
                    "(--analysis-spool-mb)",
                    path_, limit_ >> 20));
  }
  history_->committed(entry);
  if (!history_->recording()) return end(history_->take_message());
  last_ = value(entry.at.index);
  written_ += bytes;
  CRANE_ASSERT(kept() <= limit_);  // SPOOL-1
}

// Frees blocks; the file keeps its length.
void Spool::read_up_to(std::uint64_t position) {
  const std::uint64_t whole = position / kPieceBytes * kPieceBytes;
  if (whole <= released_ || whole > written_) return;
  // Not the header, which records whether the history has ended.
  constexpr std::uint64_t kHead = 4096;
  const int done = ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(kHead), static_cast<off_t>(whole - kHead));
  if (done == 0) released_ = whole;
}

void Spool::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  history_->finish();
  message_ = fmt::format("entries after {} are not analysed: {}", last_, why);
}

std::string Spool::take_message() { return std::exchange(message_, {}); }

}  // namespace crane::node
