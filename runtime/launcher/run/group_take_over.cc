// SPDX-License-Identifier: Apache-2.0
// A crane-run that takes over a group whose own crane-run died: the nodes that live, the sockets
// that they have, and the replicas that were lost meanwhile.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/control/schema.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAskAgainMs = 500;  // a node that lives and does not answer

std::string name_of(int number) { return "replica " + std::to_string(number); }

}  // namespace

int Group::take_over(bool ends) {
  open_signals();
  know_again();
  find_nodes();
  phase_ = Phase::kServing;
  served_ = true;
  if (ends) {
    stop("told to stop");
    return conclude();
  }
  const int living = running();
  took_over_ = living > 0 || somebody_is_unheard();
  const std::string what =
      living > 0 ? "taking over group " + options_.name +
                       ", which nobody supervised: " + std::to_string(living) + " nodes run"
      : took_over_ ? "taking over group " + options_.name + ", none of whose nodes answers yet"
                   : "going on with group " + options_.name + ", none of whose nodes runs";
  say(what + "; what it held is in " + directories_.dir() + " and " + directories_.shm_dir());
  for (Replica& replica : replicas_) {
    if (replica.node >= 0 || replica.unheard || replica.drained || !replica.votes) continue;
    replica.problem = failure(Status::kNodeFailed, name_of(replica.number), "its node is lost",
                              "it ended while nobody supervised it", "its log: " + log_of(replica));
    plan_return(replica);
    replica.problem = Done{};
  }
  write_state();
  return conclude();
}

// What the crane-run before knew of members; the leader tells what changed since.
void Group::know_again() {
  std::ifstream in(directories_.dir() + "/state.json");
  const Json state = Json::parse(in, nullptr, false);
  for (const Json& row : control::list_in(state, "replicas")) {
    const int number = control::replica_in(row);
    if (number < 0 || number >= static_cast<int>(replicas_.size())) continue;
    Replica& replica = replicas_[static_cast<std::size_t>(number)];
    replica.member = control::flag_in(row, "member", replica.member);
    replica.votes = control::flag_in(row, "votes", replica.votes);
    const std::uint64_t pid = control::number_in(row, "node_pid");
    replica.unheard_pid = pid > 0 && pid <= INT_MAX ? static_cast<pid_t>(pid) : -1;
  }
}

void Group::find_nodes() {
  for (Replica& replica : replicas_) {
    output_.take_over(replica.number, home_of(replica) + "/server.log");
    const std::string mark = home_of(replica) + "/" + setup::kDrainedMark;
    replica.drained = access(mark.c_str(), F_OK) == 0;
    if (!node_lives(directories_.shm_dir(), replica.number)) continue;
    replica.drained = false;
    if (!adopt(replica)) replica.unheard = true;
  }
}

bool Group::adopt(Replica& replica) {
  Adopted adopted;
  if (!adopt_node(home_of(replica), adopted)) return false;
  open_channel(replica, adopted.channel);
  replica.node = adopted.pid;
  replica.pidfd = adopted.pidfd;
  replica.unheard = false;
  replica.introduces = true;
  remove_notice(home_of(replica));
  detail(name_of(replica.number) + ": took over node " + std::to_string(replica.node));
  return true;
}

bool Group::somebody_is_unheard() const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [](const Replica& r) { return r.unheard; });
}

// A socket that one of these has cannot be opened anew (ADOPT-1).
bool Group::somebody_introduces() const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [](const Replica& r) { return r.unheard || (r.introduces && r.node >= 0); });
}

void Group::answer_listens() {
  if (somebody_introduces()) return;
  for (Replica& replica : replicas_) {
    for (const std::string& asked : std::exchange(replica.asks_to_listen, {})) {
      if (replica.node >= 0) on_listen(replica, Json::parse(asked));
    }
  }
}

// A node that was busy, stopped or about to start when it was asked.
void Group::look_for_adoption() {
  for (Replica& replica : replicas_) {
    if (!replica.unheard || now_ms() - replica.heard_of_ms < kAskAgainMs) continue;
    replica.heard_of_ms = now_ms();
    if (!node_lives(directories_.shm_dir(), replica.number)) {
      replica.unheard = false;
      on_node_end(replica, kUnseenEnd);
    } else if (adopt(replica)) {
      if (phase_ == Phase::kStopping) tell(replica, {{"t", "stop"}});
      write_state();
    }
  }
  answer_listens();
}

void Group::look_at_adopted() {
  for (Replica& replica : replicas_) {
    if (replica.pidfd < 0) continue;
    pollfd end{replica.pidfd, POLLIN, 0};
    if (poll(&end, 1, 0) > 0) on_node_end(replica, kUnseenEnd);
  }
}

// Stopped ones cannot end in order.
void Group::kill_unheard() {
  for (const Replica& replica : replicas_) {
    const pid_t pid = replica.unheard ? replica.unheard_pid : -1;
    std::string name;
    if (pid > 0)
      std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> std::ws, name);
    const bool ours = name == "crane-node" && node_lives(directories_.shm_dir(), replica.number);
    if (ours) kill(pid, SIGKILL);
  }
}

// The listening sockets come before anything else that a node tells.
void Group::on_fd(Replica& replica, const std::string& json, int fd) {
  const Json message = Json::parse(json, nullptr, false);
  const bool listener = message.is_object() && message.value("t", "") == "listener" &&
                        message.contains("port") && message["port"].is_number_unsigned();
  if (!listener) {
    close(fd);
    detail(name_of(replica.number) + ": a descriptor that was not asked for: " + json);
    return;
  }
  listeners_.adopt(message["port"].get<std::uint16_t>(), fd);
  write_state();
}

// crane-ctl, where no leader could pass it on.
Json Group::answer(const Json& request) {
  const auto refused = [](const char* error, const std::string& message) {
    return Json{{"ok", false}, {"error", error}, {"message", message}};
  };
  if (!request.is_object() || request.value("do", Json()) != "resume") {
    return refused("unknown", "this version of crane-run does not know that request");
  }
  const auto wanted = request.find("replica");
  const bool named = wanted != request.end() && wanted->is_number_unsigned() &&
                     wanted->get<std::uint64_t>() < replicas_.size();
  if (!named) return refused("bad_argument", "the group has no replica of this number");
  Replica& replica = replicas_[wanted->get<std::size_t>()];
  if (phase_ != Phase::kServing) return refused("busy", "the group starts, or ends");
  if (!replica.returns.planned()) return refused("unsupported", "it does not wait to return");
  replica.returns.hurry(now_ms());
  return {{"ok", true}, {"message", name_of(replica.number) + " is started"}};
}

}  // namespace crane::launcher
