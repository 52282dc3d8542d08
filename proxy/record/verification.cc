// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/verification.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "dmt/base/assert.h"
#include "dmt/sequence/hash_entry.h"
#include "proxy/record/output_record.h"

namespace crane::proxy {
namespace {

// A HASH is proposed after this much work ...
constexpr std::uint64_t kWorkEntries = 4096;
constexpr std::uint64_t kWorkBytes = 8u << 20;
// ... or after this time, if there was any work, or digests must be judged ...
constexpr std::int64_t kPaceNs = 500'000'000;
// ... for which it waits at most this long.
constexpr std::int64_t kWaitNs = 2'000'000'000;

constexpr std::uint32_t kHashFormat = 3;
constexpr std::uint8_t kCut = 1, kEvidence = 2, kShortened = 4,
                       kRestarts = HashEntryHead::kRestarts;

struct Head {
  std::uint32_t format;
  std::uint8_t flags;
  std::uint8_t digests;  // replicas 0 .. digests-1: a byte each, then the Digest if the byte is 1
  std::uint8_t padding[2];
  std::uint32_t marks, points, turns, unused;
  std::uint64_t first_turn;
};
static_assert(sizeof(Head) == 32 && offsetof(Head, flags) == offsetof(HashEntryHead, flags));

// The part of a turn that the schedule hash folds.
struct SentTurn {
  std::uint64_t result;
  std::uint32_t operation;
  std::uint16_t slot, process;
};
static_assert(sizeof(SentTurn) == 16);

template <typename T>
void put(std::vector<std::byte>& out, const T* data, std::size_t count) {
  const auto bytes = std::as_bytes(std::span(data, count));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename T>
bool take(std::span<const std::byte>& in, T* data, std::size_t count) {
  if (in.size() < count * sizeof(T)) return false;
  if (count > 0) std::memcpy(static_cast<void*>(data), in.data(), count * sizeof(T));
  in = in.subspan(count * sizeof(T));
  return true;
}

bool equal(const Digest& a, const Digest& b) noexcept {
  return a.point == b.point && a.outputs == b.outputs;
}

bool equal_schedules(const Digest& a, const Digest& b) noexcept { return a.point == b.point; }
bool equal_outputs(const Digest& a, const Digest& b) noexcept { return a.outputs == b.outputs; }

using Same = bool (*)(const Digest&, const Digest&) noexcept;

// The digest that a strict majority of the voters shares, compared by `same`.
std::optional<Digest> majority_in(const Digests& digests, std::size_t voters, Same same) {
  for (const auto& d : digests) {
    if (!d) continue;
    const auto count = std::count_if(digests.begin(), digests.end(),
                                     [&](const auto& other) { return other && same(*other, *d); });
    if (2 * static_cast<std::size_t>(count) > voters) return d;  // LIVE-V3
  }
  return std::nullopt;
}

// A majority agrees in this alone: the others are the minority, and no replica is known to be
// equal.
bool accuse(Evaluation& j, const Digests& digests, std::size_t voters, Same same) {
  const auto most = majority_in(digests, voters, same);
  for (std::size_t i = 0; most && i < digests.size(); ++i) {
    if (digests[i] && !same(*digests[i], *most)) j.replicas[i] = Finding::kMinority;
  }
  return most.has_value();
}

std::string text(const OutputMark& m) {
  return name_of(ConnId{m.conn}) + ", output bytes " + std::to_string(m.bucket * kHashBucketBytes) +
         " to " + std::to_string((m.bucket + 1) * kHashBucketBytes - 1) + " or its end";
}

std::string different_output(const Evidence& own, const Evidence& theirs) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> at;
  for (const OutputMark& m : theirs.marks) at[{m.conn, m.bucket}] = m.value;
  for (const OutputMark& m : own.marks) {
    const auto found = at.find({m.conn, m.bucket});
    if (found == at.end() ? theirs.whole : found->second != m.value) return text(m);
    if (found != at.end()) at.erase(found);
  }
  if (at.empty() || !own.whole) return "";
  return text({at.begin()->first.first, at.begin()->first.second, 0});
}

std::string different_point(const Evidence& own, const Evidence& theirs) {
  std::map<std::uint64_t, SchedulePoint> at;
  for (const SchedulePoint& p : theirs.points) at[p.index] = p;
  for (const SchedulePoint& p : own.points) {
    const auto found = at.find(p.index);
    if (found == at.end() || found->second == p) continue;
    return "the schedule at log index " + std::to_string(p.index) + " (clock " +
           std::to_string(p.clock) + " here, " + std::to_string(found->second.clock) + " there)";
  }
  return "";
}

}  // namespace

Evaluation evaluate(const Digests& digests, std::size_t voters) {
  CRANE_ASSERT(voters > 0);
  Evaluation j;
  j.replicas.assign(digests.size(), Finding::kUnknown);
  const std::optional<Digest>* first = nullptr;
  bool differ = false;
  for (const auto& d : digests) {
    if (!d) continue;
    j.index = d->point.index;
    if (first == nullptr) first = &d;
    differ = differ || !equal(*d, **first);
  }
  const auto most = majority_in(digests, voters, equal);
  j.majority = most.has_value();
  j.verdict = differ ? Verdict::kDifferent : most ? Verdict::kEqual : Verdict::kUnknown;  // LIVE-V2
  for (std::size_t i = 0; most && i < digests.size(); ++i) {
    if (!digests[i]) continue;
    j.replicas[i] = equal(*digests[i], *most) ? Finding::kAgrees : Finding::kMinority;
  }
  if (most || !differ) return j;
  if (accuse(j, digests, voters, equal_schedules)) {
    j.settled = "schedule";
  } else if (accuse(j, digests, voters, equal_outputs)) {
    j.settled = "outputs";
  }
  return j;
}

std::optional<Digest> most_common(const Digests& digests) {
  const auto sent = static_cast<std::size_t>(
      std::count_if(digests.begin(), digests.end(), [](const auto& d) { return d.has_value(); }));
  const Evaluation j = evaluate(digests, std::max<std::size_t>(sent, 1));
  for (std::size_t i = 0; i < j.replicas.size(); ++i) {
    if (j.replicas[i] == Finding::kAgrees) return digests[i];
  }
  return std::nullopt;
}

bool same_digest(const Digests& digests, std::size_t a, std::size_t b) noexcept {
  if (a >= digests.size() || b >= digests.size()) return false;
  return digests[a] && digests[b] && equal(*digests[a], *digests[b]);
}

std::string difference(const Evidence& own, const Evidence& theirs) {
  const std::string output = different_output(own, theirs);
  const std::string point = different_point(own, theirs);
  return output.empty() || point.empty() ? output + point : output + "; " + point;
}

std::vector<std::byte> encode(const HashBody& body) {
  CRANE_ASSERT(body.digests.size() < 256);
  Head head{};
  head.format = kHashFormat;
  head.flags = static_cast<std::uint8_t>((body.cut ? kCut : 0) | (body.restarts ? kRestarts : 0));
  head.digests = static_cast<std::uint8_t>(body.digests.size());
  std::vector<std::byte> digests;
  for (const auto& d : body.digests) {
    const std::uint8_t there = d ? 1 : 0;
    put(digests, &there, 1);
    if (d) put(digests, &*d, 1);
  }
  if (body.evidence) {
    const Evidence& e = *body.evidence;
    std::size_t room = kHashBytesMax - sizeof head - digests.size() - 2 * sizeof(SchedulePoint);
    const std::size_t quarter = room / 4;
    const auto fit = [&](std::size_t count, std::size_t size, std::size_t most) {
      count = std::min(count, most / size);
      room -= count * size;
      return static_cast<std::uint32_t>(count);
    };
    head.flags |= kEvidence;
    head.marks = fit(e.marks.size(), sizeof(OutputMark), quarter);
    head.points = fit(e.points.size(), sizeof(SchedulePoint), quarter);
    head.turns = fit(e.turns.size(), sizeof(SentTurn), room);
    head.first_turn = e.first_turn + e.turns.size() - head.turns;
    if (head.marks != e.marks.size() || !e.whole) head.flags |= kShortened;
  }
  std::vector<std::byte> out;
  put(out, &head, 1);
  put(out, digests.data(), digests.size());
  if (body.evidence) {
    put(out, &body.evidence->base, 1);
    put(out, &body.evidence->cut, 1);
    put(out, body.evidence->marks.data(), head.marks);
    put(out, body.evidence->points.data(), head.points);
    for (const TurnRecord& t : std::span(body.evidence->turns).last(head.turns)) {
      const SentTurn sent{t.result, t.operation, t.slot, t.process};
      put(out, &sent, 1);
    }
  }
  CRANE_ASSERT(out.size() <= kHashBytesMax);
  return out;
}

namespace {
bool take_evidence(std::span<const std::byte> in, const Head& head, Evidence& e) {
  const std::uint64_t need = 2 * sizeof(SchedulePoint) +
                             std::uint64_t{head.marks} * sizeof(OutputMark) +
                             std::uint64_t{head.points} * sizeof(SchedulePoint) +
                             std::uint64_t{head.turns} * sizeof(SentTurn);
  if (need != in.size()) return false;
  e.whole = (head.flags & kShortened) == 0;
  e.marks.resize(head.marks);
  e.points.resize(head.points);
  e.first_turn = head.first_turn;
  if (!take(in, &e.base, 1) || !take(in, &e.cut, 1) || !take(in, e.marks.data(), head.marks) ||
      !take(in, e.points.data(), head.points)) {
    return false;
  }
  for (SentTurn sent{}; take(in, &sent, 1);) {
    e.turns.push_back({sent.result, 0, 0, sent.operation, sent.slot, sent.process});
  }
  return in.empty();
}
}  // namespace

bool decode(std::span<const std::byte> in, HashBody& body) {
  Head head{};
  if (!take(in, &head, 1) || head.format != kHashFormat) return false;
  body = {};
  body.cut = (head.flags & kCut) != 0;
  body.restarts = (head.flags & kRestarts) != 0;
  body.digests.resize(head.digests);
  for (auto& d : body.digests) {
    std::uint8_t there = 0;
    if (!take(in, &there, 1)) return false;
    if (there != 0 && !take(in, &d.emplace(), 1)) return false;
  }
  if ((head.flags & kEvidence) == 0) return in.empty();
  return take_evidence(in, head, body.evidence.emplace());
}

// --- when ----------------------------------------------------------------------------------------

bool VerifyPolicy::new_work(const Work& done) const noexcept {
  return done.inputs != at_.inputs || done.bytes != at_.bytes ||
         done.entries - at_.entries >= kWorkEntries;
}

bool VerifyPolicy::cuts(const Work& done) const noexcept { return new_work(done); }

bool VerifyPolicy::due(std::int64_t now_ns, const Work& done, bool all_there) const noexcept {
  const std::int64_t since = now_ns - at_ns_;
  if (open_ && !all_there) return since >= kWaitNs;
  if (since >= kPaceNs) return open_ || new_work(done);
  return done.entries - at_.entries >= kWorkEntries || done.bytes - at_.bytes >= kWorkBytes;
}

std::int64_t VerifyPolicy::look_again_ns(std::int64_t now_ns, const Work& done) const noexcept {
  if (!open_ && !new_work(done)) return INT64_MAX;
  return at_ns_ + (now_ns - at_ns_ < kPaceNs ? kPaceNs : kWaitNs);
}

void VerifyPolicy::proposed(std::int64_t now_ns, const Work& done, bool cut) noexcept {
  at_ns_ = now_ns;
  open_ = cut;
  if (cut) at_ = done;
}

}  // namespace crane::proxy
