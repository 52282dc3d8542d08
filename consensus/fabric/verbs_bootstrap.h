// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connection that the verbs fabric needs in addition to RDMA.  It carries whole frames to and
// from each peer, in order and authenticated, and reports when a peer connects and disconnects.
//
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <span>

#include "dmt/base/ids.h"

namespace crane::consensus::verbs {

class Bootstrap {
 public:
  struct Event {
    enum class Kind : std::uint8_t { kUp, kDown, kFrame };
    Kind kind{};
    ReplicaId peer{};
    std::span<const std::byte> data;  // for kFrame; valid until the next call
  };
  virtual ~Bootstrap() = default;
  // Returns the next event in `out`; false: there is none.
  virtual bool next(Event& out) = 0;
  // False when the peer is not connected; kDown reports that, too.
  virtual bool send(ReplicaId peer, std::span<const std::byte> frame) = 0;
  // Drops the connection to `peer`; kDown follows, and kUp when it is connected again.
  virtual void reset(ReplicaId peer) = 0;
  // Readable (level-triggered) when next() has an event or a timer has expired.
  virtual int event_fd() const noexcept = 0;
};

}  // namespace crane::consensus::verbs
