// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the server serves: it runs, listens on a port, and accepts clients from a full backlog.
// A group with a leader and a quorum may have a server that does none of this; the status must
// report that.  A worker that listens on no port can serve, too: if all of its threads wait at two
// looks, it has started.
//
// A pure function of the segment's content at each look.  Nothing looks while the replica sleeps;
// nothing changes then.
//
// Threads: the node's.

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace crane::replica {

struct ListenQueue {
  std::uint16_t port = 0;
  std::uint32_t queued = 0;
  std::uint32_t head = 0;  // the client that is accepted next
  bool full = false;
};

class ServingWatch {
 public:
  static constexpr std::int64_t kStuckNs = 5'000'000'000;
  static constexpr std::int64_t kLookEveryNs = 250'000'000;

  bool is_due(std::int64_t now_ns) const noexcept { return now_ns - looked_ns_ >= kLookEveryNs; }

  // `rests`: no thread can run until an input arrives or a time passes.
  void look(std::span<const ListenQueue> queues, bool rests, std::int64_t now_ns) {
    std::map<std::uint16_t, Full> now;
    for (const ListenQueue& q : queues) {
      if (!q.full) continue;
      const auto before = full_.find(q.port);
      // Another head: a client was accepted since.
      const bool same = before != full_.end() && before->second.head == q.head;
      now[q.port] = same ? before->second : Full{q.head, now_ns};
    }
    full_.swap(now);
    listens_ = !queues.empty();
    has_listened_ = has_listened_ || listens_;
    works_ = works_ || (rests && rested_);
    rested_ = rests;
    looked_ns_ = now_ns;
  }

  // The server has not begun, or has not yet listened on a port or rested.
  bool starts(bool runs, int exit) const noexcept {
    return exit < 0 && (!runs || (!has_listened_ && !works_));
  }

  // Why the server serves no client; empty: it does.  `exit`: the exit status of a server that has
  // ended, else -1.
  std::string why_not(bool runs, int exit, std::int64_t now_ns) const {
    if (exit >= 0) return "the server has ended with status " + std::to_string(exit);
    if (!runs) return "the server does not run";
    if (!listens_ && (has_listened_ || !works_)) return "the server listens on no port";
    for (const auto& [port, full] : full_) {
      if (now_ns - full.since_ns < kStuckNs) continue;
      return "the server has taken no client from the full backlog of port " +
             std::to_string(port) + " for " +
             std::to_string((now_ns - full.since_ns) / 1'000'000'000) + " s";
    }
    return "";
  }

 private:
  struct Full {
    std::uint32_t head;
    std::int64_t since_ns;
  };
  std::map<std::uint16_t, Full> full_;
  bool listens_ = false, has_listened_ = false;
  bool rested_ = false, works_ = false;
  std::int64_t looked_ns_ = 0;
};

}  // namespace crane::replica
