// SPDX-License-Identifier: Apache-2.0
#pragma once
// The gate stands before all packets that leave this host from the virtual address.  No client
// hears that one of its bytes has come before the log has committed that byte (NETWORK N7, N9).
//
// A kernel acknowledges bytes as they come, and a client forgets what is acknowledged: bytes that
// an earlier leader's kernel had, and the log has not, would be lost with its host.  So each packet
// of the address waits in a queue of the kernel's packet filter (NFQUEUE) until what it
// acknowledges is committed.  Without a process at the queue nothing leaves: a node that is killed,
// or stopped, sends its clients no FIN and no RST, and neither does a node that was deposed.
//
//   follows: closed -- leads: takes_over() -- open() ..  -- deposed: close()
//
// Packets that may pass in any case do not come here while the node lives (egress_filter.h): of a
// node that is killed or stopped, output that was sent before is sent again for 50 ms more.
//
// Needs CAP_NET_ADMIN, and Debian's iptables once, when it begins.  IPv4 only.
// Threads: the loop's.
// Errors: Result; connections end with their leader then, as they do without a virtual address.
// INVARIANT GATE-1  No packet of a connection leaves that acknowledges more than allow() said.
// INVARIANT GATE-2  Nothing of the address leaves a host whose node does not lead, and nothing of a
//                   connection one whose node has no quorum.

#include <event2/event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "proxy/clients/egress_filter.h"
#include "proxy/clients/moved_socket.h"

struct nfgenmsg;
struct nfq_data;
struct nfq_handle;
struct nfq_q_handle;

namespace crane::proxy {

class EgressGate {
 public:
  // `address`: of IPv4.  What an earlier process of this host has left waits on, and is dropped.
  static Result<std::unique_ptr<EgressGate>> open(event_base* base, const std::string& address);
  // The address is free again, if take_down() was called; else nothing leaves from it.
  ~EgressGate();
  EgressGate(const EgressGate&) = delete;
  EgressGate& operator=(const EgressGate&) = delete;

  // Other ports of the address are not Crane's: their packets leave as they are.
  void add_port(std::uint16_t port) { ports_.push_back(port); }

  // This replica begins to lead.  The kernel does not know the earlier leader's connections yet,
  // and would reset them: resets are dropped until go_on().
  void take_over() noexcept;
  void go_on();
  // It has no quorum, so another host may lead: of the connections nothing leaves meanwhile, what
  // waits is dropped.  A client that it does not know is refused.
  void silence(bool on) noexcept;
  // Judges all packets that the kernel has queued by now.
  void flush();
  // It leads no more; what waits is dropped (GATE-2).
  void close() noexcept;

  // The connection's first numbers; none: this host's kernel has not accepted it.
  std::optional<Handshake> handshake_of(const VirtualAddress& client, std::uint16_t port) const;
  // The client's bytes before sequence number `next` are committed.  Its packets wait from when its
  // connection is made; here, also from when it is known.
  void allow(const VirtualAddress& client, std::uint16_t port, std::uint32_t next);
  // The connection has ended: the kernel's last words leave.
  void forget(const VirtualAddress& client, std::uint16_t port);
  // Tells the kernel what was allowed and forgotten since: one call for many packets.
  void resume_reading();

  struct Counters {
    std::uint64_t passed = 0, held = 0, dropped = 0;  // held: those that had to wait
  };
  const Counters& counters() const noexcept { return counters_; }
  // Whether most packets need not come here.
  bool filters() const noexcept { return filter_ != nullptr; }
  // Ends in order: packets of the address leave again when this object is gone.
  void take_down() noexcept { takes_down_ = true; }

 private:
  enum class State : std::uint8_t { kClosed, kTakesOver, kOpen, kHushed };
  struct Waiting {
    std::uint32_t id;  // of the kernel's
    std::uint32_t acknowledges;
  };
  struct Flow {
    std::uint32_t next = 0;  // may be acknowledged
    bool known = false;      // the log knows it
    bool changed = false;    // since resume_reading()
    bool filtered = false;   // the filter knows it
    std::optional<Handshake> handshake;
    std::vector<Waiting> waiting;
  };
  struct Packet;
  struct Inbox;

  EgressGate() = default;
  void open_filter();
  static int on_packet(nfq_q_handle*, nfgenmsg*, nfq_data* data, void* gate);
  static void on_readable(int fd, short what, void* gate);
  static std::uint64_t key(std::uint32_t client, std::uint16_t client_port, std::uint16_t port);
  static std::uint64_t key(const VirtualAddress& client, std::uint16_t port);
  bool is_ours(std::uint16_t port) const noexcept;
  void judge_some(bool all);
  void judge(std::uint32_t id, const Packet& packet);
  void begin(std::uint64_t its, const Packet& packet);
  void pass(std::uint32_t id) noexcept;
  void drop(std::uint32_t id) noexcept;
  void drop_waiting() noexcept;
  void drop_waiting(Flow& flow) noexcept;
  void add_verdict(std::uint32_t id, int verdict) noexcept;
  void say_verdicts() noexcept;

  std::string address_;
  std::uint16_t number_ = 0;  // of the kernel's queue
  nfq_handle* handle_ = nullptr;
  nfq_q_handle* queue_ = nullptr;
  event* event_ = nullptr;
  std::unique_ptr<EgressFilter> filter_;  // none: each packet comes here
  State state_ = State::kClosed;
  bool takes_down_ = false;
  std::vector<std::uint16_t> ports_;
  std::unordered_map<std::uint64_t, Flow> flows_;  // by client and port
  std::deque<std::uint64_t> begun_;  // those that may never be known, the oldest first
  std::vector<std::uint64_t> changed_;
  std::unique_ptr<Inbox> inbox_;
  std::array<char, 4096> verdicts_;  // messages to the kernel
  std::size_t verdict_bytes_ = 0;
  Counters counters_;
};

}  // namespace crane::proxy
