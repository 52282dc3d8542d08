// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/outbound.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "proxy/clients/encode.h"
#include "proxy/clients/host_sockets.h"

namespace crane::proxy {
namespace {

int bind_to(int fd, const VirtualAddress& local) noexcept {
  if (is_wildcard(local) && local.port == 0) return 0;
  const int on = 1;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const HostAddress at = host_address(local);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&at.bytes), at.size) == 0 ? 0 : errno;
}

Error failed(int error) { return Error{Code::kSystem, error, "connect"}; }

}  // namespace

int find_below(const HostPath& place) noexcept {
  const int directory = ::open(place.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -errno;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, directory, place.below.c_str(), &how, sizeof how);
  const int error = errno;
  ::close(directory);
  if (fd >= 0) return static_cast<int>(fd);
  return error == EXDEV || error == ENOSYS ? -EACCES : -error;
}

HostAddress host_address(const VirtualAddress& a) noexcept {
  HostAddress out;
  if (a.family == AF_INET6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(a.port);
    in.sin6_scope_id = a.scope;
    std::memcpy(&in.sin6_addr, a.ip, sizeof in.sin6_addr);
    std::memcpy(&out.bytes, &in, out.size = sizeof in);
  } else {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(a.port);
    std::memcpy(&in.sin_addr, a.ip, sizeof in.sin_addr);
    std::memcpy(&out.bytes, &in, out.size = sizeof in);
  }
  return out;
}

std::string name_of(const Destination& to) {
  return to.is_unix() ? to.path : text(to.request.peer);
}

void Destinations::asked(const Destination& to, bool is_allowed) {
  std::string name = name_of(to);
  if (all_.size() >= kNamedMost && all_.count(name) == 0) name = "others";
  Counts& counts = all_[name];
  if (counts.connections++ > 0) return;
  counts.allowed = is_allowed;
  if (name == "others") {
    spdlog::info("the server connects to more than {} addresses; the log lists no more",
                 kNamedMost);
  } else if (is_allowed) {
    spdlog::info("the server connects to {}", name);
  } else {
    spdlog::warn("the server's connection to {} is refused: --outbound {} allows it", name,
                 to.is_unix() ? "any" : name);
  }
}

Result<ClientSocket> open_outbound(const OutboundRequest& request) {
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  ClientSocket socket = host_socket(::socket(request.peer.family, type, 0));
  if (!socket) return failed(errno == EAFNOSUPPORT ? ENETUNREACH : ENOBUFS);
  set_stream_options(socket.fd());
  if (const int error = bind_to(socket.fd(), request.local); error != 0) return failed(error);
  const HostAddress peer = host_address(request.peer);
  const int done =
      ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&peer.bytes), peer.size);
  if (done != 0 && errno != EINPROGRESS && errno != EINTR) return failed(errno);
  return socket;
}

Result<ClientSocket> open_unix(const HostPath& place) {
  if (place.directory.empty()) return failed(ENOENT);
  ClientSocket socket =
      host_socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed(ENOBUFS);
  const int file = find_below(place);
  if (file < 0) return failed(-file);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d", file);
  const int done = ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
  const int error = errno;
  ::close(file);
  if (done != 0) return failed(error);
  return socket;
}

int outcome_of(const ClientSocket& socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace crane::proxy
