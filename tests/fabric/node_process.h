// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's node as a real process: the driver over shared memory or tcp in a poll(2) loop, with
// a trickle of inputs when it leads.  What it commits is written to memory shared with the test.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "tests/fabric/harness.h"
#include "tests/fabric/relay.h"
#include "tests/fabric/tcp_group.h"

namespace crane::test {

inline constexpr std::size_t kHistoryMax = 1U << 17;

// What a test asks of the replica that leads.
struct Command {
  enum Kind : std::uint32_t { kAdd, kPromote, kRemove, kTransfer };
  std::atomic<std::uint32_t> kind;
  std::atomic<std::uint32_t> id;
  std::atomic<std::uint64_t> asked;  // number of the command
  std::atomic<std::uint64_t> done;   // the last one answered
  std::atomic<int> code;             // its answer
};

// What one replica reports; written by its process (and its successors), read by the test.
struct NodeReport {
  std::atomic<std::uint32_t> role;
  std::atomic<std::uint64_t> view;
  std::atomic<std::uint64_t> leader_since_ns;  // last time it was told that it leads; 0: never
  std::atomic<std::uint64_t> learned;          // how often it was told that it is a learner
  std::atomic<std::uint64_t> committed;        // last index
  std::atomic<std::uint64_t> broken;           // a gap, a change or a repetition of an entry
  std::atomic<std::uint64_t> fatal;
  std::atomic<std::uint64_t> durable;               // last index in the own store
  std::atomic<std::uint64_t> voters;                // of the members in force
  std::atomic<std::uint64_t> removed;               // GroupStatus::removed
  std::atomic<std::uint64_t> busy;                  // proposals refused with kBusy
  std::atomic<std::uint64_t> rounds;                // of its loop
  std::atomic<std::uint64_t> last;                  // GroupStatus: last
  std::atomic<std::uint64_t> own_view;              // view
  std::atomic<std::uint64_t> connected;             // connected
  std::atomic<std::uint64_t> needs_checkpoint;      // needs_checkpoint
  std::atomic<std::uint64_t> changing;              // changing
  std::atomic<std::uint64_t> links_lost;            // FabricStatus: links_lost
  std::atomic<std::uint64_t> probes;                // probes
  std::atomic<std::uint64_t> no_room;               // GroupStatus: whether no_room says something
  std::atomic<std::uint8_t> members[5];             // their roles
  std::atomic<std::uint64_t> history[kHistoryMax];  // [index]: the input's id, or its type if none
};
struct GroupReport {
  std::atomic<bool> traffic;
  Command command;
  Weather weather;  // of all relays
  NodeReport nodes[5];
};

std::uint64_t monotonic_ns() noexcept;

// The processes of a group.  With tcp every pair is connected through a relay, a process of its own
// that can be stopped: a cut network, in which no side is told anything.
class NodeGroup {
 public:
  // Starts the first `members` of them (0: all), which vote.  `store_directory`: durability disk,
  // with stores there.
  explicit NodeGroup(std::uint8_t replicas, consensus::FabricKind fabric = usual_fabric(),
                     const std::string& store_directory = "", std::uint8_t members = 0,
                     std::uint64_t ring_bytes = 8U << 20);
  // Of groups that do not say which: shm, but for the program that tests verbs.
  static consensus::FabricKind& usual_fabric() noexcept;
  void start(std::uint8_t id);
  Child& process(std::uint8_t id) { return *children_[id]; }
  void lose_memory(std::uint8_t id);
  // Nothing reaches or leaves replica `id`, until it does again; tcp only.
  void cut(std::uint8_t id);
  void heal(std::uint8_t id);
  NodeReport& report(std::uint8_t id) noexcept { return report_->nodes[id]; }
  Weather& weather() noexcept { return report_->weather; }
  void set_traffic(bool on) noexcept { report_->traffic = on; }
  // No replica proposes any more, and NodeReport::last of the leader says so.
  void stop_traffic();
  std::uint8_t replicas() const noexcept { return replicas_; }

  // The replica of the highest view that says it leads, other than `not_this`; -1, and what every
  // replica is at among what a failed assertion shows, if there is none within timeout_ms.
  int wait_for_leader(int not_this, int timeout_ms);
  // Until replica `id` has committed `index`.
  bool wait_committed(std::uint8_t id, std::uint64_t index, int timeout_ms);
  // Asks whoever leads until it says yes; for a change of members until that is committed: before,
  // a new leader may not have heard of it.
  bool command(Command::Kind kind, std::uint8_t id, int timeout_ms);
  // Agreement, no gap, no input twice, over all histories.  CHECKs.
  void check_histories();

 private:
  std::string describe() const;
  bool change_committed(Command::Kind kind, std::uint8_t id);
  // Between `from`, which dials, and `to`.
  struct Relay {
    std::uint8_t from = 0;
    std::uint8_t to = 0;
    std::size_t port = 0;  // of ports_
    std::unique_ptr<Child> process;
  };
  void run(std::uint8_t id);
  void obey(consensus::Consensus& c);
  void start_relays();
  std::vector<consensus::Endpoint> endpoints_of(std::uint8_t id) const;
  std::uint8_t replicas_;
  std::uint8_t members_;
  std::uint64_t ring_bytes_;
  consensus::FabricKind fabric_;
  std::uint16_t verbs_port_ = next_verbs_port();
  ReservedPorts ports_;  // of the replicas, then of the relays
  std::vector<Relay> relays_;
  const std::string store_directory_;
  TemporaryDirectory directory_;
  Shared<GroupReport> report_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace crane::test
