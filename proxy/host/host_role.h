// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node without crane-run, one per host.  This class does what crane-run does for the nodes of one
// machine, and handles the clients that reach a follower's host.  It opens the host's ports, holds
// the virtual address while its replica leads, forwards clients to the leader's host, and runs the
// operator's program when the role changes.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT HOST-1  A follower forwards or refuses its clients only while a leader is known and the
//                   group has a quorum; otherwise they wait in the kernel.
// INVARIANT HOST-2  Clients reach the server only at the addresses at which it listens.  The
//                   address of any host of the group stands for each host's own address.

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
    // The replica cannot continue; the node must end.
    virtual void fail(ExitStatus status, const std::string& why) = 0;

   protected:
    ~Owner() = default;
  };

  // REQUIRES: config.host.  The references must outlive it.
  HostRole(event_base* base, const Config& config, proxy::Proxy& proxy,
           const replica::Leadership& leadership, Owner& owner);
  ~HostRole();

  // Lets clients of the virtual address keep their connections.  Call before the first client.
  void keep_connections();
  // False: the virtual address cannot be used, and fail() has been called.
  bool open();

  // --- listeners of the server's ports
  // Returns errno, or 0 if this host accepts the clients of that place or does not publish it.
  int try_listener(const Place& place, std::uint64_t backlog) {
    return open_port(place, backlog, setup::listen_on);
  }
  // As try_listener(), for a server that has only bound the port; clients reach it once the server
  // listens.
  int hold_port(const Place& place, std::uint64_t backlog) {
    return open_port(place, backlog, setup::hold_port);
  }
  // The server listens at `place`.  If the host's port is taken and clients reach no other port,
  // this ends the replica.
  void open_listener(const Place& place, std::uint64_t backlog);
  // Pairs of the server's port and this host's port; one pair if it listens at several addresses.
  const Ports& ports() const noexcept { return ports_; }

  // The node is up: reports this, and from now on its state, to the service manager.
  void up();

  // --- the role
  // `reign` increases from one leader of the group to the next.
  void take_address(std::uint32_t reign);
  void release_address();
  // The role or the leader changed.  `refuses`: the group has no quorum.
  void follow(bool refuses);
  // The group has lost its quorum, or has one again.
  void refuse(bool refuses);

  // The number of clients that are currently forwarded to the leader's host.
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
  static void on_arp_packets(int, short, void* role);
  void handle_arp_packets();
  void pass_clients_on(bool refuses);
  void take_client_to_forward(int fd, std::uint16_t port, const std::string& peer) override;

  const Config& config_;
  const setup::GroupFile& file_;
  proxy::Proxy& proxy_;
  const replica::Leadership& leadership_;
  Owner& owner_;
  Forwarder forwarder_;
  RoleHook role_hook_;
  event* announce_ = nullptr;  // repeats the announcement while this host has the address
  event* heard_ = nullptr;     // ARP packets about the address
  event* watchdog_ = nullptr;  // set if the service manager requires keep-alive messages
  VirtualAddress address_;     // held by a leader whose own server admitted START
  Ports ports_;
};

}  // namespace crane::node
