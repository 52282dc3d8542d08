// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the verbs fabric needs of a connection beside RDMA: frames to and from each peer, whole, in
// order, from no other process than the peer; and the news of its coming and going.
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
    std::span<const std::byte> data;  // of kFrame; valid until the next call
  };
  virtual ~Bootstrap() = default;
  // The next thing that happened; false: nothing.
  virtual bool next(Event& out) = 0;
  // False when the peer is not connected; kDown says so too.
  virtual bool send(ReplicaId peer, std::span<const std::byte> frame) = 0;
  // Drops the connection to `peer`; kDown follows, and kUp when it is there again.
  virtual void reset(ReplicaId peer) = 0;
  // Readable (level-triggered) when next() has something, or time has passed for it.
  virtual int event_fd() const noexcept = 0;
};

}  // namespace crane::consensus::verbs
