// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that all nodes of a group on one host map: what they have to know of each other's clients
// without a message.
//
//   writer   the process that may read and write the clients' sockets
//   view     the newest in which a leader has asked for that
//   holders  processes whose descriptors are the clients' sockets (socket_keeper.h)
//   ports    at which clients come
//   slots    one per connection: what the writer has put into its socket, and whether the log has
//   it
//
// It is a hint but for `writer`: the kernel's counts decide what a new leader does.
//
// The file is there as long as the group may go on: crane-run removes it when the group has ended
// (GroupDirectories::end_connections), and keepers of sockets look for that.
//
// Processes: written by all; each field says by whom.  Threads: one per process.

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

// Number and start time of a process in one word: it is never another's.  0: none.
enum class ProcessName : std::uint64_t {};
ProcessName name_of_process(pid_t pid) noexcept;
pid_t pid_of(ProcessName name) noexcept;
// The kernel's account of that process; empty when the process has gone.
consensus::ProcessStat process_stat(ProcessName name) noexcept;
// It is there, and not a zombie.
bool is_alive(ProcessName name) noexcept;

struct SocketHolder {
  std::atomic<ProcessName> node;    // by itself
  std::atomic<ProcessName> keeper;  // by its node, whose descriptors it shares
  // 1: clients' sockets are among them (by the node); 0: another node has taken them (by that one).
  std::atomic<std::uint32_t> holds;
  std::atomic<std::uint32_t> descriptors;  // none from this number on is a client's (by the node)
};

struct ConnectionTableLayout {
  static constexpr std::uint64_t kMagic = 0x336e6f6343656e72;
  static constexpr std::uint32_t kHoldersMost = 128, kPortsMost = 1024, kSlots = 1U << 17;

  std::atomic<std::uint64_t> magic;
  std::atomic<ProcessName> writer;
  std::atomic<View> view;
  std::atomic<std::uint32_t> slots_used;  // none behind was ever used
  std::uint32_t unused;
  SocketHolder holders[kHoldersMost];
  std::atomic<std::uint32_t> ports[kPortsMost];  // 0: free; added by any, never removed
  ConnectionSlot slots[kSlots];
};

class ConnectionTable : public ConnectionSlots {
 public:
  // Maps the file, which the first node makes.  Errors: kSystem; kWrongVersion.
  static Result<std::unique_ptr<ConnectionTable>> open(const std::string& path);
  ~ConnectionTable();
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  ConnectionTableLayout& memory() noexcept { return *memory_; }
  // False: its file was removed, the group has ended.
  bool is_there() const noexcept;
  // A holder's record for the calling process; nullptr: there is none left.
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
  const dev_t device_;  // .. and number: of the file that is mapped
  const ino_t number_;
};

}  // namespace crane::proxy
