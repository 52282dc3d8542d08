// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/node.h"

#include <algorithm>
#include <utility>

#include "dmt/base/assert.h"
#include "proxy/sim/group.h"

namespace crane::proxy::sim {

namespace core = consensus::core;

namespace {

constexpr std::size_t kTailLook = 64;  // for small worlds
constexpr unsigned kSkipped = 300;     // per thousand things to do, left for the next turn

ClientMutant of_clients(Mutant mutant) {
  switch (mutant) {
    case Mutant::kDropOutput:
      return ClientMutant::kDropOutput;
    case Mutant::kReportEarly:
      return ClientMutant::kReportEarly;
    case Mutant::kLoseUnclaimed:
      return ClientMutant::kLoseUnclaimed;
    case Mutant::kNotLogged:
      return ClientMutant::kNotLogged;
    case Mutant::kForgetEnd:
      return ClientMutant::kForgetEnd;
    default:
      return ClientMutant::kNone;
  }
}

}  // namespace

Node::Node(Group& group, unsigned id)
    : group_(group), id_(id), server_(group.options().send_buffer) {}

bool Node::inside() const { return group_.kernel().is_inside(process_); }

void Node::run() {
  while (!inside() && shell_->next()) group_.kernel().may_stop(process_);
  if (!inside() && std::exchange(releases_right_, false)) right_->stop_writing();
}

// --- the process ---------------------------------------------------------------------------------

void Node::started() {
  process_ = {id_, group_.cluster().process(id_)};
  runs_ = true;
  auto table = ConnectionTable::open(group_.table_path());
  CRANE_ASSERT(table.ok());
  table_ = std::move(table).value();
  right_.emplace(table_->memory(), name_of(process_), group_.processes());
  ClientShell::Rules rules;
  rules.options.connection = group_.options();
  rules.options.tail_look = kTailLook;
  rules.mutant = of_clients(group_.mutant());
  rules.releases_early = group_.mutant() == Mutant::kReleaseEarly;
  rules.skipped = kSkipped;
  shell_.emplace(rules, group_.kernel(), process_, table_.get(), group_.random());
}

void Node::ended() {
  if (!runs_) return;
  runs_ = leads_ = turn_planned_ = server_planned_ = false;
  releases_right_ = false;
  shell_.reset();
  inputs_.clear();
  restored_ = false;
  start_ = admitted_ = 0;
  right_.reset();
  table_.reset();
  group_.kernel().died(process_);
}

// Sockets that had no result inside the call have it now: all their events are delivered again.
void Node::resumed() {
  group_.kernel().resumed(process_);
  shell_->ring_all();
  wake(0);
}

// --- the log and the server ----------------------------------------------------------------------

void Node::delivered(const core::Entry& entry) {
  const std::uint64_t index = value(entry.at.index);
  if (!restored_) restore_at(index - 1);
  inputs_.push_back(index);
  plan_server();
  if (entry.type < core::kOwnTypesMin) {
    shell_->clients().committed(static_cast<EntryType>(entry.type), entry.at.index, entry.payload);
    run();
  }
  if (serves() || leads_) wake(group_.random().between(2'000, 60'000));
}

// Restores the server to its state after that entry, as from a checkpoint.
void Node::restore_at(std::uint64_t index) {
  restored_ = true;
  admitted_ = index;
  server_ = EchoServer(group_.options().send_buffer);
  for (std::uint64_t i = 1; i <= index; ++i) {
    const Group::Logged& entry = group_.log()[i - 1];
    if (!entry.of_core) server_.admit(entry.type, Index{i}, entry.body, [](auto&&...) {});
  }
  shell_->restore(server_, index);
}

void Node::plan_server() {
  if (server_planned_ || inputs_.empty()) return;
  server_planned_ = true;
  auto& random = group_.random();
  const bool late = !group_.cluster().faults_over() && random.chance(15);
  const std::uint64_t delay =
      late ? random.between(2'000'000, 40'000'000) : random.between(2'000, 150'000);
  group_.cluster().world().after(delay, [this, process = process_] {
    group_.cluster().for_process(id_, process.second, [this] {
      server_planned_ = false;
      run_server();
    });
  });
}

void Node::run_server() {
  for (std::uint64_t n = group_.random().between(1, 6); n > 0 && !inputs_.empty(); --n) {
    admitted_ = inputs_.front();
    inputs_.pop_front();
    const Group::Logged& entry = group_.log()[admitted_ - 1];
    if (entry.of_core) continue;
    server_.admit(entry.type, Index{admitted_}, entry.body,
                  [this](const OutputHeader& header, std::span<const std::byte> bytes) {
                    output(header, bytes);
                  });
    if (inside()) break;
  }
  plan_server();
  if (leads_ || serves()) return wake(group_.random().between(2'000, 60'000));
  prune_followed();
}

void Node::output(const OutputHeader& header, std::span<const std::byte> bytes) {
  shell_->clients().output(header, Pieces(&bytes, 1), false);
  run();
  const Client* client = shell_->clients().find(ConnId{header.conn});
  if (client == nullptr || client->queued() <= group_.options().send_buffer) return;
  group_.cluster().violate("TAIL: replica " + std::to_string(id_) + " keeps " +
                           std::to_string(client->queued()) + " bytes of one connection");
}

// --- turns of the leader -------------------------------------------------------------------------

void Node::look() {
  if (leads_ || serves() || (runs_ && group_.kernel().released(process_))) {
    wake(group_.random().between(2'000, 200'000));
  }
}

void Node::wake(std::uint64_t delay_ns) {
  if (turn_planned_ || !runs_) return;
  turn_planned_ = true;
  group_.cluster().world().after(delay_ns, [this, process = process_] {
    group_.cluster().for_process(id_, process.second, [this] {
      turn_planned_ = false;
      turn();
    });
  });
}

void Node::turn() {
  run();  // the actions that were left when the process was stopped
  if (inside()) return;
  if (!leads_ && !serves()) return prune_followed();
  if (!serves()) return try_to_lead();
  bool again = accept_one();
  again = serve_clients() || again;
  if (!inside()) again = propose() || again;
  if (serves() && !inside()) shell_->clients().resume_reading();
  run();
  again = again || !shell_->clients().batch().empty();
  if (again || inside()) wake(group_.random().between(2'000, 100'000));
}

// Serves the sockets that have events; some only in the next turn.
bool Node::serve_clients() {
  bool again = false;
  for (const int fd : shell_->watched()) {
    if (inside()) break;
    const ClientShell::Turn turn = shell_->ring(fd);
    if (turn.done) run();
    again = again || turn.waits;
  }
  return again;
}

bool Node::accept_one() {
  const ClientShell::Turn turn = shell_->accept();
  if (turn.done) run();
  return turn.waits;
}

bool Node::propose() {
  if (shell_->clients().batch().empty()) return false;
  if (group_.random().chance(kSkipped)) return true;
  (void)shell_->clients().propose(
      1, [this](EntryType type, GrantTurns grant, std::span<const std::byte> body) {
        return propose_entry(type, grant, body);
      });
  group_.cluster().carry_on(id_);
  return true;
}

Result<Index> Node::propose_entry(EntryType type, GrantTurns grant,
                                  std::span<const std::byte> body) {
  core::Proposal proposal;
  proposal.type = static_cast<std::uint8_t>(type);
  proposal.grant = grant;
  proposal.stamp_ns = group_.cluster().world().now_ns();
  proposal.payload = body;
  return group_.cluster().propose(id_, proposal);
}

// --- changes of the leader -----------------------------------------------------------------------

void Node::leads(View view, bool on) {
  view_ = view;
  leads_ = on;
  start_ = 0;
  if (on) return wake(group_.random().between(2'000, 50'000));
  step_down();
}

bool Node::propose_start() {
  StartBody body{};
  body.leader = id_;
  body.resets = Resets::kNone;
  const Result<Index> index = propose_entry(EntryType::kStart, 1, bytes_of(body));
  if (index.ok()) start_ = value(index.value());
  group_.cluster().carry_on(id_);
  return index.ok();
}

// As Service::follow_role(): an earlier writer ends while START is being agreed on.
void Node::try_to_lead() {
  const auto now = static_cast<std::int64_t>(group_.cluster().world().now_ns());
  const View view = group_.mutant() == Mutant::kAnyView ? View{0} : view_;
  const bool may_lead = right_->become_writer(view, now) == WriterRight::Right::kOurs;
  if (may_lead) group_.became_writer(process_);
  if (start_ == 0 && !propose_start()) return wake(500'000);
  if (!may_lead) {
    return wake(static_cast<std::uint64_t>(std::max<std::int64_t>(right_->due_ns() - now, 1'000)));
  }
  if (!leads_ || admitted_ < start_) return;
  group_.kernel().interruptible(false);
  take_over();
  group_.kernel().interruptible(true);
  wake(0);
}

void Node::take_over() {
  shell_->take_over();
  run();
  for (const auto& [conn, open] : server_.connections()) {
    shell_->clients().reset_unless_known(ConnId{conn});
  }
  const std::uint64_t unclaimed = shell_->clients().has_unclaimed(Kernel::kPort) ? 1 : 0;
  const std::uint64_t adopted = shell_->clients().counters().last_adopted;
  group_.count(Count::kTakeOvers, adopted > 0 ? 1 : 0);
  group_.count(Count::kAdopted, adopted);
  group_.count(Count::kUnclaimed, unclaimed);
  group_.cluster().trace_line("replica %u takes %llu clients over", id_,
                              static_cast<unsigned long long>(adopted));
}

void Node::step_down() {
  if (group_.mutant() == Mutant::kServeDeposed) return right_->stop_writing();
  if (serves()) shell_->clients().follow();
  releases_right_ = true;
  run();
}

void Node::prune_followed() {
  if (inside()) return;
  shell_->close_if_released();
  shell_->clients().prune();
  run();
}

}  // namespace crane::proxy::sim
