// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/output_tail.h"

#include <algorithm>

#include "dmt/base/assert.h"

namespace crane::proxy {
namespace {
// Capacity that an empty tail keeps for the next output.
constexpr std::size_t kKeptBytes = 4096;
}  // namespace

void OutputTail::append(std::uint64_t at, std::span<const std::byte> bytes) {
  CRANE_ASSERT(at <= end_);  // TAIL-1
  const std::uint64_t known = std::max(end_, from_);
  const std::uint64_t end = at + bytes.size();
  end_ = std::max(end_, end);
  if (end <= known) return;
  const auto news = bytes.last(static_cast<std::size_t>(end - known));
  bytes_.insert(bytes_.end(), news.begin(), news.end());
}

void OutputTail::put(std::uint64_t total) noexcept {
  if (total <= from_) return;
  const std::uint64_t gone = std::min<std::uint64_t>(total - from_, size());
  // Beyond end() while this replica's server is behind the one that wrote the output.
  from_ = total;
  dropped_ += static_cast<std::size_t>(gone);
  if (dropped_ == bytes_.size()) {
    dropped_ = 0;
    bytes_.clear();
    if (bytes_.capacity() > kKeptBytes) bytes_ = {};
  } else if (dropped_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(dropped_));
    dropped_ = 0;
  }
}

std::size_t OutputTail::before_urgent() const noexcept {
  return urgent_ > from_ ? std::min<std::size_t>(urgent_ - from_ - 1, size()) : size();
}

void OutputTail::take_back(std::span<const std::byte> bytes) {
  CRANE_ASSERT(bytes.size() <= from_);
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(dropped_));
  dropped_ = 0;
  bytes_.insert(bytes_.begin(), bytes.begin(), bytes.end());
  from_ -= bytes.size();
}

}  // namespace crane::proxy
