// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated group with clients on one host: nodes on the cores of a consensus::sim::Cluster, and
// the properties on which clients rely.
//
//   STREAM   a client receives what the server has written to it: each byte once, and no other
//   INPUT    the log contains what a client has sent: each byte once, and each client once
//   TAKEN    no byte leaves a socket before it is in the log (CONN-4)
//   WRITER   only the process with the right to write uses sockets (WRITER-1)
//   FIN      a client receives the end only if the server or the client has ended the connection
//   RESET    a client is reset only by a replica that has recovered too late to continue
//   TAIL     no replica keeps more of a connection's output than the server may write
//   STUCK    after the last fault every client reaches its end
//
// REPLAY  crane-sim --connections --seed N --trace
// Threads: one.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/sim/application.h"
#include "consensus/sim/cluster.h"
#include "proxy/clients/writer_right.h"
#include "proxy/sim/client.h"
#include "proxy/sim/echo_server.h"
#include "proxy/sim/kernel.h"
#include "proxy/sim/ledger.h"
#include "proxy/sim/mutant.h"
#include "proxy/sim/node.h"

namespace crane::proxy::sim {

// Indexes of consensus::sim::Outcome::application.
enum class Count : std::size_t {
  kClients,    // clients that reached their end
  kLost,       // clients that were reset, which is allowed
  kTakeOvers,  // with clients
  kAdopted,    // clients whose connections continued
  kUnclaimed,  // clients that an earlier leader had accepted and not proposed
  kEnded,      // earlier writers that were killed
  kInside,     // processes stopped inside a call
  kBytes,      // bytes that clients received
};

class Group final : public consensus::sim::Application {
 public:
  Group(consensus::sim::Cluster& cluster, Mutant mutant);
  ~Group() override;

  void begin() override;
  void started(unsigned id) override { nodes_[id]->started(); }
  void ended(unsigned id) override { nodes_[id]->ended(); }
  void resumed(unsigned id) override { nodes_[id]->resumed(); }
  void delivered(unsigned id, const consensus::core::Entry& entry) override;
  void leads(unsigned id, View view, bool leads) override { nodes_[id]->leads(view, leads); }
  void faults_end() override;
  std::string at_end() override;
  consensus::sim::ApplicationCounts counts() const override;

  // --- for nodes
  struct Logged {
    EntryType type{};
    bool of_core = false;
    std::vector<std::byte> body;
  };
  // The log up to the last entry that any replica has delivered; index 1 is the first.
  const std::vector<Logged>& log() const { return log_; }
  consensus::sim::Cluster& cluster() { return cluster_; }
  consensus::sim::Random& random() { return cluster_.world().random; }
  Kernel& kernel() { return kernel_; }
  Processes& processes() { return processes_; }
  const ConnectionOptions& options() const { return options_; }
  const std::string& table_path() const { return table_path_; }
  Mutant mutant() const { return mutant_; }
  void count(Count what, std::uint64_t more = 1) {
    counts_[static_cast<std::size_t>(what)] += more;
  }
  void became_writer(Process process) { writer_ = process; }

 private:
  class SimProcesses final : public Processes {
   public:
    explicit SimProcesses(Group& group) : group_(group) {}
    bool may_write(ProcessName name) override;
    bool is_stopped(ProcessName name) override;
    void end(ProcessName name, std::int64_t waited_ns) override;

   private:
    Group& group_;
  };
  Kernel::Hooks hooks();
  void step_client(unsigned number);
  void record(std::uint64_t index, const Logged& entry);
  void used(Process by, const SimSocket& socket);
  bool stops(Process by);
  void was_reset(Process by, const SimSocket& socket);

  consensus::sim::Cluster& cluster_;
  const Mutant mutant_;
  ConnectionOptions options_;
  int table_fd_;
  std::string table_path_;
  SimProcesses processes_{*this};
  Kernel kernel_;
  std::vector<SimClient> clients_;
  std::vector<Logged> log_;
  Ledger ledger_{clients_};
  EchoServer reference_;  // admits each entry as soon as any replica delivers it
  Process writer_{};      // the last one to get the right
  std::uint64_t stops_per_mille_ = 0;
  consensus::sim::ApplicationCounts counts_{};
  std::vector<std::unique_ptr<Node>> nodes_;
};

ProcessName name_of(Process process);

// Worlds of one host whose leaders change often; `crane-sim --connections`.
extern const consensus::sim::ApplicationKind kConnectionWorlds;

}  // namespace crane::proxy::sim
