// SPDX-License-Identifier: Apache-2.0
// The channels between crane-run and its nodes, and their messages.  When one side is stopped, the
// other one continues (OUTBOX-1).
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/control/channel.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {

using Json = nlohmann::json;

// Handles all messages that have arrived from the node.
void Group::read_messages(Replica& replica) {
  while (replica.channel >= 0) {
    const auto message = control::receive_message(replica.channel);
    if (!message) return;
    const auto& [json, fd] = message.value();
    if (json.empty()) return close_channel(replica);
    fd >= 0 ? on_fd(replica, json, fd) : on_message(replica, json);
  }
}

void Group::open_channel(Replica& replica, int channel) {
  replica.channel = channel;
  replica.outbox.start(channel);
}

void Group::close_channel(Replica& replica) {
  if (replica.channel >= 0) close(replica.channel);
  open_channel(replica, -1);
}

// Never waits for the node: a stopped node receives the message when it continues.
void Group::send(Replica& replica, const Json& message, int passed) {
  using control::Outbox;
  const auto kind = message["t"] == "stop" ? Outbox::Kind::kLast : Outbox::Kind::kUsual;
  std::string key;
  for (const char* name : {"t", "port", "address", "signo", "change", "replica"}) {
    if (const auto found = message.find(name); found != message.end()) key += found->dump() + " ";
  }
  if (replica.outbox.send(kind, key, message.dump(), passed) == Outbox::Sent::kFailed) {
    print_message("replica " + std::to_string(replica.number) + ": cannot send " + message.dump() +
                      ": " + strerror(errno),
                  setup::Level::kError);
  }
}

void Group::flush(Replica& replica) {
  while (replica.outbox.flush() == control::Outbox::Sent::kFailed) {
    print_message("replica " + std::to_string(replica.number) +
                      ": cannot send a delayed message: " + strerror(errno),
                  setup::Level::kError);
  }
}

// --- messages of nodes --------------------------------------------------------------------------

namespace {

supervise::Members members_of(int replica, const control::Message& message) {
  supervise::Members members{.replica = replica};
  for (const Json& one : message.list("members")) {
    members.list.push_back({one.at("replica"), one.at("member") == "voter"});
  }
  return members;
}

supervise::BringBack brought_back(const control::Message& message) {
  return {.replica = message.number<int>("replica"),
          .plan = {.from = supervise::Plan::From::kCheckpoint,
                   .checkpoint = message.text("checkpoint"),
                   .forgets = message.flag("forget")}};
}

}  // namespace

void Group::on_message(Replica& replica, const std::string& json) {
  using supervise::Report;
  static const std::map<std::string_view, Report> reports{{"ready", Report::kReady},
                                                          {"caught_up", Report::kCaughtUp},
                                                          {"removed", Report::kRemoved},
                                                          {"drained", Report::kDrained},
                                                          {"acceptor_only", Report::kAcceptorOnly}};
  const control::Parsed parsed = control::parse(control::Channel::kNodeToRun, json);
  replica.introduces = false;  // a node sends its sockets first
  const int number = replica.number;
  if (!parsed.message) {
    return detail("replica " + std::to_string(number) + " sent " + json + ": " +
                  parsed.refusal.message);
  }
  const control::Message& message = *parsed.message;
  if (const auto found = reports.find(message.verb().name); found != reports.end()) {
    step(supervise::Reported{number, found->second});
  } else if (message.is("listen")) {
    step(supervise::Reported{number, Report::kListens});
    on_listen(replica, message);
  } else if (message.is("role")) {
    step(supervise::Role{number, message.text("role") == "leader", message.number("view")});
  } else if (message.is("server")) {
    replica.server = message.number<pid_t>("pid", -1);
    unsaved_.begin(home_of(number) + "/upper");
    write_state();
  } else if (message.is("exit")) {
    step(supervise::ServerExit{number, message.number<int>("status"),
                               supervise::exit_reason_of(message.text("reason")),
                               message.text("refused")});
  } else if (message.is("members")) {
    step(members_of(number, message));
  } else if (message.is("analysis")) {
    print_message("analysis replica " + std::to_string(number) + ": " + message.text("text"));
  } else if (message.is("bring_back")) {
    const supervise::BringBack wanted = brought_back(message);
    // The requester has seen the replica announce its end: read that announcement first.
    if (wanted.replica < options_.places()) read_messages(at(wanted.replica));
    step(wanted);
  } else if (message.is("refused")) {
    step(supervise::Refused{message.text("why")});
  } else if (message.is("fatal")) {
    step(supervise::Fatal{number, message.number<int>("code"), message.text("message")});
  }
  answer_listens();
}

void Group::on_listen(Replica& replica, const control::Message& asked) {
  const Place place{asked.number<std::uint16_t>("port"), asked.text("address")};
  if (!listeners_.publishes(place.port)) return keep_inside(replica, place);
  const Place key = listeners_.key_of(place);
  if (waits_for_sockets() && listeners_.sockets().count(key) == 0) {
    replica.pending_listens.push_back(asked);
    return;
  }
  // One of the server's addresses was refused and that ended the group: ignore the others.
  if (supervisor_.stopping() && listeners_.sockets().count(key) == 0) return;
  int fd = -1;
  bool fresh = false;
  const bool for_bind = asked.flag("bind");
  const Outcome opened =
      listeners_.open({place, asked.number<int>("backlog"), for_bind}, fd, fresh);
  if (!opened && fd == -EADDRINUSE && listeners_.waits_for_own(place)) {
    replica.pending_listens.push_back(asked);  // until the leader's node closes that socket
    return;
  }
  if (!opened) return refuse_to_listen(replica, place, for_bind, opened.error(), -fd);
  send(replica, {{"t", "listener"}, {"port", key.port}, {"address", key.address}}, fd);
  listens_ = listens_ || !for_bind;
  if (!fresh) return;
  write_state();
  const auto& socket = listeners_.sockets().at(key);
  const bool moved = socket.published != key.port;
  print_message("listening on " + place::text(socket.published, socket.address) +
                (moved ? " for the server's port " + std::to_string(key.port) : std::string()));
}

void Group::refuse_to_listen(Replica& replica, const Place& place, bool for_bind, const Error& why,
                             int error) {
  send(replica, {{"t", "listen_failed"},
                 {"port", place.port},
                 {"address", place.address},
                 {"message", why.text},
                 {"error", error}});
  if (supervisor_.stopping()) return;
  if (for_bind) return print_message(why.text + "; the server's bind fails");
  // Otherwise clients reach the server at another place, or through sockets that nodes hold.  A
  // server that listens at IPv4 and IPv6 addresses continues on a machine without IPv6.
  const bool lacks_ipv6 =
      place::is_ipv6(place.address) && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL);
  if (!took_over_ && listeners_.sockets().empty() && !lacks_ipv6) return step(supervise::Fail{why});
  listens_ = listens_ || !lacks_ipv6;
  if (listeners_.unreached(place))
    print_message(why.text + "; the group continues, but clients do not reach this port");
}

// Answers for a port inside the group.  A waiting bind succeeds, because no other process of the
// machine can hold that port.
void Group::keep_inside(Replica& replica, const Place& place) {
  send(replica, {{"t", "not_published"}, {"port", place.port}, {"address", place.address}});
  listens_ = true;
  if (listeners_.unreached(place.port)) {
    print_message("the server listens on port " + std::to_string(place.port) +
                  ", which no --publish names: clients do not reach it");
  }
}

}  // namespace crane::launcher
