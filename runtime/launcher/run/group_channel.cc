// SPDX-License-Identifier: Apache-2.0
// The channels between crane-run and its nodes, and what comes through them: either side may be
// stopped, and the other one goes on (OUTBOX-1).
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/launcher/channel.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {

using Json = nlohmann::json;

// All that it has said until now.
void Group::hear(Replica& replica) {
  std::string json;
  while (replica.channel >= 0) {
    int fd = -1;
    const Got got = receive_message(replica.channel, json, fd);
    if (got == Got::kMessage) {
      fd >= 0 ? on_fd(replica, json, fd) : on_message(replica, json);
      continue;
    }
    if (got == Got::kGone) close_channel(replica);
    break;
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

// Never waits for the node: one that is stopped hears it when it is continued.
void Group::tell(Replica& replica, const Json& message, int passed) {
  using control::Outbox;
  const auto kind = message["t"] == "stop" ? Outbox::Kind::kLast : Outbox::Kind::kUsual;
  std::string key;
  for (const char* name : {"t", "port", "signo", "change", "replica"}) {
    if (const auto found = message.find(name); found != message.end()) key += found->dump() + " ";
  }
  if (replica.outbox.send(kind, key, message.dump(), passed) == Outbox::Sent::kFailed) {
    say("replica " + std::to_string(replica.number) + " does not hear " + message.dump() + ": " +
            strerror(errno),
        setup::Level::kError);
  }
}

void Group::flush(Replica& replica) {
  while (replica.outbox.flush() == control::Outbox::Sent::kFailed) {
    say("replica " + std::to_string(replica.number) +
            " does not hear a message that waited: " + strerror(errno),
        setup::Level::kError);
  }
}

// --- what nodes say -----------------------------------------------------------------------------

namespace {

supervise::Members members_of(int replica, const Json& list) {
  supervise::Members members{.replica = replica};
  for (const Json& one : list) {
    members.list.push_back({one.value("replica", -1), one.value("member", "") == "voter"});
  }
  return members;
}

supervise::BringBack brought_back(const Json& message) {
  return {.replica = message.at("replica"),
          .plan = {.from = supervise::Plan::From::kCheckpoint,
                   .checkpoint = message.value("checkpoint", ""),
                   .forgets = message.value("forget", false)}};
}

}  // namespace

void Group::on_message(Replica& replica, const std::string& json) {
  using supervise::Word;
  static const std::map<std::string, Word> words{{"ready", Word::kReady},
                                                 {"removed", Word::kRemoved},
                                                 {"drained", Word::kDrained},
                                                 {"acceptor_only", Word::kAcceptorOnly}};
  const Json message = Json::parse(json, nullptr, false);
  if (!message.is_object() || !message.contains("t") || !message["t"].is_string()) return;
  const std::string type = message["t"];
  const int number = replica.number;
  replica.introduces = false;  // its sockets came before
  try {
    if (const auto word = words.find(type); word != words.end()) {
      step(supervise::Said{number, word->second});
    } else if (type == "listen") {
      step(supervise::Said{number, Word::kListens});
      on_listen(replica, message);
    } else if (type == "role") {
      step(supervise::Role{number, message.at("role") == "leader",
                           message.value("view", std::uint64_t{0})});
    } else if (type == "server") {
      replica.server = message.at("pid");
      unsaved_.begin(home_of(number) + "/upper");
      write_state();
    } else if (type == "exit") {
      step(supervise::ServerExit{number, message.at("status"),
                                 message.value("reason", "") == "signal"});
    } else if (type == "members") {
      step(members_of(number, message.at("members")));
    } else if (type == "analysis") {
      say("analysis replica " + std::to_string(number) + ": " + message.value("text", ""));
    } else if (type == "bring_back") {
      const supervise::BringBack wanted = brought_back(message);
      // Its asker has seen that it says goodbye.
      if (wanted.replica >= 0 && wanted.replica < options_.places()) hear(at(wanted.replica));
      step(wanted);
    } else if (type == "refused") {
      step(supervise::Refused{message.value("why", "")});
    } else if (type == "fatal") {
      step(supervise::Fatal{number, message.value("code", 0),
                            message.value("message", "no reason given")});
    }
  } catch (const Json::exception& malformed) {
    detail("message " + json + ": " + malformed.what());
  }
  answer_listens();
}

void Group::on_listen(Replica& replica, const Json& asked) {
  const std::uint16_t port = asked.at("port");
  if (!listeners_.publishes(port)) return keep_inside(replica, port);
  if (waits_for_sockets() && listeners_.sockets().count(port) == 0) {
    replica.asks_to_listen.push_back(asked.dump());
    return;
  }
  int fd = -1;
  bool fresh = false;
  const bool for_bind = asked.value("bind", false);
  const Outcome failed = listeners_.open(
      {port, asked.value("addr", "0.0.0.0"), asked.value("backlog", 0), for_bind}, fd, fresh);
  if (!failed) {
    tell(
        replica,
        {{"t", "listen_failed"}, {"port", port}, {"message", failed.error().text}, {"error", -fd}});
    if (supervisor_.stopping()) return;
    if (for_bind) return say(failed.error().text + "; the server's bind fails");
    // Else clients reach the server at another port, or through sockets that nodes have.
    if (!took_over_ && listeners_.sockets().empty()) return step(supervise::Fail{failed.error()});
    if (listeners_.unreached(port))
      say(failed.error().text + "; the group goes on, clients do not reach this port");
    return;
  }
  tell(replica, {{"t", "listener"}, {"port", port}}, fd);
  if (!fresh) return;
  write_state();
  const auto& socket = listeners_.sockets().at(port);
  const bool moved = socket.published != port;
  say("listening on port " + std::to_string(socket.published) +
      (moved ? " for the server's port " + std::to_string(port) : std::string()));
}

// A port of the server's own: a bind that waits succeeds, as no process of the machine can have it.
void Group::keep_inside(Replica& replica, std::uint16_t port) {
  tell(replica, {{"t", "not_published"}, {"port", port}});
  if (listeners_.unreached(port)) {
    say("the server listens on port " + std::to_string(port) +
        ", which no --publish names: clients do not reach it");
  }
}

}  // namespace crane::launcher
