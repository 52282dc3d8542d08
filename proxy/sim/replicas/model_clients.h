// SPDX-License-Identifier: Apache-2.0
#pragma once
// The clients of a world of replicas, the kernels of its machines, and the comparison with the log.
//
// On one machine nodes share the clients' sockets, and a keeper has them when all nodes are lost.
// If each replica has its own host, a socket ends with its process, and each new leader resets all
// clients.
//
// Threads: one.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "consensus/sim/world.h"
#include "proxy/replica/clients/connection_slots.h"
#include "proxy/sim/client.h"
#include "proxy/sim/kernel.h"
#include "proxy/sim/ledger.h"

namespace crane::replica::sim {

class ReplicaWorld;

class ModelClients {
 public:
  // The clients begin while there are inputs.
  ModelClients(ReplicaWorld& world, unsigned count, std::uint64_t seed);

  // One moment: they connect, send, receive; the committed log is compared with that.
  void step();
  // The server of a replica has closed the connection at that entry.
  void closed(std::uint64_t conn, std::uint64_t index) { ledger_.closed(conn, index); }
  // The connection was closed because another server replaces this one: the client receives an end
  // that it did not cause.
  void ended(std::uint64_t conn);
  // "": all have reached their end, and the log contains what they sent; otherwise what is missing.
  std::string missing() const { return ledger_.at_end(); }
  std::uint64_t received() const { return received_; }
  std::uint64_t lost() const;

  // --- for replicas
  proxy::sim::Kernel& kernel() { return kernel_; }
  // nullptr: sockets are not shared.
  proxy::ConnectionSlots* slots();
  const proxy::ConnectionOptions& options() const { return options_; }
  consensus::sim::Random& random() { return random_; }

 private:
  void compare();
  void was_reset(proxy::sim::Process by, const proxy::sim::SimSocket& socket);
  void check_step(const std::string& complaint, proxy::sim::SimClient& client);

  ReplicaWorld& world_;
  consensus::sim::Random random_;
  proxy::ConnectionOptions options_;
  proxy::sim::Kernel kernel_;
  std::array<proxy::ConnectionSlot, 64> slot_memory_{};
  std::atomic<std::uint32_t> slots_used_{0};
  proxy::ConnectionSlots slots_{slots_used_, slot_memory_};
  std::vector<proxy::sim::SimClient> clients_;
  std::vector<std::int64_t> begins_ns_;
  proxy::sim::Ledger ledger_{clients_};
  std::uint64_t compared_ = 0;  // number of compared log entries
  std::uint64_t received_ = 0;  // number of received bytes
};

}  // namespace crane::replica::sim
