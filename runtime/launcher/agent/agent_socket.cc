// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/agent/agent_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dmt/base/accept_error.h"
#include "runtime/control/schema.h"
#include "runtime/launcher/child.h"

namespace crane::launcher {
namespace {

constexpr int kBacklog = 8;
constexpr int kSpeakMs = 200;  // for a connected client to send its request
constexpr std::size_t kRequestMax = 4096;

}  // namespace

nlohmann::json answer_of(const supervise::Answer& answer) {
  if (*answer.error == '\0') return {{"ok", true}, {"message", answer.text}};
  return {{"ok", false}, {"error", answer.error}, {"message", answer.text}};
}

AgentSocket::~AgentSocket() {
  if (fd_ >= 0) close(fd_);
}

Outcome AgentSocket::open(const std::string& home) {
  const std::string path = home + "/" + kAgentSocket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool fits = path.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (fits) (void)unlink(path.c_str());  // a killed agent left it; the caller owns the directory
  errno = ENAMETOOLONG;
  fd_ = fits ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
  if (fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      chmod(path.c_str(), 0600) == 0 && listen(fd_, kBacklog) == 0) {
    return Done{};
  }
  const std::string why = strerror(errno);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  return failure(setup::Status::kDirectory, "cannot create a socket", path, why,
                 "crane-ctl replica resume and replace will not work there until the group "
                 "is started again");
}

int AgentSocket::fd() const { return pause_ms() < 0 ? fd_ : -1; }

int AgentSocket::pause_ms() const {
  const std::int64_t left = paused_until_ms_ - now_ms();
  return left > 0 ? static_cast<int>(left) : -1;
}

void AgentSocket::answer(const std::function<nlohmann::json(const nlohmann::json&)>& reply) {
  const int asker = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (asker < 0) {
    if (classify_accept_error(errno) == AcceptError::kHost)
      paused_until_ms_ = now_ms() + kAcceptAgainMs;
    return;
  }
  std::string text(kRequestMax + 1, '\0');  // a longer request is refused, not cut
  pollfd there{asker, POLLIN, 0};
  // Ignore the request of a client that has disconnected: it no longer waits for the answer.
  const bool speaks = poll(&there, 1, kSpeakMs) > 0 && (there.revents & POLLHUP) == 0;
  const ssize_t got = speaks ? recv(asker, text.data(), text.size(), MSG_DONTWAIT) : -1;
  if (got > 0) {
    text.resize(static_cast<std::size_t>(got));
    const control::Parsed request = control::parse(control::Channel::kAgent, text);
    const std::string answer = control::line_of(
        request.message ? reply(request.message->plain("do")) : control::refused(request.refusal));
    (void)!send(asker, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  close(asker);
}

}  // namespace crane::launcher
