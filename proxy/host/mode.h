// SPDX-License-Identifier: Apache-2.0
#pragma once
// The purpose of a node: a member of a group (this class), or a replay of a recorded history
// (proxy/replay/replay.h).  Both consist of the same parts; this interface covers the differences.
//
// Threads: the node's one thread.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/record/output_hash.h"
#include "proxy/record/verification.h"

namespace crane::node {

class ReplicaServer;
class StallWatch;
struct Config;

// The state of the server that a log read on demand needs.
class LogReader {
 public:
  virtual bool server_has_room() const = 0;  // it can take more entries
  virtual bool group_began() const = 0;      // the group's first START was delivered

 protected:
  ~LogReader() = default;
};

// The server's progress.
struct ServerProgress {
  Index applied{};        // the last entry that it has admitted
  bool exited = false;    // its main process ended at a turn
  bool reported = false;  // the kernel has reported that end
  bool log_held = false;  // entries wait until a restart is over
  ReplicaServer* server = nullptr;
};

class NodeMode {
 public:
  virtual ~NodeMode() = default;

  // True: it serves clients, takes checkpoints, and compares its configuration with the group's.
  virtual bool member() const noexcept { return true; }

  // --- before the server starts
  virtual Result<std::unique_ptr<consensus::Consensus>> open_log(consensus::Options options,
                                                                 Index behind,
                                                                 const LogReader& reader);
  // True: all stalls are known from the beginning; the log's entries add nothing.
  virtual bool knows_all_stalls(StallWatch& stalls, unsigned replicas);
  // Points that are known before the server starts, for the server to have at their clocks.
  virtual std::vector<EarlyPoint> early_points(const Config& config) const;
  // The node begins at a checkpoint.  `open` has the connections that were open there.
  virtual void begin_behind(Index at, const std::vector<proxy::OutputStream>& open);
  // May stop the server's threads before their first operation.
  virtual void before_server(dmt::Layout& layout);
  // An error ends the node; `reason` is for the operator.
  virtual Outcome server_started(pid_t pid, std::string& reason);

  // --- while it runs
  virtual void connected(ConnId conn, const ConnectBody& body);
  virtual void output(const dmt::Layout& layout, const OutputHeader& header,
                      std::span<const std::byte> bytes);
  // This replica's digest at a cut, and the digests of the replicas in the log.
  virtual void digest(ReplicaId self, const proxy::Digest& own, const proxy::Digests& logged);
  // The stall rule may be applied now.
  virtual bool watches_stalls() const noexcept { return true; }
  // Once per round; true: the node is done.
  virtual bool step(std::int64_t now_ns, dmt::Layout& layout, const ServerProgress& server);

  // --- at the end
  // True: on SIGINT the user at a terminal is asked, and the node continues.
  virtual bool takes_interrupt() const { return false; }
  virtual void failed(const std::string& reason);
  virtual void stop();
};

}  // namespace crane::node
