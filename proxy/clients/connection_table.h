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
// INVARIANT TABLE-1  A slot with a connection's SocketId is that connection's until the writer has
//                    closed its socket.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consensus/fabric/process.h"
#include "dmt/base/ids.h"
#include "dmt/base/result.h"

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

struct ConnectionSlot {
  std::atomic<SocketId> socket;
  std::atomic<std::uint64_t> put;
  std::atomic<std::uint64_t> logged;  // `socket` again: its CONNECT is committed (by any)
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

class ConnectionTable {
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

  // --- slots; the writer's but for put_of() and set_logged().  kNoTableSlot: there is none left.
  std::uint32_t claim(SocketId socket);
  void set_put(std::uint32_t slot, std::uint64_t put) noexcept;
  void release(std::uint32_t slot);
  // A new writer: all slots but these are free.
  void keep_only(const std::vector<std::uint32_t>& slots);
  // The sockets that have slots, in order.
  std::vector<SocketId> sockets() const;
  // The connection's CONNECT is committed.  A replica that recovers behind its end never hears of
  // it, and would take the socket for one that was accepted in vain.
  void set_logged(std::uint32_t slot, SocketId socket) noexcept;
  // The sockets of which that was said, in order.
  std::vector<SocketId> logged_sockets() const;
  // How many bytes the writer has put into the connection's socket.  nullopt: the writer has closed
  // the socket (TABLE-1), or the connection has no slot.
  std::optional<std::uint64_t> put_of(std::uint32_t slot, SocketId socket) const noexcept;

 private:
  ConnectionTable(ConnectionTableLayout* memory, std::string path, dev_t device,
                  ino_t number) noexcept
      : memory_(memory), path_(std::move(path)), device_(device), number_(number) {}
  template <typename Wanted>
  std::vector<SocketId> sorted_sockets(Wanted&& wanted) const;

  ConnectionTableLayout* memory_;
  const std::string path_;
  const dev_t device_;  // .. and number: of the file that is mapped
  const ino_t number_;
  std::vector<std::uint32_t> free_;  // below slots_used
};

}  // namespace crane::proxy
