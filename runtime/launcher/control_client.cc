// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/control_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "checkpoint/kept.h"

namespace crane::launcher {
namespace {

constexpr std::size_t kAnswerMax = 256 * 1024;

}  // namespace

Reply ask_node(const std::string& path, const std::string& request, int timeout_ms,
               std::string& answer) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Reply::kAbsent;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return Reply::kAbsent;
  // A stopped node's backlog may be full, in which case connect waits.
  const timeval limit{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  Reply reply = Reply::kAnswer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    reply = errno == EACCES || errno == EPERM ? Reply::kDenied
            : errno == EAGAIN                 ? Reply::kSilent
                                              : Reply::kAbsent;
  } else if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    reply = Reply::kSilent;
  } else {
    answer.resize(kAnswerMax);
    const ssize_t got = recv(fd, answer.data(), answer.size(), 0);
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (got <= 0) reply = Reply::kSilent;
  }
  close(fd);
  return reply;
}

std::map<int, std::string> find_replicas(const std::string& dir, const std::string& group,
                                         bool& denied) {
  auto found = checkpoint::replica_directories(dir + "/" + group, denied);
  for (auto& [replica, path] : found) path += "/control.sock";
  return found;
}

}  // namespace crane::launcher
