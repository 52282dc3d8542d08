// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/socket_keeper.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "consensus/fabric/process.h"
#include "dmt/base/futex.h"
#include "proxy/clients/host_sockets.h"

namespace crane::proxy {
namespace {

constexpr std::int64_t kLookNs = 100'000'000;  // how often to check whether the group has ended

// Calls `visit(number)` for all numbers that may be open descriptors of a holder.  Reading
// /proc/<pid>/fd would make an inode for each, which takes longer than all the rest.
template <typename Visit>
void for_each_descriptor(const SocketHolder& holder, Visit&& visit) {
  // A killed node may just have accepted a client without noting its number.  Other descriptors
  // that the node has opened since may come before it.  Each call takes a microsecond, also for a
  // closed number.
  constexpr int kMore = 32;
  const int end = static_cast<int>(holder.descriptors.load()) + kMore;
  for (int fd = 0; fd < end; ++fd) visit(fd);
}

// False for a listener, even while it is closed (LISTEN-2): it has received nothing.  True for a
// connection that its client has reset, because of what arrived before.
bool has_been_connected(int fd) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  constexpr int kClosed = 7, kListens = 10;  // net/tcp_states.h
  return info.tcpi_state != kListens && (info.tcpi_state != kClosed || info.tcpi_segs_in > 0);
}

// A client's connection is recognized by its port, one that the server has opened by its slot.
bool is_connection(const ConnectionTable& table, const std::vector<SocketId>& slots,
                   int fd) noexcept {
  if (!table.has_port(local_of(fd).port)) {
    return std::binary_search(slots.begin(), slots.end(), socket_id(fd));
  }
  return has_been_connected(fd);
}

int take_descriptor(int pidfd, int fd) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}

// The main function of the keeper.  It has a copy of the node's memory, and uses only the table.
[[noreturn]] void keep(ConnectionTable& table, SocketHolder& holder, pid_t node) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "crane-sockets");
  const int pidfd = consensus::open_pidfd(node);
  // A node that may be alive uses the descriptors that would be closed below.
  if (pidfd < 0 && errno != ESRCH) ::_exit(1);
  pollfd gone{pidfd, POLLIN, 0};
  while (pidfd >= 0 && ::poll(&gone, 1, -1) < 0 && errno == EINTR) continue;
  if (holder.holds.load() == 0) ::_exit(0);

  std::vector<int> clients;
  const std::vector<SocketId> slots = table.sockets();
  for_each_descriptor(holder, [&](int fd) {
    if (is_connection(table, slots, fd)) {
      clients.push_back(fd);
    } else {
      ::close(fd);  // other processes wait for the end of these
    }
  });
  while (holder.holds.load() != 0 && !clients.empty() && table.is_there()) {
    (void)futex_wait_for(&holder.holds, 1, kLookNs);
  }
  if (holder.holds.load() != 0) {
    for (const int fd : clients) host_socket(fd).reset();  // KEEPER-1
  }
  ::_exit(0);
}

}  // namespace

Result<SocketKeeper> SocketKeeper::start(ConnectionTable& table, SocketHolder& holder) {
  const pid_t node = ::getpid();
  // Its end sends no signal, so it does not disturb code that waits for another child.
  const long pid = ::syscall(SYS_clone, CLONE_FILES, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) keep(table, holder, node);
  if (pid < 0) return system_error("start the keeper of sockets");
  const int pidfd = consensus::open_pidfd(static_cast<pid_t>(pid));
  SocketKeeper keeper(static_cast<pid_t>(pid), pidfd);
  holder.keeper.store(name_of_process(keeper.pid_));
  const int taken = take_descriptor(pidfd, pidfd);  // a descriptor that certainly exists
  const int why = errno;
  // The clients' numbers come after those that this process has open now.
  const auto behind = static_cast<std::uint32_t>(pidfd) + 1;
  if (pidfd >= 0 && behind > holder.descriptors.load()) holder.descriptors.store(behind);
  if (taken >= 0) ::close(taken);
  if (taken >= 0) return keeper;
  keeper.end();
  const bool denied = why == EPERM || why == EACCES;
  return Error{denied ? Code::kDenied : Code::kUnsupported, why, "pidfd_getfd"};
}

SocketKeeper::~SocketKeeper() {
  if (pidfd_ >= 0) ::close(pidfd_);
}

void SocketKeeper::end() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, __WCLONE);
}

Result<std::vector<int>> take_sockets(const ConnectionTable& table, const SocketHolder& holder) {
  const int pidfd = consensus::open_pidfd(pid_of(holder.keeper.load()));
  if (pidfd < 0) return system_error("pidfd_open");
  std::vector<int> taken;
  const std::vector<SocketId> slots = table.sockets();
  for_each_descriptor(holder, [&](int number) {
    const int fd = take_descriptor(pidfd, number);
    if (fd < 0) return;
    if (is_connection(table, slots, fd)) {
      taken.push_back(fd);
    } else {
      ::close(fd);
    }
  });
  ::close(pidfd);
  return taken;
}

void sockets_taken(SocketHolder& holder) noexcept {
  holder.holds.store(0);
  futex_wake(&holder.holds, 1);
}

}  // namespace crane::proxy
