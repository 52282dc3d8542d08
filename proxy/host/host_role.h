// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node by itself, one per host: what crane-run does for the nodes of one machine, and what a
// follower's host does for clients that come to it.  It opens the host's ports, holds the virtual
// address while its replica leads, passes clients on to the leader's host, and runs the operator's
// program when the role changes.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT HOST-1  Clients that come to a follower are passed on, or refused, only while a leader
//                   is known and the group has a quorum; else they wait in the kernel.
// INVARIANT HOST-2  Clients reach the server at the addresses at which it listens, and no others.
//                   The address of any host of the group stands for each host's own.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/forwarder.h"
#include "proxy/clients/proxy.h"
#include "proxy/clients/virtual_address.h"
#include "proxy/host/config.h"
#include "proxy/host/role_hook.h"
#include "proxy/replica/role/leadership.h"
#include "runtime/setup/exit_status.h"
#include "runtime/setup/listen.h"

namespace crane::node {

class HostRole final : private proxy::ClientsToForward {
 public:
  using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

  class Owner : public proxy::Woken {
   public:
    // The replica cannot go on.
    virtual void fail(ExitStatus status, const std::string& why) = 0;

   protected:
    ~Owner() = default;
  };

  // REQUIRES: config.host.  The references outlive it.
  HostRole(event_base* base, const Config& config, proxy::Proxy& proxy,
           const replica::Leadership& leadership, Owner& owner);
  ~HostRole();

  // Clients of the virtual address keep their connections; before the first of them is known.
  void keep_connections();
  // False: the virtual address cannot be used, and fail() was called.
  bool open();

  // --- listeners of the server's ports
  // Errno, or 0: this host takes the clients of that place, or it is not published.
  int try_listener(const Place& place, std::uint64_t backlog) {
    return open_port(place, backlog, setup::listen_on);
  }
  // The same for a server that is bound to it; clients reach it once the server listens.
  int hold_port(const Place& place, std::uint64_t backlog) {
    return open_port(place, backlog, setup::hold_port);
  }
  // The server listens there.  A port that is taken here ends the replica only while clients reach
  // no other one.
  void open_listener(const Place& place, std::uint64_t backlog);
  // The server's ports, and this host's; where it listens at several addresses, each once.
  const Ports& ports() const noexcept { return ports_; }

  // The node is up: the service manager hears so, and what it does from now on.
  void up();

  // --- the role
  // `reign` rises from one leader of the group to the next.
  void take_address(std::uint32_t reign);
  void give_up_address();
  // The role or the leader changed.  `refuses`: the group has no quorum.
  void follow(bool refuses);
  // The group lost its quorum, or has one again.
  void refuse(bool refuses);

  // Clients that are passed on to the leader's host now.
  std::size_t connections() const noexcept { return forwarder_.connections(); }

 private:
  using OpenPort = Result<int> (*)(const std::string& address, std::uint16_t port, int backlog,
                                   bool absent);

  int open_port(const Place& place, std::uint64_t backlog, OpenPort listener);
  std::string address_here(const std::string& address) const;
  void announce(bool on);
  std::string summary(bool refuses) const;
  static void on_announce(int, short, void* role);
  static void on_watchdog(int, short, void* role);
  static void on_heard(int, short, void* role);
  void heard();
  void pass_clients_on(bool refuses);
  void take_client_to_forward(int fd, std::uint16_t port, const std::string& peer) override;

  const Config& config_;
  const setup::GroupFile& file_;
  proxy::Proxy& proxy_;
  const replica::Leadership& leadership_;
  Owner& owner_;
  Forwarder forwarder_;
  RoleHook role_hook_;
  event* announce_ = nullptr;  // while the address is here, and no later leader's host has it
  event* heard_ = nullptr;     // ARP of the address
  event* watchdog_ = nullptr;  // where the service manager wants to hear from us
  VirtualAddress address_;     // the leader's, when its own server admitted START
  Ports ports_;
};

}  // namespace crane::node
