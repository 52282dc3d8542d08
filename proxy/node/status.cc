// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "dmt/sequence/entry.h"
#include "proxy/encode.h"

namespace crane::node {

nlohmann::json to_json(const NodeStatus& s) {
  nlohmann::json entries;
  std::uint64_t total = 0, inputs = 0;
  for (std::size_t type = 1; type < s.entries.size(); ++type) {
    const auto t = static_cast<EntryType>(type);
    if (type > static_cast<std::size_t>(EntryType::kSignal)) break;
    entries[proxy::name(t)] = s.entries[type];
    total += s.entries[type];
    const bool input = t == EntryType::kConnect || t == EntryType::kData ||
                       t == EntryType::kShutdown || t == EntryType::kReset ||
                       t == EntryType::kSignal;
    if (input) inputs += s.entries[type];
  }
  nlohmann::json peers = nlohmann::json::array();
  for (const auto& [replica, applied] : s.peers_applied) {
    peers.push_back({{"replica", replica}, {"applied", applied}});
  }
  return {{"t", "status"},
          {"group", s.group},
          {"replicas", s.replicas},
          {"fabric", s.fabric},
          {"durability", s.durability},
          {"connected", s.connected},
          {"forwarded", s.forwarded},
          {"peers", peers},
          {"replica", s.replica},
          {"pid", s.pid},
          {"server_pid", s.server_pid},
          {"role", s.role},
          {"view", s.view},
          {"leader", s.leader},
          {"last", s.last},
          {"commit", s.committed},
          {"applied", s.applied},
          {"clock", s.clock},
          {"schedule_hash", fmt::format("{:016x}", s.schedule_hash)},
          {"settled", s.settled},
          {"outputs_bytes", s.outputs_bytes},
          {"outputs_digest", fmt::format("{:016x}", s.outputs_digest)},
          {"entries", entries},
          {"entries_total", total},
          {"inputs", inputs},
          {"connections", s.connections},
          {"accepted", s.accepted},
          {"refused", s.refused},
          {"reset_slow", s.reset_slow},
          {"reset_leader", s.reset_leader},
          {"bytes_in", s.bytes_in},
          {"bytes_out", s.bytes_out}};
}

Outcome write_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create a status file");
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  if (!written || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_error("write a status file");
  }
  return Done{};
}

}  // namespace crane::node
