// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that all nodes of a group on one host map.  It contains what they must know about each
// other's clients without a message.
//
//   writer   the process that may read and write the clients' sockets
//   view     the newest for which a leader has requested that
//   holders  processes whose descriptors are the clients' sockets (socket_keeper.h)
//   ports    where clients connect
//   slots    one per connection: what the writer has put into its socket, and whether its CONNECT
//            is committed
//
// Everything but `writer` is a hint: the kernel's counts decide what a new leader does.
//
// The file exists as long as the group may continue.  crane-run removes it when the group has ended
// (GroupDirectories::end_connections), and socket keepers watch for that.
//
// Processes: written by all; the comment of each field names the writer.  Threads: one per process.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "consensus/fabric/process.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/replica/clients/connection_slots.h"

namespace crane::proxy {

// The number and start time of a process in one word, which is never reused.  0: none.
enum class ProcessName : std::uint64_t {};
ProcessName name_of_process(pid_t pid) noexcept;
pid_t pid_of(ProcessName name) noexcept;
// The kernel's account of that process; empty if the process is gone.
consensus::ProcessStat process_stat(ProcessName name) noexcept;
// The process exists, and is no zombie.
bool is_alive(ProcessName name) noexcept;

struct SocketHolder {
  std::atomic<ProcessName> node;    // set by the node
  std::atomic<ProcessName> keeper;  // set by its node, whose descriptors it shares
  // 1: its descriptors include clients' sockets (set by the node); 0: another node has taken them
  // (set by that node).
  std::atomic<std::uint32_t> holds;
  // No client's descriptor has this number or a higher one (set by the node).
  std::atomic<std::uint32_t> descriptors;
};

struct ConnectionTableLayout {
  static constexpr std::uint64_t kMagic = 0x336e6f6343656e72;
  static constexpr std::uint32_t kHoldersMost = 128, kPortsMost = 1024, kSlots = 1U << 17;

  std::atomic<std::uint64_t> magic;
  std::atomic<ProcessName> writer;
  std::atomic<View> view;
  std::atomic<std::uint32_t> slots_used;  // slots after these were never used
  std::uint32_t unused;
  SocketHolder holders[kHoldersMost];
  std::atomic<std::uint32_t> ports[kPortsMost];  // 0: free; added by any node, never removed
  ConnectionSlot slots[kSlots];
};

class ConnectionTable : public ConnectionSlots {
 public:
  // Maps the file; the first node creates it.  Errors: kSystem; kWrongVersion.
  static Result<std::unique_ptr<ConnectionTable>> open(const std::string& path);
  ~ConnectionTable();
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  ConnectionTableLayout& memory() noexcept { return *memory_; }
  // False: the file was removed, because the group has ended.
  bool is_there() const noexcept;
  // Claims a holder's record for the calling process; nullptr: none is left.
  SocketHolder* claim_holder() noexcept;

  void add_port(std::uint16_t port) noexcept;
  bool has_port(std::uint16_t port) const noexcept;

 private:
  ConnectionTable(ConnectionTableLayout* memory, std::string path, dev_t device,
                  ino_t number) noexcept
      : ConnectionSlots(memory->slots_used, memory->slots),
        memory_(memory),
        path_(std::move(path)),
        device_(device),
        number_(number) {}
  ConnectionTableLayout* memory_;
  const std::string path_;
  const dev_t device_;  // device and inode number of the mapped file
  const ino_t number_;
};

}  // namespace crane::proxy
