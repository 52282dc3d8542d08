// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proxy/clients/encode.h"
#include "proxy/clients/outbound.h"

namespace crane::proxy {
namespace {

std::string text_of(const SchedulePoint& p) {
  return fmt::format("clock {}, hash {:016x}", p.clock, p.hash);
}

bool same(const TurnRecord& a, const TurnRecord& b) noexcept {
  return a.slot == b.slot && a.operation == b.operation && a.result == b.result;
}

// The word for the end of a connection in recordings (node::Outputs).
const char* end_of(const OutputHeader& header) noexcept {
  return header.type == OutputType::kRefused ? "refused"
         : header.argument != 0              ? "reset"
                                             : "closed";
}

}  // namespace

ReplayCheck::ReplayCheck(const Recording& outputs, const RecordedSchedule& schedule)
    : outputs_(outputs), schedule_(schedule), cursor_(schedule) {}

void ReplayCheck::begin_behind(std::uint64_t index, const std::vector<OutputStream>& open) {
  began_ = last_.index = index;
  for (SchedulePoint p{}; cursor_.peek(p) && p.index <= index; cursor_.advance()) last_ = p;
  for (const OutputStream& stream : open) {
    skip(stream.conn, stream.buckets * kHashBucketBytes + stream.filled);
  }
}

// Skips the output of a connection before the checkpoint.
void ReplayCheck::skip(std::uint64_t conn, std::uint64_t bytes) {
  Place& place = places_[conn];
  const auto found = outputs_.connections().find(conn);
  if (found == outputs_.connections().end()) return;
  const auto& pieces = found->second.pieces;
  for (; bytes > 0 && place.piece < pieces.size(); ++place.piece) {
    const std::size_t size = pieces[place.piece].size();
    if (bytes < size) {
      place.offset = static_cast<std::size_t>(bytes);
      place.done += bytes;
      return;
    }
    place.done += size;
    bytes -= size;
  }
}

void ReplayCheck::differs(ReplayPart part, std::uint64_t index, std::string text) {
  if (!difference_) difference_ = ReplayDifference{part, index, std::move(text), 0, 0, 0};
}

void ReplayCheck::connected(ConnId conn, const ConnectBody& body) {
  connected(conn, body.port, text(body.peer));
}

void ReplayCheck::connected(ConnId conn, std::uint16_t port, const std::string& peer) {
  const auto found = outputs_.connections().find(value(conn));
  if (found == outputs_.connections().end() || !found->second.connected) {
    if (outputs_.ends_early()) {
      beyond_ = true;
      return;
    }
    return differs(ReplayPart::kOutput, value(conn),
                   fmt::format("{}: not in the recording", name_of(conn)));
  }
  if (found->second.port == port && found->second.peer == peer) return;
  differs(ReplayPart::kOutput, value(conn),
          fmt::format("{}: the history has port {}, peer {}", outputs_.name_of(value(conn)), port,
                      peer));
}

void ReplayCheck::output(const OutputHeader& header, std::span<const std::byte> bytes) {
  switch (header.type) {
    case OutputType::kBytes:
      return written(header.conn, bytes);
    case OutputType::kConnect: {
      Destination to;
      if (read_destination(bytes, to)) {
        connected(ConnId{header.conn}, to.request.peer.port, name_of(to));
      }
      return written(header.conn, bytes);
    }
    case OutputType::kResolve:
      connected(ConnId{header.conn}, 0, kResolverPeer);
      written(header.conn, bytes);
      return closed(header.conn, "closed");
    case OutputType::kClose:
    case OutputType::kRefused:
      return closed(header.conn, end_of(header));
    case OutputType::kAdmitted:
      return admitted({header.conn, header.clock, header.argument});
    case OutputType::kTurns: {
      std::vector<TurnRecord> turns(bytes.size() / sizeof(TurnRecord));
      std::memcpy(turns.data(), bytes.data(), turns.size() * sizeof(TurnRecord));
      return compare_turns(header.conn, turns);
    }
    default:
      return;
  }
}

void ReplayCheck::admitted(const SchedulePoint& point) {
  if (difference_) return;
  SchedulePoint recorded{};
  if (!cursor_.peek(recorded)) {
    if (schedule_.file().ends_early()) {
      beyond_ = true;
    } else {
      differs(ReplayPart::kSchedule, point.index,
              fmt::format("here {}; the recording ends before it", text_of(point)));
    }
    return;
  }
  if (recorded == point) {
    cursor_.advance();
    last_ = point;
    ++points_;
    return;
  }
  if (recorded.index != point.index) {
    return differs(ReplayPart::kSchedule, std::min(point.index, recorded.index),
                   fmt::format("here entry {} was admitted, but in the recording entry {}",
                               point.index, recorded.index));
  }
  differs(ReplayPart::kSchedule, point.index,
          fmt::format("here {}; in the recording {}", text_of(point), text_of(recorded)));
  difference_->after = last_.clock;
  difference_->own = point.clock;
  difference_->recorded = recorded.clock;
}

void ReplayCheck::written(std::uint64_t conn, std::span<const std::byte> bytes) {
  if (difference_) return;
  const auto found = outputs_.connections().find(conn);
  Place& place = places_[conn];
  while (!bytes.empty()) {
    const bool is_there =
        found != outputs_.connections().end() && place.piece < found->second.pieces.size();
    if (!is_there) {
      if (outputs_.ends_early()) {
        beyond_ = true;
        return;
      }
      return differs(ReplayPart::kOutput, last_.index,
                     fmt::format("{}: its recorded output ends at byte {}, but continues here",
                                 outputs_.name_of(conn), place.done));
    }
    const auto& pieces = found->second.pieces;
    const auto there = pieces[place.piece].subspan(place.offset);
    const std::size_t size = std::min(there.size(), bytes.size());
    const auto [own, other] =
        std::mismatch(bytes.begin(), bytes.begin() + static_cast<long>(size), there.begin());
    const auto equal = static_cast<std::size_t>(own - bytes.begin());
    bytes_ += equal;
    place.done += equal;
    if (equal < size) {
      return differs(
          ReplayPart::kOutput, last_.index,
          fmt::format("{}: byte {} is {:02x} here, {:02x} in the recording", outputs_.name_of(conn),
                      place.done, static_cast<unsigned>(*own), static_cast<unsigned>(*other)));
    }
    place.offset += size;
    if (place.offset == pieces[place.piece].size()) {
      ++place.piece;
      place.offset = 0;
    }
    bytes = bytes.subspan(size);
  }
}

void ReplayCheck::closed(std::uint64_t conn, const char* how) {
  if (difference_) return;
  const auto found = outputs_.connections().find(conn);
  const bool is_there = found != outputs_.connections().end();
  if (is_there && found->second.closed && found->second.how == how) {
    const std::uint64_t done = places_[conn].done;
    if (done == found->second.size) return;
    return differs(ReplayPart::kOutput, last_.index,
                   fmt::format("{}: ends at byte {} here, at byte {} in the recording",
                               outputs_.name_of(conn), done, found->second.size));
  }
  if (outputs_.ends_early() && (!is_there || !found->second.closed)) {
    beyond_ = true;
    return;
  }
  differs(ReplayPart::kOutput, last_.index,
          fmt::format("{}: {} here, {} in the recording", outputs_.name_of(conn), how,
                      is_there && found->second.closed ? found->second.how : "still open"));
}

void ReplayCheck::digest(const Digest& own, const Digest& recorded) {
  if (difference_ || own.point.index != recorded.point.index) return;
  ++digests_;
  if (own.point == recorded.point && own.outputs == recorded.outputs) {
    equal_cut_ = own.point.index;
    return;
  }
  differs(ReplayPart::kDigest, own.point.index,
          fmt::format("here {}, outputs {:016x}; the digest in the log: {}, outputs "
                      "{:016x}",
                      text_of(own.point), own.outputs, text_of(recorded.point), recorded.outputs));
}

void ReplayCheck::at_rest(const SchedulePoint& point, bool whole) {
  if (difference_ || !whole) return;
  SchedulePoint next{};
  if (cursor_.peek(next)) {
    return differs(ReplayPart::kSchedule, next.index,
                   "it was not admitted here; the recording continues");
  }
  const auto& recorded = schedule_.at_rest();
  if (recorded && recorded->index == point.index) {
    rest_compared_ = true;
    if (*recorded != point) {
      differs(ReplayPart::kSchedule, point.index,
              fmt::format("at rest after it: here {}; in the recording {}", text_of(point),
                          text_of(*recorded)));
      difference_->after = last_.clock;
      difference_->own = point.clock;
      difference_->recorded = recorded->clock;
      return;
    }
  }
  // A recording without a rest may hold output from before its replica stopped in the middle.
  if (rest_compared_) check_all_written();
}

void ReplayCheck::check_all_written() {
  for (const auto& [conn, connection] : outputs_.connections()) {
    const auto place = places_.find(conn);
    const std::uint64_t done = place == places_.end() ? 0 : place->second.done;
    if (done == connection.size) continue;
    if (place == places_.end() && conn <= began_) continue;  // ended before the checkpoint
    return differs(ReplayPart::kOutput, last_.index,
                   fmt::format("{}: {} bytes here, {} in the recording", outputs_.name_of(conn),
                               done, connection.size));
  }
}

// A side that admitted the entry before the other side's turn has no turn to compare.
void ReplayCheck::compare_turns(std::uint64_t first, std::span<const TurnRecord> turns) {
  if (turn_ || !schedule_.traced()) return;
  const std::uint64_t after = difference_ ? difference_->after : 0;
  const std::uint64_t own = difference_ ? difference_->own : UINT64_MAX;
  const std::uint64_t theirs = difference_ ? difference_->recorded : UINT64_MAX;
  std::uint64_t number = first;
  for (const TurnRecord& turn : turns) {
    if (number > own) break;
    if (number > after) {
      const auto recorded = number <= theirs ? schedule_.turn(number) : std::nullopt;
      if (!recorded && number <= theirs) return;  // not recorded
      if (!recorded || !same(turn, *recorded)) {
        turn_ = TurnDifference{number, {turn, recorded}};
        return;
      }
    }
    ++number;
  }
  if (!difference_ || first > after + 1 || number != own + 1 || own >= theirs) return;
  turn_ = TurnDifference{number, {std::nullopt, schedule_.turn(number)}};
}

}  // namespace crane::proxy
