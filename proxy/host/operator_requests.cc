// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/operator_requests.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/image.h"
#include "dmt/base/clock.h"
#include "proxy/host/event_log.h"
#include "runtime/control/journal.h"
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

std::string refusal(const Error& why, const std::string& what) {
  const char* error = why.code == Code::kNotLeader     ? "not_leader"
                      : why.code == Code::kBusy        ? "busy"
                      : why.code == Code::kGone        ? "gone"
                      : why.code == Code::kFull        ? "full"
                      : why.code == Code::kUnsupported ? "unsupported"
                      : why.code == Code::kBadArgument ? "bad_argument"
                                                       : "failed";
  const std::string cause = why.detail != 0 ? std::string(": ") + std::strerror(why.detail) : "";
  return refused(error, what + ": " + why.what + cause);
}

}  // namespace

std::string OperatorRequests::answer(const std::string& text) {
  const control::Parsed parsed = control::parse(control::Channel::kNode, text);
  if (!parsed.message) return control::line_of(control::refused(parsed.refusal));
  // From here on every field has its type and is within its bounds (CTL-1).
  const control::Message& request = *parsed.message;
  if (request.is("status")) return control::line_of(owner_.status_json());
  if (request.is("events")) return events(request);
  if (request.is("transfer")) return transfer(request.number<int>("to", kAnyOther));
  if (request.is("member")) return change_member(request);
  if (request.is("signal")) return signal_server(request.number<std::uint32_t>("signo"));
  if (request.is("checkpoint")) return owner_.ask_checkpoint(request);
  if (request.is("upgrade") || request.is("hand_over")) {
    if (leadership_.leads()) return owner_.ask_upgrade(request);
    return refusal({Code::kNotLeader, 0, "this replica does not lead"}, "no upgrade");
  }
  if (request.is("copy_log")) return copy_log(request);
  if (request.is("leave")) return drain();
  if (request.is("bring_back")) return bring_back(request);
  if (request.is("supervise")) {  // it passes descriptors
    return refused("unsupported", "only a crane-run on this host may do that, at control.sock");
  }
  return refused("unknown", "this version of crane-node does not know that request");
}

// Through the log, so that every replica's server gets it at the same turn (DESIGN D11).
std::string OperatorRequests::signal_server(std::uint32_t number) {
  const std::string what = fmt::format("signal {}", number);
  if (!leadership_.leads()) {
    return refusal({Code::kNotLeader, 0, "this replica does not lead"}, what);
  }
  spdlog::info("an operator sends signal {} to the server", number);
  owner_.send_signal(number);
  return accepted(what + " will reach every replica");
}

std::string OperatorRequests::change_member(const control::Message& request) {
  static const std::map<std::string, consensus::MemberChange::Kind> kKinds = {
      {"add", consensus::MemberChange::Kind::kAdd},
      {"promote", consensus::MemberChange::Kind::kPromote},
      {"remove", consensus::MemberChange::Kind::kRemove}};
  const std::string change = request.text("change");
  const auto id = request.number<std::uint8_t>("replica");
  // This replica number is reserved: a replica started there is an analysis replica (CORE-M7).
  const bool analysis = change == "add" && id == config_.analysis_replica;
  const auto kind = analysis ? consensus::MemberChange::Kind::kAddAnalysis : kKinds.at(change);
  const auto index = group_.change_members({kind, ReplicaId{id}});
  group_.flush_doorbells();
  const std::string what = fmt::format("{} replica {}", change, id);
  if (!index.ok()) return refusal(index.error(), what);
  spdlog::info("the member change was proposed: {}", what);
  return accepted(what + ": proposed");
}

std::string OperatorRequests::transfer(int to) {
  if (!leadership_.leads()) {
    return refused("not_leader", fmt::format("replica {} does not lead", config_.replica));
  }
  if (to == config_.replica) {
    return accepted(fmt::format("replica {} already leads", to));
  }
  if (config_.replicas == 1) return refused("unsupported", "there is no other replica");
  const std::string what = to == kAnyOther ? "the lead was not handed over"
                                           : fmt::format("replica {} was not made the leader", to);
  if (to >= config_.replicas) {
    return refusal(
        Error{Code::kBadArgument, 0, "there is no such replica; see crane-ctl member list"}, what);
  }
  if (to != kAnyOther && !owner_.has_server(ReplicaId{static_cast<std::uint8_t>(to)})) {
    return refusal(Error{Code::kBusy, 0, "it currently has no server"}, what);
  }
  if (!drain_input({false, to})) {
    if (const Outcome done = hand_over({false, to}); !done.ok()) {
      return refusal(done.error(), what);
    }
  }
  return accepted(to == kAnyOther ? fmt::format("replica {} no longer leads", config_.replica)
                                  : fmt::format("replica {} was requested to lead", to));
}

bool OperatorRequests::drain_input(const HandOver& then) {
  const std::int64_t input_drain_ns = owner_.input_drain_ns();
  if (!leadership_.leads() || input_drain_ns == 0) return false;
  hands_over_ = then;
  hands_over_at_ns_ = monotonic_ns() + input_drain_ns;
  return true;
}

void OperatorRequests::leave_after_drain() {
  if (!drain_input({true})) owner_.leave();
}

// Hands the lead to `then.to`.  For kAnyOther the others elect one of themselves; this replica
// remains the last choice until another one leads.
Outcome OperatorRequests::hand_over(const HandOver& then) {
  if (then.leaves) {
    owner_.leave();
    return Done{};
  }
  if (!leadership_.leads()) return Done{};
  if (then.to == kAnyOther) {
    spdlog::info("an operator hands the lead over");
    owner_.abdicate("an operator hands the lead over");
    group_.fit();
  } else {
    const Outcome asked = group_.transfer(ReplicaId{static_cast<std::uint8_t>(then.to)});
    if (!asked.ok()) return asked;
    spdlog::info("an operator hands the lead to replica {}", then.to);
  }
  group_.flush_doorbells();
  return Done{};
}

// The store's thread copies the log while the operator waits (consensus::copy_log()).
std::string OperatorRequests::copy_log(const control::Message& request) {
  consensus::LogCopyRequest copy;
  copy.behind = {{View{request.number("view")}, Index{request.number("index")}},
                 request.number("position")};
  copy.through = Index{request.number("through")};
  copy.path = fmt::format("{}/log-{}", config_.replica_dir(), request.number("file"));
  const auto copied = group_.copy_log(copy);
  if (!copied.ok()) return refusal(copied.error(), "the log was not copied");
  const bool done = copied.value().done;
  const std::uint64_t last = value(copied.value().last);
  nlohmann::json answer = control::accepted(
      fmt::format("the log is {}copied up to entry {}", done ? "" : "being ", last));
  answer["done"] = done;
  answer["last"] = last;
  return control::line_of(answer);
}

// For operators on other machines, who cannot read this replica's files.
std::string OperatorRequests::events(const control::Message& request) const {
  constexpr std::size_t kBytes = 96U << 10;  // fits into one message of the control socket
  const NewestEvents newest = newest_events(config_.replica_dir() + "/events.jsonl",
                                            request.number<std::size_t>("last"), kBytes);
  std::vector<nlohmann::json> events;
  for (const std::string& line : newest.lines) control::add_events(line, events);
  nlohmann::json answer = control::accepted(fmt::format("{} events", events.size()));
  answer["events"] = std::move(events);
  answer["all"] = newest.all;
  return control::line_of(answer);
}

// For maintenance, or to restart elsewhere in the log: stops this replica cleanly, if the group has
// a majority without it.  A permanent refusal (needed) has priority over a temporary one (busy), so
// that the operator does not hand the lead over before a refusal.
std::string OperatorRequests::drain() {
  const std::string own_name = fmt::format("replica {}", config_.replica);
  int voters = 0, others = 0, servers = 0;
  for (const consensus::MemberStatus& m : group_.members()) {
    if (m.role != consensus::MemberRole::kVoter) continue;
    ++voters;
    const bool other = value(m.id) != config_.replica && m.connected;
    others += other;
    servers += other && owner_.has_server(m.id);
  }
  if (others * 2 <= voters) {
    return refused("needed", fmt::format("{} is needed: without it {} of {} voters are there, no "
                                         "majority; bring another replica back first",
                                         own_name, others, voters));
  }
  if (servers == 0) {
    return refused("needed", own_name + " is needed: no other replica currently has a server");
  }
  if (leadership_.leads()) return refused("busy", own_name + " leads: hand the lead over first");
  if (owner_.takes_checkpoint()) {
    return refused("busy", own_name + " takes a checkpoint");
  }
  spdlog::info("an operator drains this replica");
  supervisor_.drained();
  owner_.drain();
  return accepted(own_name + " leaves");
}

// Passed to crane-run, which starts nodes.  The leader notices the new node when it connects.
std::string OperatorRequests::bring_back(const control::Message& request) {
  const auto replica = request.number<unsigned>("replica");
  if (replica >= config_.replicas) {
    return refused("bad_argument", "the group has no replica of this number");
  }
  if (!supervisor_.present() && !config_.host) {
    return refused(
        "unsupported",
        "no crane-run supervises this group: start it again with the same command, and it "
        "brings back the lost replicas");
  }
  if (!supervisor_.present()) {
    return refused("unsupported",
                   fmt::format("no crane-run starts nodes on this host: start the node of replica "
                               "{} on its own host",
                               replica));
  }
  supervisor_.bring_back(replica, request.flag("forget"), request.text("checkpoint"));
  return accepted(fmt::format("replica {} is started", replica));
}

std::int64_t OperatorRequests::step(std::int64_t now_ns) {
  if (now_ns >= hands_over_at_ns_) {
    hands_over_at_ns_ = replica::kNever;
    const Outcome done = hand_over(hands_over_);
    if (!done.ok()) spdlog::warn("this replica keeps the lead: {}", done.error().message());
  }
  return hands_over_at_ns_;
}

}  // namespace crane::node
