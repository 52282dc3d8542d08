// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/slice_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "dmt/base/clock.h"
#include "dmt/processes.h"
#include "dmt/stall.h"
#include "dmt/tuning.h"
#include "proxy/clients/encode.h"
#include "proxy/host/proposals.h"
#include "proxy/host/replica_server.h"
#include "proxy/ticks/known_points.h"
#include "proxy/ticks/point_file.h"

namespace crane::node {

namespace slices = replica::slices;

namespace {

// Only for a group with lasting data; another group leaves no files.
std::string path_of(const Config& config) {
  return config.base.empty() ? "" : config.dir + "/tick_points";
}

slices::Options options_of(const std::string& path, const Config& config, const dmt::Layout& w) {
  slices::Options options;
  options.slice_ns = static_cast<std::int64_t>(w.header.configuration.slice_ps / 1000);
  options.points_max = dmt::kTickPointsMax;
  std::string damaged;
  options.known = ticks::read_points(path, damaged);
  if (!damaged.empty()) spdlog::warn("{}: not a tick point: {}", path, damaged);
  // After those points, whose weights were measured on this machine.
  std::vector<std::string> command = config.args;
  command.push_back(config.program);
  for (const TickPoint& point : ticks::known_points(command)) options.known.push_back(point);
  return options;
}

}  // namespace

SliceWatch::SliceWatch(event_base* base, const Config& config, ReplicaServer& server,
                       Proposals& proposals)
    : path_(path_of(config)),
      w_(server.layout()),
      server_(server),
      proposals_(proposals),
      finder_(base, *this),
      machine_(options_of(path_, config, w_)) {}

std::int64_t SliceWatch::step(std::int64_t now_ns, bool leads, bool supervised) {
  now_ns_ = now_ns;
  supervised_ = supervised;
  if (w_.header.configuration.slice_ps == 0) return replica::kNever;
  // Another leader decides about the proposal; a follower's output reaches no client.
  if (!leads) server_.scheduler_link().hold(false);
  slices::Look look;
  look.leads = leads;
  if (leads) look_at_server(look);
  step(look);
  return machine_.deadline_ns();
}

void SliceWatch::look_at_server(slices::Look& look) {
  copy_points();
  look.points = points_;
  look.serves = __atomic_load_n(&w_.scheduler.served, __ATOMIC_RELAXED);
  look.slices = w_.slice_report.slices.load(std::memory_order_acquire);
  look.point = w_.slice_report.point.load(std::memory_order_relaxed);
  look.weight_ps = w_.slice_report.weight_ps.load(std::memory_order_relaxed);
  look.cpu_ns = w_.slice_report.cpu_ns.load(std::memory_order_relaxed);
  const dmt::TurnSnapshot now = dmt::glimpse(const_cast<dmt::Layout&>(w_));
  if (now.slot == dmt::kNone || now.in_operation) return;
  look.thread = {now.slot, now.clock};
  look.early_points = w_.early_points.used;
  look.may_begin_again = supervised_ && look.early_points < dmt::kEarlyPointsMax &&
                         !server_.scheduler_link().held() && others_wait(*look.thread);
}

// Whether another thread can run, now or after an input, or a timer's signal could end this one.
bool SliceWatch::others_wait(const slices::Computing& thread) const {
  if (__atomic_load_n(&w_.scheduler.timers_armed, __ATOMIC_RELAXED) != 0) return true;
  const std::uint32_t used = __atomic_load_n(&w_.scheduler.slots_used, __ATOMIC_RELAXED);
  for (std::uint32_t i = 1; i < used; ++i) {
    if (i != thread.slot && dmt::is_alive(w_.slots[i])) return true;
  }
  return false;
}

// Points are written at admissions, by the node's thread or by a thread that then computes or
// waits.  The number of changes is read first: changes in between are copied at the next call.
void SliceWatch::copy_points() {
  const std::uint32_t changes = __atomic_load_n(&w_.tick_points.changes, __ATOMIC_ACQUIRE);
  if (changes == std::exchange(changes_seen_, changes)) return;
  const std::uint32_t used = __atomic_load_n(&w_.tick_points.used, __ATOMIC_ACQUIRE);
  points_.assign(w_.tick_points.points, w_.tick_points.points + used);
  if (path_.empty()) return;
  // All replicas of this host use the leader's file.
  if (const Outcome kept = ticks::write_points(path_, points_); !kept.ok()) {
    spdlog::warn("cannot store tick points for the group's next start: {}", kept.error().message());
  }
}

void SliceWatch::step(const slices::Event& event) {
  machine_.step(event, now_ns_);
  loop_.run(machine_, [this](auto& action) { carry_out(action); });
}

void SliceWatch::found(const ticks::Choice& choice) {
  now_ns_ = monotonic_ns();
  step(slices::Found{choice.point, choice.where});
}

void SliceWatch::carry_out(const slices::Find& find) {
  const dmt::SlotRecord& slot = w_.slots[find.slot];
  const pid_t process = server_.monitor().host_pid(slot.process);
  if (process <= 0) return step(slices::Found{{}, "a process that has not checked in"});
  std::vector<TickPoint> known = points_;
  known.insert(known.end(), find.proposed.begin(), find.proposed.end());
  finder_.find(process, slot.thread_id, known);
}

void SliceWatch::carry_out(const slices::Propose& proposal) {
  const bool ok = proposals_
                      .propose(EntryType::kTickPoint, proposals_.input_grant(),
                               proxy::bytes_of(proposal.point), now_ns_)
                      .ok();
  if (!ok) step(slices::NotProposed{proposal.point});
}

// Clients have not seen any output after the clock.  They get none before the entry decides whether
// that clock is passed another time (SLICE-4).
void SliceWatch::carry_out(const slices::BeginAgain& begin) {
  server_.scheduler_link().hold(true);
  const bool computes = !dmt::glimpse(const_cast<dmt::Layout&>(w_)).in_operation;
  const bool there = computes && dmt::clock_now(w_) == begin.early.clock;
  if (there && proposals_
                   .propose(EntryType::kEarlyPoint, proposals_.input_grant(),
                            proxy::bytes_of(begin.early), now_ns_)
                   .ok()) {
    return;
  }
  server_.scheduler_link().hold(false);
}

void SliceWatch::carry_out(const slices::LogMessage& report) {
  spdlog::log(report.warns ? spdlog::level::warn : spdlog::level::info, "{}", report.text);
}

}  // namespace crane::node
