// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/fetch.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "checkpoint/fault_points.h"
#include "checkpoint/kept.h"
#include "checkpoint/transfer.h"
#include "consensus/member_mark.h"
#include "dmt/base/clock.h"
#include "proxy/host/recovery/shipping.h"
#include "proxy/host/recovery/start_progress.h"

namespace crane::node {
namespace {

namespace fs = std::filesystem;

constexpr int kTryAgainMs = 1'000;
// How long to try to get a checkpoint while no more of it arrives, or to wait while it is taken.
constexpr std::int64_t kFetchTimeoutNs = 90'000'000'000;
// How long other replicas may be unreachable if this replica cannot begin without them.
constexpr std::int64_t kReachNs = 15'000'000'000;

// `begins`: the group may be starting for the first time.
Result<checkpoint::Fetched> fetch_once(const Config& c, Index behind, bool begins,
                                       std::string& why) {
  if (c.test_only_faults) checkpoint::die_at_marked_points(c.replica_dir() + "/faults");
  StartProgress progress(c, "fetch", "a checkpoint of another replica");
  checkpoint::Checkpoints here(progress.reported(c.checkpoints_dir()));
  auto got = checkpoint::fetch_newest(others_of(party_of(c)), expected_of(c), behind, here,
                                      [](const std::string& line) { spdlog::info("{}", line); });
  if (got.ok()) {
    spdlog::info("{}", sentence_of(got.value()));
  } else if (const std::string reason = got.error().message();
             std::exchange(why, reason) != reason) {
    // When a group begins, it is normal that no replica has a checkpoint or answers yet.
    const Code code = got.error().code;
    if (code == Code::kPeerFailed && begins) {
      spdlog::info("no other replica answers yet");
      return got;
    }
    spdlog::log(code == Code::kNotFound || code == Code::kPeerFailed ? spdlog::level::info
                                                                     : spdlog::level::warn,
                "no checkpoint was fetched: {}", reason);
  }
  return got;
}

bool holds_something(const Config& c) {
  std::error_code ignored;
  const std::string number = std::to_string(c.replica);
  return fs::exists(c.dir + "/member-" + number, ignored) ||
         (c.on_disk() && fs::exists(c.store_dir() + "/r" + number, ignored));
}

// The group knows this replica, but its host does not: it must not vote at once (C5, U2).
bool recover_as_lost(const Config& c) {
  const Outcome marked = consensus::mark_member(c.dir, ReplicaId{c.replica}, c.log_id);
  if (!marked.ok()) {
    spdlog::error("{}: {}", c.dir, marked.error().message());
    return false;
  }
  spdlog::warn(
      "this host holds nothing of the group, which knows this replica from before: it returns as "
      "a replica that lost its memory");
  return true;
}

// The newest usable checkpoint on this host; a damaged one loses its mark as verified.
Index newest_usable(const Config& c) {
  const checkpoint::Expected expected = expected_of(c);
  for (const auto& [replica, one] : checkpoint::find_kept(c.dir).checkpoints) {
    if (!one.damage.empty() || !checkpoint::compare(one.manifest, expected, one.name)) continue;
    checkpoint::Checkpoints place({fs::path(one.path).parent_path(), 1, {}});
    if (place.verify(one.name)) return one.manifest.at.index;
  }
  return Index{0};
}

checkpoint::Checkpoints::Arriving arriving(const Config& c) {
  return checkpoint::Checkpoints({c.checkpoints_dir(), 1, {}}).arriving();
}

}  // namespace

bool FetchDeadline::again(std::int64_t now_ns, Code failure, std::uint64_t arrived) noexcept {
  if (failure != Code::kPeerFailed) last_answer_ns_ = now_ns;
  if (arrived > arrived_) since_ns_ = now_ns;
  arrived_ = arrived;
  const bool reached = arrived > 0 || now_ns < last_answer_ns_ + kReachNs;
  return failure != Code::kFull && reached && now_ns < since_ns_ + kFetchTimeoutNs;
}

bool fetch_before_start(const Config& c) {
  // A recording needs the whole history.
  if (!ships(c) || !c.record.empty() || holds_something(c)) return true;
  if (value(newest_usable(c)) != 0) return true;
  std::string why;
  FetchDeadline deadline(monotonic_ns());
  for (;; ::poll(nullptr, 0, kTryAgainMs)) {
    const auto got = fetch_once(c, Index{0}, true, why);
    const Code code = got.ok() ? Code::kOk : got.error().code;
    if (code == Code::kOk || code == Code::kExists) return true;
    if (code == Code::kGone) return recover_as_lost(c);
    const auto begun = arriving(c);
    // No replica has a checkpoint: begin as a new one, unless part of a checkpoint has arrived.
    const bool none = code == Code::kNotFound || code == Code::kPeerFailed;
    if (none && begun.name.empty()) return true;
    if (!deadline.again(monotonic_ns(), code, begun.bytes)) break;
  }
  spdlog::error(
      "this host holds nothing of the group, and the checkpoint of another replica cannot be "
      "fetched; correct that, and start this replica again");
  return false;
}

bool fetch_after(const Config& c, ExitStatus status) {
  const bool lacks = status == ExitStatus::kMissedEntries || status == ExitStatus::kNoCheckpoint;
  if (!ships(c) || !lacks) return false;
  const Index behind = newest_usable(c);
  spdlog::info("this replica needs a checkpoint after entry {}: it requests one", value(behind));
  std::string why;
  FetchDeadline deadline(monotonic_ns());
  for (;; ::poll(nullptr, 0, kTryAgainMs)) {
    const auto got = fetch_once(c, behind, false, why);
    if (got.ok()) return true;
    const Code code = got.error().code;
    if (!deadline.again(monotonic_ns(), code, arriving(c).bytes)) return false;
  }
}

}  // namespace crane::node
