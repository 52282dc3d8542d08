// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node runs for: as a member of a group (this class), or to run a recorded history again
// (proxy/replay/replay.h).  Both put the same parts together; what differs between them is here.
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

// What a log that is read at will must know of the server.
class LogReader {
 public:
  virtual bool server_has_room() const = 0;  // it can be given more entries
  virtual bool group_began() const = 0;      // the group's first START was handed out

 protected:
  ~LogReader() = default;
};

// How far the server has come.
struct ServerProgress {
  Index applied{};        // the last entry that it has admitted
  bool exited = false;    // its main process ended at a turn,
  bool reported = false;  // and for the kernel
  bool log_held = false;  // entries wait until a restart is over
  ReplicaServer* server = nullptr;
};

class NodeMode {
 public:
  virtual ~NodeMode() = default;

  // Serves clients, takes checkpoints, and compares its configuration with the group's.
  virtual bool member() const noexcept { return true; }

  // --- before the server starts
  virtual Result<std::unique_ptr<consensus::Consensus>> open_log(consensus::Options options,
                                                                 Index behind,
                                                                 const LogReader& reader);
  // True: all stalls are known from the beginning, the log's entries tell nothing new.
  virtual bool foretells(StallWatch& stalls, unsigned replicas);
  // Which the server is to have at their clocks, as is known before it starts.
  virtual std::vector<EarlyPoint> early_points(const Config& config) const;
  // The node begins at a checkpoint; `open`: the connections that were open there.
  virtual void begin_behind(Index at, const std::vector<proxy::OutputStream>& open);
  // May keep the server's threads from their first operation.
  virtual void before_server(dmt::Layout& layout);
  // An error ends the node; `reason` is for people.
  virtual Outcome server_started(pid_t pid, std::string& reason);

  // --- while it runs
  virtual void connected(ConnId conn, const ConnectBody& body);
  virtual void output(const dmt::Layout& layout, const OutputHeader& header,
                      std::span<const std::byte> bytes);
  // The own digest at a cut, and what the log tells of the replicas'.
  virtual void digest(ReplicaId self, const proxy::Digest& own, const proxy::Digests& logged);
  // The stall rule may be applied now.
  virtual bool watches_stalls() const noexcept { return true; }
  // Once per round; true: the node is done.
  virtual bool step(std::int64_t now_ns, dmt::Layout& layout, const ServerProgress& server);

  // --- at the end
  // True: somebody at a terminal is asked, and the node goes on.
  virtual bool takes_interrupt() const { return false; }
  virtual void failed(const std::string& reason);
  virtual void stop();
};

}  // namespace crane::node
