// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bounds the logs that a replica's processes write: node.log, the server's output (server.log), and
// the messages of libcrane.so (runtime.log).
//
// The oldest bytes become a hole of the file (fallocate(2)).  A rotation to another file would need
// a copy, because the server's processes hold the descriptor of server.log; it would also move the
// offsets of server.log, which are the same on all replicas: checkpoints contain them, and readers
// go on at them in another replica's log (runtime/launcher/ctl/log_reader.h).  A hole keeps them.
//
// Threads: the node's one thread.
// Errors: the first one of each file is reported in node.log; the file then grows.
// INVARIANT LOG-BOUND-1  The last `keep` bytes of a log stay, and all of them if there are no more
//                        than `most`.

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/host/config.h"

namespace crane::node {

// How many bytes at the beginning of a log to discard.  `size`: its length; `on_disk`: the bytes
// that it takes there.  0: none.
std::uint64_t to_discard(std::uint64_t size, std::uint64_t on_disk, std::uint64_t keep,
                         std::uint64_t most) noexcept;

// The logs of this replica.
std::vector<std::string> logs_of(const Config& config);

class LogBounds {
 public:
  static constexpr std::uint64_t kKeep = 64 << 20, kMost = 80 << 20;
  static constexpr std::int64_t kEveryNs = 10'000'000'000;

  explicit LogBounds(const std::vector<std::string>& paths, std::uint64_t keep = kKeep,
                     std::uint64_t most = kMost);

  // Looks at the sizes if the last look is kEveryNs ago.
  void step(std::int64_t now_ns);

 private:
  struct Log {
    std::string path;
    bool complained = false;
  };
  void bound(Log& log) const;

  std::vector<Log> logs_;
  const std::uint64_t keep_, most_;
  std::int64_t next_ns_ = 0;
};

// The last bytes of a log, at most that many, without its hole; "": it cannot be read.
std::string end_of_log(const std::string& path, std::uint64_t most);

}  // namespace crane::node
