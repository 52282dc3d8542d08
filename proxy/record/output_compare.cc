// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/output_compare.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "dmt/base/assert.h"

namespace crane::proxy {
namespace {

using Connection = Recording::Connection;

// The offset of the first different byte in what both have; if there is none, their common length.
std::uint64_t first_difference(const Connection& a, const Connection& b) {
  std::uint64_t offset = 0;
  std::size_t i = 0, j = 0, in_a = 0, in_b = 0;
  while (i < a.pieces.size() && j < b.pieces.size()) {
    const auto left = a.pieces[i].subspan(in_a), right = b.pieces[j].subspan(in_b);
    const std::size_t n = std::min(left.size(), right.size());
    if (n > 0 && std::memcmp(left.data(), right.data(), n) != 0) {
      const auto at =
          std::mismatch(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n), right.begin());
      return offset + static_cast<std::uint64_t>(at.first - left.begin());
    }
    offset += n;
    in_a += n;
    in_b += n;
    if (in_a == a.pieces[i].size()) ++i, in_a = 0;
    if (in_b == b.pieces[j].size()) ++j, in_b = 0;
  }
  return offset;
}

std::string opening(const Connection& c) {
  return c.connected ? "port " + std::to_string(c.port) + " from " + c.peer : "no CONNECT";
}

std::string closing(const Connection& c) { return c.closed ? c.how : "still open"; }

class Pair {
 public:
  Pair(const std::vector<Recording>& all, std::size_t left, std::size_t right,
       const CompareOptions& options)
      : options_(options),
        a_(all[left]),
        b_(all[right]),
        a_short_(options.prefix && a_.ends_early()),
        b_short_(options.prefix && b_.ends_early()) {
    found_.left = left;
    found_.right = right;
  }

  // `cut` is set when one side ends early and therefore has less.
  std::optional<Difference> look(std::uint64_t conn, bool& cut) {
    found_.conn = conn;
    const auto a = a_.connections().find(conn), b = b_.connections().find(conn);
    const bool in_a = a != a_.connections().end(), in_b = b != b_.connections().end();
    if (!in_a && !in_b) return std::nullopt;
    if (!in_a || !in_b) {
      if (in_a ? b_short_ : a_short_) return cut = true, std::nullopt;
      return make_difference(DifferenceKind::kMissing, in_a ? "recorded" : "not recorded",
                             in_b ? "recorded" : "not recorded");
    }
    return look_inside(a->second, b->second, cut);
  }

 private:
  std::optional<Difference> look_inside(const Connection& a, const Connection& b, bool& cut) {
    if (opening(a) != opening(b))
      return make_difference(DifferenceKind::kPeer, opening(a), opening(b));
    const std::uint64_t offset = first_difference(a, b);
    if (offset < std::min(a.size, b.size)) return around(DifferenceKind::kBytes, offset, a, b);
    if (a.size != b.size) {
      // The end of a recording can only shorten output that had not ended.
      const bool excused = a.size < b.size ? a_short_ && !a.closed : b_short_ && !b.closed;
      if (!excused) return around(DifferenceKind::kLength, offset, a, b);
      return cut = true, std::nullopt;
    }
    if (closing(a) != closing(b)) {
      if ((a_short_ && !a.closed) || (b_short_ && !b.closed)) return cut = true, std::nullopt;
      return make_difference(DifferenceKind::kClosing, closing(a), closing(b));
    }
    return std::nullopt;
  }

  Difference make_difference(DifferenceKind kind, std::string left, std::string right) {
    Difference d = found_;
    d.kind = kind;
    d.left_text = std::move(left);
    d.right_text = std::move(right);
    return d;
  }

  Difference around(DifferenceKind kind, std::uint64_t offset, const Connection& a,
                    const Connection& b) {
    Difference d = found_;
    d.kind = kind;
    d.offset = offset;
    const std::uint64_t before = std::min<std::uint64_t>(offset, options_.context_bytes);
    d.context_offset = offset - before;
    d.left_bytes = bytes_at(a, d.context_offset, before + options_.context_bytes);
    d.right_bytes = bytes_at(b, d.context_offset, before + options_.context_bytes);
    return d;
  }

  const CompareOptions& options_;
  const Recording& a_;
  const Recording& b_;
  const bool a_short_, b_short_;
  Difference found_;
};

void report_early_ends(const std::vector<Recording>& recordings, Comparison& result) {
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const Recording& r = recordings[i];
    if (!r.ends_early()) continue;
    Difference d;
    d.kind = DifferenceKind::kEndsEarly;
    d.left = i == 0 ? 1 : 0;
    d.right = i;
    d.left_text = recordings[d.left].ends_early() ? "ends early too" : "whole";
    d.right_text = r.end() == RecordingEnd::kStopped
                       ? std::string("recording stopped: ") + std::strerror(r.stop_error())
                   : r.torn() ? "ends early (the last record is torn)"
                              : "ends early (its replica was killed, or still runs)";
    result.differences.push_back(std::move(d));
  }
}

}  // namespace

std::vector<std::byte> bytes_at(const Connection& connection, std::uint64_t offset,
                                std::size_t count) {
  std::vector<std::byte> bytes;
  for (auto piece : connection.pieces) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    piece = piece.subspan(offset);
    offset = 0;
    piece = piece.first(std::min(piece.size(), count - bytes.size()));
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    if (bytes.size() == count) break;
  }
  return bytes;
}

Comparison compare(const std::vector<Recording>& recordings, const CompareOptions& options) {
  CRANE_ASSERT(recordings.size() >= 2);
  Comparison result;
  result.recordings = recordings.size();
  std::set<std::uint64_t> all;
  // All recordings are compared with the most informative one, the first whole one.
  std::size_t base = recordings.size();
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    if (base == recordings.size() && !recordings[i].ends_early()) base = i;
    result.bytes.push_back(recordings[i].bytes());
    for (const auto& [conn, connection] : recordings[i].connections()) all.insert(conn);
  }
  // No recording is complete: every pair must be compared, because each may contain what the others
  // lost.
  const bool every_pair = base == recordings.size();
  if (!options.prefix) report_early_ends(recordings, result);
  result.connections = all.size();
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    for (std::size_t j = i + 1; every_pair && j < recordings.size(); ++j) {
      pairs.emplace_back(recordings, i, j, options);
    }
    if (!every_pair && i != base) {
      pairs.emplace_back(recordings, std::min(base, i), std::max(base, i), options);
    }
  }
  for (const auto conn : all) {
    bool cut = false;
    std::optional<Difference> found;
    for (auto& pair : pairs) {
      if (!found) found = pair.look(conn, cut);
    }
    if (found) {
      ++result.different;
      if (result.differences.size() < options.differences_max) {
        result.differences.push_back(std::move(*found));
      }
    } else if (cut) {
      ++result.shorter;
    }
  }
  return result;
}

const char* name(DifferenceKind kind) noexcept {
  switch (kind) {
    case DifferenceKind::kMissing:
      return "missing";
    case DifferenceKind::kPeer:
      return "peer";
    case DifferenceKind::kBytes:
      return "bytes";
    case DifferenceKind::kLength:
      return "length";
    case DifferenceKind::kClosing:
      return "closing";
    case DifferenceKind::kEndsEarly:
      return "ends-early";
  }
  return "?";
}

}  // namespace crane::proxy
