// SPDX-License-Identifier: Apache-2.0
// Takes over a group that lost its crane-run: the living nodes, their sockets, and the replicas
// that were lost meanwhile.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAskAgainMs = 500;  // between attempts at a node that does not answer

std::string name_of(int number) { return "replica " + std::to_string(number); }

}  // namespace

int Group::take_over(bool ends) {
  open_signals();
  for (const supervise::Found& found : find_nodes()) {
    took_over_ = took_over_ || found.node != supervise::Found::Node::kNone;
    step(found);
  }
  step(supervise::TakeOver{ends});
  return conclude();
}

// The file of the previous crane-run lists the members; the leader reports later changes.
std::vector<supervise::Found> Group::find_nodes() {
  using Node = supervise::Found::Node;
  std::vector<supervise::Found> all;
  for (const auto& r : supervisor_.replicas()) all.push_back({r.number, r.member, r.votes});
  const Json state = Json::parse(text_of_file(directories_.dir() + "/state.json"), nullptr, false);
  for (const Json& row : control::list_in(state, "replicas")) {
    const int number = control::replica_in(row);
    if (number < 0 || number >= options_.places()) continue;
    supervise::Found& found = all[static_cast<std::size_t>(number)];
    found.member = control::flag_in(row, "member", found.member);
    found.votes = control::flag_in(row, "votes", found.votes);
    const std::uint64_t pid = control::number_in(row, "node_pid");
    at(number).recorded_pid = pid > 0 && pid <= INT_MAX ? static_cast<pid_t>(pid) : -1;
  }
  for (supervise::Found& found : all) {
    const std::string home = home_of(found.replica);
    output_.take_over(found.replica, home + "/server.log");
    found.drained = access((home + "/" + setup::kDrainedMark).c_str(), F_OK) == 0;
    const bool lives = node_lives(directories_.shm_dir(), found.replica);
    found.node = !lives ? Node::kNone : adopt(at(found.replica)) ? Node::kAnswers : Node::kSilent;
  }
  return all;
}

bool Group::adopt(Replica& replica) {
  Adopted adopted;
  if (!adopt_node(home_of(replica.number), adopted)) return false;
  open_channel(replica, adopted.channel);
  replica.node = adopted.pid;
  replica.pidfd = adopted.pidfd;
  replica.introduces = true;
  detail(name_of(replica.number) + ": took over node " + std::to_string(replica.node));
  return true;
}

bool Group::is_silent(const Replica& replica) const {
  return supervisor_.replicas()[static_cast<std::size_t>(replica.number)].silent;
}

bool Group::has_silent() const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [this](const Replica& r) { return is_silent(r); });
}

// Whether a node may still hold sockets, which cannot be opened again (ADOPT-1).
bool Group::waits_for_sockets() const {
  return std::any_of(replicas_.begin(), replicas_.end(), [this](const Replica& r) {
    return is_silent(r) || (r.introduces && r.node >= 0);
  });
}

void Group::answer_listens() {
  if (waits_for_sockets()) return;
  for (Replica& replica : replicas_) {
    for (const control::Message& asked : std::exchange(replica.pending_listens, {})) {
      if (replica.node >= 0) on_listen(replica, asked);
    }
  }
}

// Tries again to adopt nodes that were busy, stopped or about to start.
void Group::look_for_adoption() {
  for (Replica& replica : replicas_) {
    if (!is_silent(replica) || now_ms() - replica.last_attempt_ms < kAskAgainMs) continue;
    replica.last_attempt_ms = now_ms();
    if (!node_lives(directories_.shm_dir(), replica.number)) {
      on_node_end(replica, supervise::kUnseenEnd);
    } else if (adopt(replica)) {
      step(supervise::Adopted{replica.number});
    }
  }
  answer_listens();
}

void Group::look_at_adopted() {
  for (Replica& replica : replicas_) {
    if (replica.pidfd < 0) continue;
    pollfd end{replica.pidfd, POLLIN, 0};
    if (poll(&end, 1, 0) > 0) on_node_end(replica, supervise::kUnseenEnd);
  }
}

// A node sends its listening sockets before any other message.
void Group::on_fd(Replica& replica, const std::string& json, int fd) {
  const control::Parsed parsed = control::parse(control::Channel::kNodeToRun, json);
  const bool listener = parsed.message && parsed.message->is("listener");
  if (!listener) {
    close(fd);
    detail(name_of(replica.number) + ": sent an unexpected descriptor: " + json);
    return;
  }
  const control::Message& message = *parsed.message;
  listeners_.adopt({message.number<std::uint16_t>("port"), message.text("address")}, fd);
  listens_ = true;
  write_state();
}

// Answers crane-ctl directly, for requests that no leader could forward.
Json Group::answer(const Json& request) {
  if (!request.is_object() || request.value("do", Json()) != "resume") {
    return answer_of({"unknown", "this version of crane-run does not know that request"});
  }
  const auto wanted = request.find("replica");
  const bool named = wanted != request.end() && wanted->is_number_unsigned() &&
                     wanted->get<std::uint64_t>() < replicas_.size();
  if (!named) return answer_of({"bad_argument", "the group has no replica of this number"});
  step(supervise::Resume{.replica = wanted->get<int>()});
  return answer_;
}

}  // namespace crane::launcher
