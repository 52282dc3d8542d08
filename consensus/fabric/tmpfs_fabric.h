// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the fabrics of processes have in common: a replica's own files on tmpfs, and its epoll set.
//
//   <dir>/r<i>/lock      held by the live process of replica i
//   <dir>/r<i>/control   ControlHead, then the fields of the fabric
//   <dir>/r<i>/log       the log memory
//
// A process that restarts within the same boot continues with them (FABRIC-F14).
//
// Threads: one.

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "consensus/fabric/fabric.h"
#include "consensus/fabric/shm_region.h"
#include "dmt/base/assert.h"

namespace crane::consensus {

struct FabricOptions {
  std::string directory;  // the group's directory on tmpfs; must exist
  ReplicaId self{};
  std::uint8_t replicas = 3;
  // The group's secret id: replicas and memory of other groups are refused.
  std::uint64_t group = 0;
  std::uint64_t log_bytes = 128ULL << 20;

  bool valid() const noexcept {
    return replicas >= 1 && replicas <= kReplicasMax && value(self) < replicas && log_bytes != 0 &&
           log_bytes % 64 == 0;
  }
  std::string directory_of(ReplicaId id) const {
    return directory + "/r" + std::to_string(value(id));
  }
};

inline constexpr std::size_t kLine = 64;

// Begins each control file.  Written by the owner before it publishes the file; constant then.
struct ControlHead {
  std::uint64_t magic;
  std::atomic<std::uint32_t> version;  // stored last, checked first
  std::uint32_t replicas;
  std::uint64_t group;
  std::uint64_t log_bytes;
};

// How a fabric's files look.
struct FileFormat {
  std::uint64_t magic;
  std::uint32_t version;
  std::size_t control_bytes;
  std::uint64_t spare_bytes;   // of the file system, left free beside a new log
  std::size_t log_align = 0;   // Region::open
  const char* fifo = nullptr;  // name of a FIFO in the directory, if the fabric has one

  // The control file belongs to this group, and has this format.
  bool fits(const ControlHead& head, const FabricOptions& options) const noexcept;
};

// A value of several words that survives its writer's death at any instruction: the writer fills
// the other copy with the next version, then publishes it.
struct alignas(kLine) Cell {
  std::atomic<std::uint64_t> version;              // owner; copy[version % 2] is the value
  std::atomic<std::uint64_t> copy[2][kCellWords];  // owner

  void store(const CellValue& v) noexcept;
  // False: the owner overtook the reader each time.
  bool load(CellValue& out) const noexcept;
};
static_assert(sizeof(ControlHead) == 32 && sizeof(Cell) == 2 * kLine);

class TmpfsFabric : public Fabric {
 public:
  // Frees the lock last: then another process may run as this replica.
  ~TmpfsFabric() override;

  std::span<std::byte> log_memory() noexcept final { return {log_.data(), log_.size()}; }
  bool survived() const noexcept final { return survived_; }
  int event_fd() const noexcept final { return epoll_fd_; }

 protected:
  // Makes the epoll set.  Locks the directory and maps its files; if these do not fit, makes new
  // ones of zeros, which no other process sees before publish().  kBusy: another process runs as
  // this replica; kFull: the log can never fit.
  Outcome open_files(const FabricOptions& options, const FileFormat& format);
  // Publishes new files, whose fields the fabric has set.
  Outcome publish(const FileFormat& format);
  Outcome watch(int fd, epoll_data_t tag) noexcept;

  std::string own_dir_;
  shm::Region control_;
  shm::Region log_;
  bool survived_ = false;
  int epoll_fd_ = -1;

 private:
  Outcome take_lock();
  bool reuse(const FabricOptions& options, const FileFormat& format);
  Outcome create(const FabricOptions& options, const FileFormat& format);

  int lock_fd_ = -1;
};

template <typename Peers>
auto& peer_at(Peers& peers, ReplicaId id) noexcept {
  CRANE_ASSERT(value(id) < peers.size());
  return peers[value(id)];
}

void close_fd(int& fd) noexcept;       // and sets it to -1
std::uint64_t random_word() noexcept;  // never 0
// Where the keys of new files begin: FABRIC-F6, also after the directory was lost.
inline std::uint64_t first_key() noexcept { return random_word() >> 2; }

}  // namespace crane::consensus
