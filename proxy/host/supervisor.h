// SPDX-License-Identifier: Apache-2.0
#pragma once
// The crane-run that supervises this node: the messages to it, and its requests to the node.  The
// node outlives its crane-run; the next one connects to the control socket and takes its place.
//
// Threads: the node's one thread, inside its event loop.
// Errors: sending never waits for crane-run, which may be stopped.  Messages that it does not take
// yet are kept (runtime/control/outbox.h), or dropped when it is gone: `gone` follows.
// INVARIANT SUPERVISE-1  A node has at most one supervisor: a second one is refused while the
//                        channel of the first one is open.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "consensus/consensus.h"
#include "dmt/base/place.h"
#include "proxy/clients/woken.h"
#include "proxy/host/control.h"
#include "proxy/host/server_exit.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class Supervisor {
 public:
  // Receives crane-run's requests.
  class Owner : public proxy::Woken {
   public:
    // A listening socket for this port of the server; the callee owns the descriptor.
    virtual void listener_received(const Place& place, int fd) = 0;
    virtual void listen_failed(const Place& place, int error, const std::string& message) = 0;
    // A listening socket came while this process had no free descriptor for it: request it again.
    virtual void listener_lost() = 0;
    // Clients are not to reach this port of the server.
    virtual void not_published(const Place& place) = 0;
    virtual void stop_requested() = 0;
    virtual void signal_requested(std::uint32_t signo, std::uint32_t pid) = 0;
    virtual void member_requested(const control::Message& change) = 0;
    virtual void checkpoint_requested() = 0;
    // crane-run has ended, or was killed.
    virtual void supervisor_lost() = 0;

   protected:
    ~Owner() = default;
  };

  // Takes over `fd`; -1: no crane-run supervises this node, messages are dropped.
  explicit Supervisor(int fd) noexcept : channel_(fd) {}
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts to read its messages.  `owner` must outlive it.
  void watch(event_base* base, Owner& owner);
  bool present() const noexcept { return channel_.fd() >= 0; }
  // Whether crane-run is there but stopped (SIGSTOP, Ctrl-Z), so that it starts no lost replica.
  // Reads /proc at each call.
  bool stopped() const;

  enum class Offer : std::uint8_t { kAnother, kRefused, kTaken };
  // `request` came on connection `fd` at the control socket.  kAnother: the request is not an offer
  // to supervise; otherwise this object has taken the connection and answered.  `unsupported`: this
  // node never has a supervisor.
  Offer offer(int fd, const std::string& request, bool unsupported);

  // Messages to crane-run.
  void ready();
  void caught_up();
  void role(const char* name, std::uint64_t view, int leader = -1);
  void members(std::span<const consensus::MemberStatus> members);
  // crane-run starts the nodes of new members.
  void members(const consensus::Consensus& group) {
    if (present()) members(group.status().members);
  }
  void server(pid_t pid);
  void exit(const ServerExit& exit);
  void fatal(ExitStatus status, const std::string& message);
  void removed();
  void drained();
  // No server can begin on this replica before there is a checkpoint.
  void acceptor_only();
  // Why CRIU does not dump this server; empty: it does.
  void refused_dumps(const std::string& reason);
  void bring_back(unsigned replica, bool forget, const std::string& checkpoint);
  // Requests a listening socket.
  void listen(const Place& place, std::uint64_t backlog);
  // As listen(), for a bind that waits for the answer whether the server can have the port.
  void listen_for_bind(const Place& place, int backlog);
  void hand_over(const Place& place, int listener);

 private:
  void receive();
  void carry_out(const std::string& text, int fd);
  void lost_listener(const Place& place);
  void listen_to_channel();
  void send(const nlohmann::json& message, int passed = -1);
  void watch_writing();
  void stop_watching() noexcept;

  Control channel_;
  event_base* base_ = nullptr;
  event event_{}, write_event_{}, lost_event_{};
  bool watched_ = false;
  bool writing_ = false;  // the write event is armed
  Owner* owner_ = nullptr;
};

}  // namespace crane::node
