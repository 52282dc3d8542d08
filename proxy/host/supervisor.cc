// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/supervisor.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "dmt/base/accept_error.h"
#include "dmt/base/assert.h"
#include "dmt/base/process_stat.h"
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

Place place_of(const control::Message& message) {
  return {message.number<std::uint16_t>("port"), message.text("address")};
}

}  // namespace

Supervisor::~Supervisor() { stop_watching(); }

// The kernel keeps the pid of the crane-run that made the channel or connected to this node.
bool Supervisor::stopped() const {
  ucred run{};
  socklen_t size = sizeof run;
  if (!present() || ::getsockopt(channel_.fd(), SOL_SOCKET, SO_PEERCRED, &run, &size) != 0) {
    return false;
  }
  const auto stat = run.pid > 0 ? read_process_stat(run.pid) : std::nullopt;
  return stat && is_stopped(*stat);
}

void Supervisor::stop_watching() noexcept {
  if (!watched_) return;
  event_del(&event_);
  event_del(&lost_event_);
  if (writing_) event_del(&write_event_);
  watched_ = writing_ = false;
}

void Supervisor::watch(event_base* base, Owner& owner) {
  base_ = base;
  owner_ = &owner;
  if (present()) listen_to_channel();
}

void Supervisor::listen_to_channel() {
  CRANE_ASSERT(!watched_);  // SUPERVISE-1
  event_assign(
      &event_, base_, channel_.fd(), EV_READ | EV_PERSIST,
      [](int, short, void* self) { static_cast<Supervisor*>(self)->receive(); }, this);
  event_add(&event_, nullptr);
  event_assign(
      &lost_event_, base_, -1, EV_TIMEOUT,
      [](int, short, void* argument) {
        auto& self = *static_cast<Supervisor*>(argument);
        self.owner_->woke();
        self.owner_->listener_lost();
      },
      this);
  watched_ = true;
  watch_writing();
}

void Supervisor::send(const nlohmann::json& message, int passed) {
  channel_.send(message, passed);
  watch_writing();
}

// Calls flush() when the socket is writable or, after a refusal, when it may be tried again.
void Supervisor::watch_writing() {
  if (!watched_ || writing_ || !channel_.waits()) return;
  static constexpr timeval kAgain{0, control::Outbox::kAgainMs * 1000};
  const bool refused = channel_.refused();
  event_assign(
      &write_event_, base_, refused ? -1 : channel_.fd(),
      static_cast<short>(refused ? EV_TIMEOUT : EV_WRITE),
      [](int, short, void* argument) {
        auto& self = *static_cast<Supervisor*>(argument);
        self.owner_->woke();
        self.writing_ = false;
        self.channel_.flush();
        self.watch_writing();
      },
      this);
  event_add(&write_event_, refused ? &kAgain : nullptr);
  writing_ = true;
}

void Supervisor::receive() {
  owner_->woke();
  for (;;) {
    auto message = channel_.receive();
    if (!message.ok()) return;
    if (message.value().text.empty()) {
      stop_watching();
      channel_.replace(-1);
      return owner_->supervisor_lost();
    }
    carry_out(message.value().text, message.value().fd);
  }
}

void Supervisor::carry_out(const std::string& text, int fd) {
  const auto command = parse_command(text);
  const bool listener = command && command->is("listener");
  if (listener && fd >= 0) return owner_->listener_received(place_of(*command), fd);
  if (listener) return lost_listener(place_of(*command));
  if (fd >= 0) ::close(fd);
  if (!command) return;
  if (command->is("stop")) return owner_->stop_requested();
  if (command->is("listen_failed")) {
    return owner_->listen_failed(place_of(*command), command->number<int>("error"),
                                 command->text("message"));
  }
  if (command->is("not_published")) return owner_->not_published(place_of(*command));
  if (command->is("signal")) {
    return owner_->signal_requested(command->number<std::uint32_t>("signo"),
                                    command->number<std::uint32_t>("pid"));
  }
  if (command->is("member")) return owner_->member_requested(*command);
  if (command->is("checkpoint")) return owner_->checkpoint_requested();
}

// Without a free descriptor the kernel delivers the message without the socket.
void Supervisor::lost_listener(const Place& place) {
  static constexpr timeval kAgain{0, kAcceptAgainMs * 1000};
  spdlog::error(
      "the listening socket of {} did not arrive, because no descriptor is free; it is requested "
      "again",
      place::text(place));
  event_add(&lost_event_, &kAgain);
}

Supervisor::Offer Supervisor::offer(int fd, const std::string& request, bool unsupported) {
  const control::Parsed parsed = control::parse(control::Channel::kNode, request);
  if (!parsed.message || !parsed.message->is("supervise")) return Offer::kAnother;
  const bool free = !unsupported && !present();
  const std::string answer =
      free          ? accepted("taken over")
      : unsupported ? refused("unsupported", "no crane-run started this node")
                    : refused("busy", "a crane-run supervises this node");  // SUPERVISE-1
  const bool sent = ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
  if (!free || !sent) {
    ::close(fd);
    return Offer::kRefused;
  }
  channel_.replace(fd);
  listen_to_channel();
  return Offer::kTaken;
}

// --- messages to crane-run ----------------------------------------------------------------------

void Supervisor::ready() { send({{"t", "ready"}}); }

void Supervisor::caught_up() { send({{"t", "caught_up"}}); }

void Supervisor::role(const char* name, std::uint64_t view, int leader) {
  nlohmann::json message{{"t", "role"}, {"role", name}, {"view", view}};
  if (leader >= 0) message["leader"] = leader;
  send(message);
}

void Supervisor::members(std::span<const consensus::MemberStatus> members) {
  if (!present()) return;
  nlohmann::json all = nlohmann::json::array();
  for (const consensus::MemberStatus& m : members) {
    all.push_back({{"replica", value(m.id)}, {"member", consensus::name(m.role)}});
  }
  send({{"t", "members"}, {"members", std::move(all)}});
}

void Supervisor::server(pid_t pid) {
  send({{"t", "server"}, {"pid", pid > 0 ? nlohmann::json(pid) : nlohmann::json()}});
}

void Supervisor::exit(const ServerExit& exit) {
  nlohmann::json message{{"t", "exit"}, {"status", exit.code()}, {"reason", exit.reason()}};
  if (!exit.refused().empty()) message["refused"] = exit.refused();
  send(message);
}

void Supervisor::fatal(ExitStatus status, const std::string& message) {
  send({{"t", "fatal"}, {"code", code(status)}, {"message", message}});
}

void Supervisor::removed() { send({{"t", "removed"}}); }

void Supervisor::drained() { send({{"t", "drained"}}); }

void Supervisor::acceptor_only() { send({{"t", "acceptor_only"}}); }

void Supervisor::refused_dumps(const std::string& reason) {
  send({{"t", "refused"}, {"why", reason}});
}

void Supervisor::bring_back(unsigned replica, bool forget, const std::string& checkpoint) {
  send({{"t", "bring_back"}, {"replica", replica}, {"forget", forget}, {"checkpoint", checkpoint}});
}

void Supervisor::listen(const Place& place, std::uint64_t backlog) {
  send({{"t", "listen"},
        {"port", place.port},
        {"address", place.address},
        {"backlog", std::min<std::uint64_t>(backlog, INT32_MAX)}});
}

void Supervisor::listen_for_bind(const Place& place, int backlog) {
  send({{"t", "listen"},
        {"port", place.port},
        {"address", place.address},
        {"backlog", backlog},
        {"bind", true}});
}

void Supervisor::hand_over(const Place& place, int listener) {
  send({{"t", "listener"}, {"port", place.port}, {"address", place.address}}, listener);
}

}  // namespace crane::node
