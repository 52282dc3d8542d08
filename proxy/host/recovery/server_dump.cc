// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/server_dump.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "checkpoint/fault_points.h"
#include "dmt/base/assert.h"
#include "dmt/base/clock.h"
#include "dmt/quiescence.h"
#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/host/recovery/file_names.h"
#include "proxy/host/server_pids.h"

namespace crane::node {
namespace {

double ms(std::int64_t us) { return static_cast<double>(us) / 1000; }

// Whether the servers of two replicas of this machine may run on one processor.
bool share_processor(const std::vector<int>& cpus, unsigned a, unsigned b) {
  return a >= cpus.size() || b >= cpus.size() || cpus[a] < 0 || cpus[b] < 0 || cpus[a] == cpus[b];
}

}  // namespace

// --- before the server rests --------------------------------------------------------------------

Outcome ServerDump::prepare(Index at) {
  if (!parts_.runs()) return Error{Code::kNotFound, 0, "no server runs"};
  if (const Outcome begun = packer_.begin(at); !begun.ok()) {
    spdlog::error("{}", begun.error().message());
    return begun;
  }
  const Outcome begun = parts_.monitor.prepare_checkpoint(packer_.staging_path());
  checkpoint::fault_point("take.preparing");
  return begun;
}

Index ServerDump::begin_place() {
  const LogIntake::Position& last = parts_.intake.delivered();
  contents_ = {};
  contents_.state.passed = parts_.stalls.passed();
  contents_.state.at = last.at;
  contents_.state.position = last.end;
  contents_.state.stamp_ns = last.stamp_ns;
  contents_.state.facts = parts_.owner.group_facts();
  checkpoint::fault_point("take.held");
  return last.at.index;
}

replica::Looked ServerDump::look(Index at) {
  replica::Looked seen;
  seen.admitted = admitted(at);
  if (seen.admitted) seen.blocker = blocker();
  return seen;
}

bool ServerDump::admitted(Index at) {
  parts_.scheduler_link.pump();
  parts_.scheduler_link.admit();
  parts_.owner.drain_server();
  return parts_.applied() >= at;
}

Index ServerDump::slide() {
  return parts_.intake.slide([this](const consensus::EntryView& entry) { note_entry(entry); });
}

void ServerDump::note_entry(const consensus::EntryView& entry) {
  NodeState& state = contents_.state;
  note_place(state, entry, parts_.owner.group_facts());
  // The stall watch has already seen the held entries, so its value is too high.
  const auto type = static_cast<EntryType>(entry.type);
  if (PassedBody b; type == EntryType::kPassed && proxy::read_body(entry.payload, b)) {
    state.passed = std::max(state.passed, b.clock);
  }
  if (PreemptBody b; type == EntryType::kPreempt && proxy::read_body(entry.payload, b)) {
    state.passed = std::max(state.passed, b.clock);
  }
}

// Returns "" if the server is quiescent; then this node has the turn until release_log().
std::string ServerDump::blocker() {
  if (!parts_.runs()) return "no server runs";
  if (parts_.monitor.ending() != 0) return "the kernel is still ending one of its processes";
  if (!dmt::take_unowned_turn(parts_.layout)) return "a thread has the turn";
  parts_.owner.drain_server();
  const dmt::Blocker blocker = dmt::find_blocker(parts_.layout);
  if (blocker.why == dmt::BlockerKind::kNothing) return "";
  char text[160];
  dmt::describe(parts_.layout, blocker, text);
  dmt::release_turn(parts_.layout);
  return text;
}

// --- while it rests -----------------------------------------------------------------------------

Outcome ServerDump::dump() {
  const dmt::SchedulerState& s = parts_.layout.scheduler;
  NodeState& state = contents_.state;
  CRANE_ASSERT(s.applied_index.load() == value(state.at.index));  // DUMP-1
  checkpoint::fault_point("take.resting");
  const std::int64_t begin_ns = monotonic_ns();
  note_parts(state, parts_, s.clock, s.hash);
  state.log_bytes = server_log_bytes(parts_.config);
  contents_.output_digest = fmt::format("{:016x}", parts_.outputs.digest());
  const pid_t first = parts_.monitor.pid();
  const auto pid = last_pid(first);
  if (!pid.ok()) return pid.error();
  state.last_pid = pid.value();
  // Before CRIU opens its own descriptors in the processes.
  contents_.files =
      file_names(parts_.monitor.processes(), first, parts_.config.replica_dir() + "/upper");
  times_ = {};
  times_.noting = (monotonic_ns() - begin_ns) / 1000;
  if (const Outcome begun = parts_.monitor.freeze(boosts()); !begun.ok()) return begun;
  checkpoint::fault_point("take.asked");
  const Outcome copied = copy_shared_state();
  no_copies_ = copied.ok() ? "" : copied.error().message();
  parts_.monitor.thaw(copied.ok());
  return Done{};
}

// A boost costs this replica's server; in a group of one the clients wait for the dump.
bool ServerDump::boosts() const {
  const Config& config = parts_.config;
  const unsigned leader = value(parts_.leadership.leader());
  const bool alone = config.replicas == 1 || (config.host && config.host->fabric != "shm");
  return alone || !share_processor(config.server_cpus, config.replica, leader);
}

// Copies the files that the server maps while CRIU dumps its processes.  The node has the turn, so
// no thread writes to them.
Outcome ServerDump::copy_shared_state() {
  const std::int64_t begin_ns = monotonic_ns();
  const std::string shared = parts_.config.replica_shm_dir();
  for (const char* name : kSharedState) {
    if (!std::filesystem::exists(shared + "/" + name)) continue;
    std::vector<checkpoint::FileRange> read;
    if (std::string_view(name) == "segment") read = parts_.scheduler_link.read_bytes();
    if (const Outcome copied = packer_.copy_shared(name, read); !copied.ok()) {
      spdlog::error("{}", copied.error().message());
      return copied;
    }
  }
  times_.segment = (monotonic_ns() - begin_ns) / 1000;
  return Done{};
}

std::string ServerDump::dumped(const std::string& why_not) {
  if (why_not.empty()) {
    checkpoint::fault_point("take.dumped");
    times_.supervisor = parts_.monitor.dump_times();
    const checkpoint::CheckpointTimes& t = times_.supervisor;
    spdlog::info(
        "dumped: noted in {:.1f} ms, stopped after {:.1f}, dumped in {:.1f} (memory {:.1f}), files "
        "copied in {:.1f}, thawed after {:.1f} and {:.1f}; segment copied in {:.1f}",
        ms(times_.noting), ms(t.stopping), ms(t.dumping), ms(t.memory), ms(t.copying),
        ms(t.waiting), ms(t.thawing), ms(times_.segment));
  }
  return why_not.empty() ? no_copies_ : why_not;
}

// One of the held entries may be the next CHECKPOINT.
void ServerDump::release_log() {
  if (dmt::has_turn(parts_.layout, dmt::kNodeSlot)) dmt::release_turn(parts_.layout);
  parts_.intake.release();
}

// --- after it -----------------------------------------------------------------------------------

Outcome ServerDump::pack() {
  checkpoint::fault_point("take.released");
  return packer_.pack(std::move(contents_));
}

void ServerDump::discard() {
  parts_.monitor.cancel_checkpoint();
  packer_.abandon();
}

}  // namespace crane::node
