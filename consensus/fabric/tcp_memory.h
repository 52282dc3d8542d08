// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of a replica of the tcp fabric: the log memory, cells and live grants, in files on
// tmpfs.  A process that restarts within the same boot continues with them (FABRIC-F14).
//
//   <dir>/r<i>/lock      held by the live process
//   <dir>/r<i>/control   TcpControl
//   <dir>/r<i>/log       the log memory
//
// Only the owner's process maps and writes them.
//
// Threads: one.

#include <cstdint>
#include <span>
#include <string>

#include "consensus/fabric/fabric.h"
#include "consensus/fabric/shm_layout.h"
#include "consensus/fabric/shm_region.h"

namespace crane::consensus::tcp {

inline constexpr std::uint32_t kTcpMemoryVersion = 1;
inline constexpr std::uint64_t kTcpControlMagic = 0x3170635463727243;
struct TcpControl {
  std::uint64_t magic;  // stored last
  std::uint32_t version;
  std::uint32_t replicas;
  std::uint64_t group;
  std::uint64_t log_bytes;
  std::uint64_t next_key;                    // from a random start (FABRIC-F6)
  std::uint64_t live_key[kReplicasMax + 1];  // [j]: j's grant, 0 none
  alignas(shm::kLine) shm::Cell cells[kCellsMax];
};

class TcpMemory {
 public:
  TcpMemory() = default;
  ~TcpMemory();
  TcpMemory(const TcpMemory&) = delete;
  TcpMemory& operator=(const TcpMemory&) = delete;

  // kBusy: another process runs as this replica.
  Outcome open(const std::string& directory, ReplicaId self, std::uint8_t replicas,
               std::uint64_t group, std::uint64_t log_bytes);

  bool survived() const noexcept { return survived_; }
  std::span<std::byte> log() const noexcept { return {log_.data(), log_.size()}; }
  void populate(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    log_.populate(offset, bytes);
  }
  bool back(std::uint64_t offset, std::uint64_t bytes) noexcept { return log_.back(offset, bytes); }
  void clear() noexcept { log_.clear(); }
  void set_cell(std::uint8_t cell, const CellValue& v) noexcept;
  CellValue cell(std::uint8_t cell) const noexcept;
  Key live_key(ReplicaId peer) const noexcept { return Key{control()->live_key[value(peer)]}; }
  Key new_key(ReplicaId peer) noexcept;
  void drop_key(ReplicaId peer) noexcept { control()->live_key[value(peer)] = 0; }

 private:
  TcpControl* control() const noexcept { return control_.as<TcpControl>(); }
  Outcome take_lock();
  Outcome reuse(std::uint8_t replicas, std::uint64_t group, std::uint64_t log_bytes);
  Outcome create(std::uint8_t replicas, std::uint64_t group, std::uint64_t log_bytes);

  std::string dir_;
  int lock_fd_ = -1;
  bool survived_ = false;
  shm::Region control_;
  shm::Region log_;
};

// A random number, never 0.
std::uint64_t random_word() noexcept;

}  // namespace crane::consensus::tcp
