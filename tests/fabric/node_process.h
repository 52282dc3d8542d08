// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's node as a real process: the driver over shared memory or tcp in a poll(2) loop, with
// a trickle of inputs when it leads.  It writes committed entries to memory shared with the test.

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

// A command from the test to the leader.
struct Command {
  enum Kind : std::uint32_t { kAdd, kPromote, kRemove, kTransfer };
  std::atomic<std::uint32_t> kind;
  std::atomic<std::uint32_t> id;
  std::atomic<std::uint64_t> asked;  // number of the command
  std::atomic<std::uint64_t> done;   // the last answered command
  std::atomic<int> code;             // its answer
};

// The report of one replica; written by its process (and later ones), read by the test.
struct NodeReport {
  std::atomic<std::uint32_t> role;
  std::atomic<std::uint64_t> view;
  std::atomic<std::uint64_t> leader_since_ns;  // when the last reign began; 0: never
  std::atomic<std::uint64_t> learned;          // how often it became a learner
  std::atomic<std::uint64_t> committed;        // last committed index
  std::atomic<std::uint64_t> broken;           // a gap, a change or a repetition of an entry
  std::atomic<std::uint64_t> fatal;
  std::atomic<std::uint64_t> durable;               // last index in its store
  std::atomic<std::uint64_t> voters;                // number of voters in force
  std::atomic<std::uint64_t> removed;               // GroupStatus::removed
  std::atomic<std::uint64_t> busy;                  // proposals refused with kBusy
  std::atomic<std::uint64_t> rounds;                // turns of its loop
  std::atomic<std::uint64_t> last;                  // GroupStatus: last
  std::atomic<std::uint64_t> own_view;              // view
  std::atomic<std::uint64_t> connected;             // connected
  std::atomic<std::uint64_t> needs_checkpoint;      // needs_checkpoint
  std::atomic<std::uint64_t> changing;              // changing
  std::atomic<std::uint64_t> links_lost;            // FabricStatus: links_lost
  std::atomic<std::uint64_t> probes;                // probes
  std::atomic<std::uint64_t> no_room;               // GroupStatus: whether no_room is not empty
  std::atomic<std::uint8_t> members[5];             // the members' roles
  std::atomic<std::uint64_t> history[kHistoryMax];  // [index]: the input's id, or its type if none
};
struct GroupReport {
  std::atomic<bool> traffic;
  Command command;
  Weather weather;  // for all relays
  NodeReport nodes[5];
};

std::uint64_t monotonic_ns() noexcept;

// The processes of a group.  With tcp a relay connects every pair.  It is a separate process;
// stopping it cuts the network without a sign to either side.
class NodeGroup {
 public:
  // Starts the first `members` replicas (0: all), which vote.  `store_directory`: durability disk,
  // with stores there.
  explicit NodeGroup(std::uint8_t replicas, consensus::FabricKind fabric = usual_fabric(),
                     const std::string& store_directory = "", std::uint8_t members = 0,
                     std::uint64_t ring_bytes = 8U << 20);
  // The default fabric: shm, except in the program that tests verbs.
  static consensus::FabricKind& usual_fabric() noexcept;
  void start(std::uint8_t id);
  Child& process(std::uint8_t id) { return *children_[id]; }
  void lose_memory(std::uint8_t id);
  // cut() disconnects replica `id` until heal(); tcp only.
  void cut(std::uint8_t id);
  void heal(std::uint8_t id);
  NodeReport& report(std::uint8_t id) noexcept { return report_->nodes[id]; }
  Weather& weather() noexcept { return report_->weather; }
  void set_traffic(bool on) noexcept { report_->traffic = on; }
  // Stops all proposals; returns when NodeReport::last of the leader is final.
  void stop_traffic();
  std::uint8_t replicas() const noexcept { return replicas_; }

  // Returns the leader with the highest view, other than `not_this`.  If there is none within
  // timeout_ms, returns -1 and adds every replica's state to the messages of a failed assertion.
  int wait_for_leader(int not_this, int timeout_ms);
  // As wait_for_leader(), with a generous timeout; REQUIREs a leader.
  std::uint8_t leader(int not_this = -1);
  // Returns the leader, once all replicas have committed the leader's entries.
  std::uint8_t settled_leader();
  // Waits until replica `id` has committed `index`.
  bool wait_committed(std::uint8_t id, std::uint64_t index, int timeout_ms);
  // Sends the command to the current leader until one accepts it.  A change of members must also be
  // committed: before that, a new leader may not know it.
  bool command(Command::Kind kind, std::uint8_t id, int timeout_ms);
  // CHECKs that all histories agree, without a gap or a repeated input.
  void check_histories();

 private:
  std::string describe() const;
  bool change_committed(Command::Kind kind, std::uint8_t id);
  // The relay between `from`, which dials, and `to`.
  struct Relay {
    std::uint8_t from = 0;
    std::uint8_t to = 0;
    std::size_t port = 0;  // index in ports_
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
  ReservedPorts ports_;  // the replicas' ports, then the relays'
  std::vector<Relay> relays_;
  const std::string store_directory_;
  TemporaryDirectory directory_;
  Shared<GroupReport> report_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace crane::test
