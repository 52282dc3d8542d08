// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of a simulated host: TCP sockets of clients, and which processes have them open.
//
// A socket has two streams: the bytes received from the client, of which a part was taken out, and
// the bytes put in by the server, of which the client has acknowledged a part.  FINs and resets are
// counted as by Linux.  The bytes are kept, so that what a client receives can be compared.
//
// A process' descriptors survive it in its keeper's table, until another process collects them.
// The last close of a socket ends it for the client.  A process may be stopped inside a call that
// changes a socket; then that call and all later ones take effect when it is continued.
//
// Threads: one.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/ids.h"
#include "proxy/replica/clients/client_socket.h"
#include "proxy/sim/mutant.h"

namespace crane::proxy::sim {

struct SimSocket {
  SocketId id{};
  unsigned client = 0;  // the client's number
  std::string received;
  std::uint64_t taken = 0;
  bool fin_received = false;
  std::uint64_t mark = 0;   // the end of the last urgent byte; 0: there is none
  bool mark_shown = false;  // a process has seen the mark
  std::string put;
  std::uint64_t acked = 0;
  bool fin_put = false, fin_acked = false;
  bool reset_by_client = false, reset_here = false;
  bool error_taken = false;  // a process was notified of the reset
  unsigned descriptors = 0;

  bool reset() const { return reset_by_client || reset_here; }
  bool over() const { return reset() || (fin_received && fin_put && fin_acked); }
};

// One process of a replica's node.
using Process = std::pair<unsigned, std::uint32_t>;

class Kernel final : public SocketCalls {
 public:
  static constexpr std::uint16_t kPort = 80;
  static constexpr std::uint64_t kReceiveBuffer = 4096, kSendBuffer = 2048;

  struct Hooks {
    // A client's bytes arrived or left: the serving process may have something to do.
    std::function<void()> changed;
    // A process has just read or written a socket, or is about to.
    std::function<void(Process by, const SimSocket& socket)> used;
    // Whether the process is stopped inside this call.
    std::function<bool(Process by)> stops;
    // The client sees a reset, by that process.
    std::function<void(Process by, const SimSocket& socket)> was_reset;
  };
  Kernel(Hooks hooks, Mutant mutant) : hooks_(std::move(hooks)), mutant_(mutant) {}

  // --- clients
  SimSocket& connect(unsigned client);
  std::uint64_t send_room(const SimSocket& socket) const;
  void changed() { hooks_.changed(); }

  // --- processes
  void started(Process process) { tables_[process]; }
  void died(Process process);
  bool waits_for_accept() const { return !backlog_.empty(); }
  // Returns a descriptor of the next client; -1: none waits.
  int accept(Process process);
  // Returns duplicates of all sockets that other processes hold; those must release theirs.
  std::vector<int> adopt_sockets(Process process);
  // Another process has collected the sockets of this one.
  bool released(Process process) const;
  void none_left(Process process) { tables_[process].held = false; }
  // Off: no process is stopped inside a call.
  void interruptible(bool on) { interruptible_ = on; }
  bool is_inside(Process process) const;
  // A point outside of any call where the process may be stopped; it counts as inside a call until
  // it is continued.
  void may_stop(Process process);
  void resumed(Process process);

  // epoll's view of a socket: each of its edges changes one of the two numbers.
  struct Edges {
    std::uint64_t input = 0;   // of the client's bytes, FIN and reset
    std::uint64_t output = 0;  // of its acknowledgements
    bool ends = false;         // a FIN or a reset has arrived
    bool takes_output = false;
  };
  Edges edges_of(int fd) const;
  const SimSocket& socket_of(int fd) const { return *descriptors_.at(fd).socket; }

  // --- SocketCalls
  // An urgent mark in the skipped bytes stops the call, as in Linux, unless it is on the first
  // byte.
  Peeked peek(int fd, std::size_t skip, std::span<std::byte> into) noexcept override;
  void drop(int fd, std::uint64_t bytes) noexcept override;
  bool holds_any(int fd) noexcept override;
  std::uint64_t unacknowledged(int fd) noexcept override;
  ssize_t send(int fd, Pieces pieces, bool more) noexcept override;
  ssize_t send_urgent(int fd, std::byte byte) noexcept override;
  void end_output(int fd) noexcept override;
  void reset(int fd) noexcept override;
  void close(int fd) noexcept override;
  std::optional<SocketState> state(int fd, bool connected_here) noexcept override;
  SocketId id(int fd) noexcept override { return descriptors_.at(fd).socket->id; }
  std::uint16_t local_port(int) noexcept override { return kPort; }

 private:
  struct Descriptor {
    SimSocket* socket;
    Process process;
  };
  struct Table {
    bool held = false;  // it has collected sockets, and has not released them since
    bool holds = false;
    bool dead = false;
    std::vector<std::function<void()>> inside;  // calls that take effect when it is continued
  };
  int open(Process process, SimSocket& socket);
  void close_all(Process process);
  // Makes a call that changes a socket: now, or when the process is continued.
  template <typename Effect>
  void apply(const Descriptor& by, bool may_stop, Effect&& effect);
  void release(SimSocket& socket, Process by);
  void take(SimSocket& socket, std::uint64_t bytes);

  const Hooks hooks_;
  const Mutant mutant_;
  std::deque<SimSocket> sockets_;  // the addresses of elements are stable
  std::deque<SimSocket*> backlog_;
  std::map<int, Descriptor> descriptors_;
  std::map<Process, Table> tables_;
  int next_fd_ = 1;
  bool interruptible_ = true;
};

}  // namespace crane::proxy::sim
