// SPDX-License-Identifier: Apache-2.0
#pragma once
// Live checking (D14, FALCON 5, APUS 5.3): are the replicas' outputs and schedules
// equal while they run?
//
// The leader proposes HASH entries.  One may be a CUT: at its admission, the same moment of the
// schedule on every replica, each replica takes its digest and sends it to the leader.  The next
// HASH carries these digests back to all, and at its admission every node judges them alike.  If
// they differ, it also carries the leader's evidence: its outputs and its schedule since the last
// verified cut, so that a different replica can find the place.
//
// Threads: one object, one thread.  Pure: no clock, no I/O.
//
// A digest covers everything before its cut.  If replicas differ and no majority settles it, the
// next HASH makes every replica restart its hashes of outputs and schedule when it is admitted:
// what follows is compared without what precedes (alarms.h).
//
// INVARIANT LIVE-V2  The verdict is kEqual only if a strict majority of all voters had the same
//                    digest at one cut and no digest differed; a replica whose digest did not
//                    arrive is kUnknown.
// INVARIANT LIVE-V3  Only a strict majority of all voters makes a replica a minority: of those with
//                    equal digests, else of those with equal schedules, else of those with equal
//                    outputs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/sequence/turn_record.h"
#include "proxy/record/output_hash.h"
#include "proxy/record/schedule_compare.h"
#include "proxy/record/schedule_record.h"

namespace crane::proxy {

// The digest of one replica at one cut.
struct Digest {
  std::uint64_t view;  // the view in which the cut was proposed
  SchedulePoint point;
  std::uint64_t outputs;  // OutputHash::digest()
  bool operator==(const Digest&) const = default;
};
static_assert(sizeof(Digest) == 40);

using Digests = std::vector<std::optional<Digest>>;  // by replica

enum class Finding : std::uint8_t { kAgrees, kMinority, kUnknown };

struct Evaluation {
  Verdict verdict = Verdict::kUnknown;
  bool majority = false;  // a strict majority of the voters agrees in everything
  // If no majority agrees in everything: what one agrees in, "schedule", "outputs", or nothing.
  const char* settled = "";
  std::uint64_t index = 0;
  std::vector<Finding> replicas;  // kMinority only if there is a majority (LIVE-V3)
};
// REQUIRES: voters > 0.
Evaluation evaluate(const Digests& digests, std::size_t voters);
// The digest of more than half of the replicas that sent one; nullopt: there is none.
std::optional<Digest> most_common(const Digests& digests);
// Did both replicas send a digest, and the same one?
bool same_digest(const Digests& digests, std::size_t a, std::size_t b) noexcept;

// A replica's outputs and turns between two cuts.
struct Evidence {
  std::vector<OutputMark> marks;
  std::vector<SchedulePoint> points;
  bool whole = true;           // nothing was left out for lack of room
  std::size_t marks_done = 0;  // the number of `marks` of completed buckets
  // For the first turn (first_turn.h).
  SchedulePoint base{}, cut{};   // the points before `points` and where the evidence was taken
  std::uint64_t first_turn = 0;  // number of turns[0]
  std::vector<TurnRecord>
      turns{};  // the newest up to the cut; those of others lack object and caller
};
// Where `own` differs from `theirs`, as text; empty: the evidence shows no difference.
std::string difference(const Evidence& own, const Evidence& theirs);

// The payload of a HASH entry.
struct HashBody {
  bool cut = false;
  bool restarts = false;             // every replica's hashes restart when it is admitted
  Digests digests;                   // of the previous cut; empty: none
  std::optional<Evidence> evidence;  // of the proposer
};
inline constexpr std::size_t kHashBytesMax = 60 * 1024;
// Returns at most kHashBytesMax.  Evidence that does not fit is reduced to the first marks and
// points and the last turns.
std::vector<std::byte> encode(const HashBody& body);
// False: this is not the payload of a HASH entry.
bool decode(std::span<const std::byte> payload, HashBody& body);

// When the leader proposes HASH entries: after enough work, or when nothing was checked for long
// enough; never if nothing happened, so that an idle group stays idle.
class VerifyPolicy {
 public:
  struct Work {
    std::uint64_t inputs = 0;   // committed entries that clients or operators caused
    std::uint64_t entries = 0;  // all committed entries
    std::uint64_t bytes = 0;    // of output
  };
  // Leadership begins; no digests are expected.
  void lead() { *this = {}; }
  // Whether to propose now.  `all_there`: the digests of all live replicas for the last cut
  // arrived.
  bool due(std::int64_t now_ns, const Work& done, bool all_there) const noexcept;
  // The latest time for the next due() if nothing else happens; INT64_MAX: nothing is due.
  std::int64_t look_again_ns(std::int64_t now_ns, const Work& done) const noexcept;
  // Whether the next HASH should be a cut.
  bool cuts(const Work& done) const noexcept;
  void proposed(std::int64_t now_ns, const Work& done, bool cut) noexcept;
  bool waiting() const noexcept { return open_; }

 private:
  bool new_work(const Work& done) const noexcept;
  std::int64_t at_ns_ = INT64_MIN / 2;  // the last HASH
  Work at_{};                           // work done at the last cut
  bool open_ = false;  // the last HASH was a cut whose digests must still be carried
};

}  // namespace crane::proxy
