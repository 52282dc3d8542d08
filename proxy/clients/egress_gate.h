// SPDX-License-Identifier: Apache-2.0
#pragma once
// All packets that leave this host from the virtual address pass the gate.  A client receives no
// acknowledgement of a byte before the log has committed that byte (NETWORK N7, N9).
//
// A kernel acknowledges bytes as they arrive, and a client forgets acknowledged bytes.  Bytes that
// an earlier leader's kernel had and the log does not have would be lost with that host.  So each
// packet of the address waits in a queue of the kernel's packet filter (NFQUEUE) until the bytes
// that it acknowledges are committed.  If no process reads the queue, nothing leaves: a node that
// is killed or stopped sends its clients no FIN and no RST, and neither does a deposed node.
//
//   follows: closed -- leads: takes_over() -- open() ..  -- deposed: close()
//
// While the node lives, a filter in the kernel passes most packets, so that they do not wait in the
// queue (egress_filter.h).
// After a node was killed or stopped, its earlier output is retransmitted for another 50 ms.
//
// Needs CAP_NET_ADMIN, and Debian's iptables once at the start.  IPv4 only.
// Threads: the loop's.
// Errors: Result; then connections end with their leader, as they do without a virtual address.
// INVARIANT GATE-1  No packet of a connection leaves that acknowledges more than allow() permits.
// INVARIANT GATE-2  No packet of the address leaves a host whose node does not lead, and no packet
//                   of a connection leaves a host whose node has no quorum.

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
  // `address`: IPv4.  Packets that an earlier process of this host has queued keep waiting, and are
  // dropped.
  static Result<std::unique_ptr<EgressGate>> open(event_base* base, const std::string& address);
  // After take_down() packets of the address leave freely; otherwise none leaves any more.
  ~EgressGate();
  EgressGate(const EgressGate&) = delete;
  EgressGate& operator=(const EgressGate&) = delete;

  // Crane does not use the other ports of the address: their packets leave unchanged.
  void add_port(std::uint16_t port) { ports_.push_back(port); }

  // This replica begins to lead.  The kernel does not know the earlier leader's connections yet,
  // and would reset them: resets are dropped until go_on().
  void take_over() noexcept;
  void go_on();
  // The replica has no quorum, so another host may lead.  Meanwhile no packet of a connection
  // leaves, and waiting packets are dropped.  A client without a connection is refused.
  void silence(bool on) noexcept;
  // Judges all packets that the kernel has queued so far.
  void flush();
  // The replica no longer leads; waiting packets are dropped (GATE-2).
  void close() noexcept;

  // The connection's initial sequence numbers; nullopt: this host's kernel has not accepted it.
  std::optional<Handshake> handshake_of(const VirtualAddress& client, std::uint16_t port) const;
  // The client's bytes before sequence number `next` are committed.  Packets of a connection wait
  // from the time when it is made; on this host, also from the time when it is known.
  void allow(const VirtualAddress& client, std::uint16_t port, std::uint32_t next);
  // The connection has ended: the kernel's last packets leave.
  void forget(const VirtualAddress& client, std::uint16_t port);
  // Passes all calls of allow() and forget() since the last time to the kernel: one system call for
  // many packets.
  void resume_reading();

  struct Counters {
    std::uint64_t passed = 0, held = 0, dropped = 0;  // held: packets that had to wait
  };
  const Counters& counters() const noexcept { return counters_; }
  // Whether most packets bypass the node.
  bool filters() const noexcept { return filter_ != nullptr; }
  // An orderly end: packets of the address leave freely when this object is gone.
  void take_down() noexcept { removes_rule_ = true; }

 private:
  enum class State : std::uint8_t { kClosed, kTakesOver, kOpen, kSilenced };
  struct Waiting {
    std::uint32_t id;  // the kernel's number
    std::uint32_t acknowledges;
  };
  struct Flow {
    std::uint32_t next = 0;  // sequence number before which bytes may be acknowledged
    bool known = false;      // the connection is in the log
    bool changed = false;    // since resume_reading()
    bool filtered = false;   // the filter knows this flow
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
  void decide_packets(bool all);
  void decide(std::uint32_t id, const Packet& packet);
  void begin(std::uint64_t its, const Packet& packet);
  void pass(std::uint32_t id) noexcept;
  void drop(std::uint32_t id) noexcept;
  void drop_waiting() noexcept;
  void drop_waiting(Flow& flow) noexcept;
  void add_verdict(std::uint32_t id, int verdict) noexcept;
  void send_verdicts() noexcept;

  std::string address_;
  std::uint16_t number_ = 0;  // number of the kernel's queue
  nfq_handle* handle_ = nullptr;
  nfq_q_handle* queue_ = nullptr;
  event* event_ = nullptr;
  std::unique_ptr<EgressFilter> filter_;  // null: each packet waits in the queue
  State state_ = State::kClosed;
  bool removes_rule_ = false;
  std::vector<std::uint16_t> ports_;
  std::unordered_map<std::uint64_t, Flow> flows_;  // by client and port
  std::deque<std::uint64_t> begun_;  // flows that may never become known, oldest first
  std::vector<std::uint64_t> changed_;
  std::unique_ptr<Inbox> inbox_;
  std::array<char, 4096> verdicts_;  // messages to the kernel
  std::size_t verdict_bytes_ = 0;
  Counters counters_;
};

}  // namespace crane::proxy
