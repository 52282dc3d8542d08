// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric between hosts without RDMA: frames over TLS links; no thread.
//
// Each pair of replicas has two links (secure_link.h), a log plane and a background plane; the
// smaller id dials.  A write is a frame (key, offset, bytes); the owner's own process checks the
// key, copies the bytes into its log memory and then acknowledges: a completion is an
// acknowledgement sent AFTER the copy.
//
// How each guarantee of fabric.h is met:
//   F1             one stream per peer; a write is copied when its frame is whole.
//   F2, F6         a grant is a number in the owner's control file, compared at each frame:
//   clearing
//                  it is the revoke.  Keys count up from a random start and are persistent.
//   F3             acknowledged means copied, into memory that outlives the process.
//   F4             a queue of operations per peer; completions leave it in order.
//   F5             a refused write, a lost log link, or more than backlog_bytes waiting fail every
//                  outstanding write; the key is then refused here until open_log().
//   F7             the end of the background link: at once when the process dies, after silence_ns
//                  when the network is cut or the peer is stopped.  Hellos carry the incarnation of
//                  the process and the session of the pair: links of different processes or
//                  sessions are never mixed, what is left of an old one is dropped unread.
//   F8, F9         links, queues and their bounds are per peer and plane; long reads go in parts.
//   F10            the owner answers: no other process touches a cell.
//   F9             what is lost on its way is asked for again soon (answer_clock.h), on both
//   planes. FABRIC-F13            frames leave in ring_doorbell(), poll() and prepare_to_sleep(),
//   one send per
//                  plane and peer; arriving bytes make event_fd(), an epoll set, readable.
//   F14            tcp_memory.h.
//
// WHAT DIFFERS FROM SHM.  Nothing completes without the peer's process: while it is stopped,
// operations on it wait, and fail after silence_ns, when the links are given up (kPeerDown).  A
// replica takes part only while it polls: whoever does not poll for silence_ns is dead to others.
// Writes that failed may still land, as long as their key lives.
//
// A third kind of link is not the fabric's (kVisitPlane): it is handed out as soon as it is open,
// and whatever goes over it delays nothing here.
//
// Threads: one.  Errors: of a peer, as events; of the own address or directory, from open().

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/answer_clock.h"
#include "consensus/fabric/fabric.h"
#include "consensus/fabric/lazy_timer.h"
#include "consensus/fabric/link_quiet.h"
#include "consensus/fabric/secure_link.h"
#include "consensus/fabric/tcp_frame.h"
#include "consensus/fabric/tcp_memory.h"

namespace crane::consensus {

struct TcpOptions {
  std::string directory;  // on tmpfs; must exist
  ReplicaId self{};
  std::uint8_t replicas = 3;
  std::uint64_t group = 0;  // the group's secret id: replicas of other groups are refused
  std::uint64_t log_bytes = 128ULL << 20;
  std::vector<Endpoint> endpoints;  // one per replica; own: where to listen
  GroupSecret secret{};             // not all zeros
  // A peer that is not heard for so long is given up.  Pings go four times as often.
  std::uint64_t silence_ns = 1'000'000'000;
  std::uint64_t backlog_bytes = 0;  // of writes on their way to one peer; 0: from log_bytes
  TakeVisitor take_visitor;
};

class TcpFabric final : public Fabric {
 public:
  // kBusy: another process is this replica.  kBadArgument: options.  kSystem: address or directory.
  static Result<std::unique_ptr<TcpFabric>> open(const TcpOptions& options);
  ~TcpFabric() override;

  std::span<std::byte> log_memory() noexcept override { return memory_.log(); }
  bool survived() const noexcept override { return memory_.survived(); }
  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override {
    memory_.set_cell(cell, v);
  }
  CellValue own_cell(std::uint8_t cell) const noexcept override { return memory_.cell(cell); }

  Result<Key> permit_writes(ReplicaId peer) noexcept override;
  void revoke_writes(ReplicaId peer) noexcept override;
  Key permitted(ReplicaId peer) const noexcept override { return memory_.live_key(peer); }

  void open_log(ReplicaId peer, Key key, Token token) noexcept override;
  void close_log(ReplicaId peer) noexcept override;
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override;
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n, Token token) noexcept override;
  void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept override;

  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override;

  std::size_t poll(std::span<FabricEvent> out) noexcept override;
  int event_fd() const noexcept override { return epoll_fd_; }
  bool prepare_to_sleep() noexcept override;
  void wake_self() noexcept override;
  void ring_doorbell(ReplicaId peer) noexcept override;
  bool connected(ReplicaId peer) const noexcept override { return peers_[value(peer)].up; }
  bool quiet(ReplicaId peer) const noexcept override { return peers_[value(peer)].quiet.quiet(); }
  FabricStatus status() const override { return {"", "", "", links_lost_, probes_}; }
  void populate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    memory_.populate(offset, bytes);
  }
  bool back(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    return memory_.back(offset, bytes);
  }
  void clear_log() noexcept override { memory_.clear(); }

  // Operations that have not completed yet, and the rest of a write whose first half was sent: for
  // tests that stop in the middle of sending.
  std::size_t test_only_outstanding() const noexcept;
  void test_only_half_write(ReplicaId peer, Key key, std::uint64_t offset,
                            std::span<const std::byte> bytes, Token token) noexcept;
  void test_only_other_half(ReplicaId peer) noexcept;

 private:
  // A link and what is known of its other end.
  struct Connection {
    std::unique_ptr<SecureLink> link;
    tcp::Plane plane{};
    std::uint8_t peer = kUnknownPeer;  // once it is known
    bool dialled = false;
    bool hello_sent = false;
    bool greeted = false;  // the other side's hello was accepted
    bool more = false;     // there may be bytes that the socket does not announce
    bool dead = false;
    bool wants_write = false;       // as the epoll set knows it
    std::uint64_t deadline_ns = 0;  // to be greeted, and its pair complete
  };
  static constexpr std::uint8_t kUnknownPeer = 0xff;

  struct Op {
    enum class Kind : std::uint8_t { kLog, kCell, kRead };
    enum class State : std::uint8_t { kPending, kOk, kFailed };
    Token token{};
    Kind kind{};
    State state{};
    Key key{};  // kLog
    std::uint64_t sequence = 0;
    std::uint64_t size = 0;       // kRead: wanted
    CellValue cell;               // kCell
    std::vector<std::byte> data;  // kRead
  };

  struct ReadJob {  // a peer reads the own memory
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;
  };

  struct Peer {
    SocketAddress address;
    Connection* connections[tcp::kPlanes] = {};  // dialled, or accepted and greeted
    std::uint64_t dial_at_ns[tcp::kPlanes] = {};
    unsigned tries = 0;
    const char* complaint = nullptr;  // what was said of it last, until it is up
    std::uint64_t session = 0;
    std::uint64_t incarnation = 0;  // of the process at the greeted connections
    bool up = false;
    std::uint64_t heard_ns = 0;
    std::uint64_t sent_ns = 0;  // on the background plane

    // As a writer and reader of the peer's memory.
    std::deque<Op> ops;
    std::uint64_t sequence = 0;
    std::size_t log_pending = 0;     // ops of kind kLog that are pending
    std::uint64_t log_heard_ns = 0;  // last progress of those
    Key used_key{};
    Key failed_key{};              // FABRIC-F5: writes under it fail until open_log
    std::vector<std::byte> early;  // log frames while the log link is made again
    std::vector<std::byte> test_held;
    unsigned requests = 0;  // since the background plane was last all sent
    AnswerClock clocks[tcp::kPlanes];
    LinkQuiet quiet;  // of the background plane

    // As the owner of memory that the peer writes and reads.
    std::uint64_t ack_sequence = 0;
    std::uint8_t ack_flag = 0;
    bool ack_due = false;
    bool landed = false;
    std::deque<ReadJob> jobs;
  };

  struct Waiting {
    FabricEvent event;
    std::size_t at = 0;  // of its data in arena_
    std::size_t size = 0;
    bool in_arena = false;
  };

  explicit TcpFabric(const TcpOptions& options);
  Outcome start();
  Outcome add_to_epoll(int fd, void* tag) noexcept;

  // tcp_links.cc
  bool take_socket_events() noexcept;
  void accept_links() noexcept;
  void pause_listening() noexcept;
  void listen_again() noexcept;
  void dial(ReplicaId id, tcp::Plane plane) noexcept;
  void add_connection(std::unique_ptr<Connection> connection) noexcept;
  void pump(Connection& connection) noexcept;
  void name_connection(Connection& connection) noexcept;
  void forget_connection(Connection& connection) noexcept;
  void take_frames(Connection& connection) noexcept;
  void send_hello(Connection& connection) noexcept;
  bool greet(Connection& connection, const tcp::Frame& frame) noexcept;
  void adopt_accepted(Connection& connection, const tcp::Hello& hello) noexcept;
  void peer_up(ReplicaId id) noexcept;
  void peer_down(ReplicaId id) noexcept;
  void break_log(ReplicaId id) noexcept;
  void connection_failed(Connection& connection) noexcept;
  void close_connection(Connection& connection) noexcept;
  void complain(const Connection& connection, const char* why) noexcept;
  void housekeeping() noexcept;
  void look_after(ReplicaId id) noexcept;
  void arm_timer() noexcept;

  // tcp_quiet.cc
  bool was_late() const noexcept;
  void look_for_quiet_links(bool was_late) noexcept;
  void note_losses() noexcept;
  std::uint64_t quiet_due_ns() const noexcept;

  // tcp.cc
  bool on_frame(Peer& p, ReplicaId id, tcp::Plane plane, const tcp::Frame& frame) noexcept;
  void on_write(Peer& p, ReplicaId id, const tcp::Frame& frame) noexcept;
  void on_ack(Peer& p, const tcp::FrameHead& head) noexcept;
  bool on_read(Peer& p, const tcp::Frame& frame) noexcept;
  bool on_part(Peer& p, const tcp::Frame& frame) noexcept;
  void on_cell(Peer& p, const tcp::Frame& frame) noexcept;
  Op* pending_op(Peer& p, std::uint64_t sequence, Op::Kind kind) noexcept;
  Op& add_op(Peer& p, Token token, Op::Kind kind, bool ok) noexcept;
  void settle(Peer& p, Op& op, bool ok) noexcept;
  void fail_log_ops(Peer& p) noexcept;
  void on_ping(Peer& p, tcp::Plane plane, const tcp::FrameHead& head) noexcept;
  void expect_answer(Peer& p, tcp::Plane plane, std::uint64_t sequence) noexcept;
  void heard_answer(Peer& p, tcp::Plane plane, std::uint64_t sequence) noexcept;
  std::uint64_t probe_due_ns() noexcept;
  void probe_late_answers() noexcept;
  void put_ack(Peer& p) noexcept;
  void serve_reads(Peer& p) noexcept;
  std::vector<std::byte>* out_of(Peer& p, tcp::Plane plane) noexcept;
  void put(Peer& p, tcp::Plane plane, const tcp::FrameHead& head,
           std::span<const std::byte> first = {}, std::span<const std::byte> second = {}) noexcept;
  void flush(Connection& connection) noexcept;
  void flush_all() noexcept;
  void collect_ops() noexcept;
  void tell(const FabricEvent& event, std::span<const std::byte> data = {}) noexcept;
  std::size_t hand_out(std::span<FabricEvent> out) noexcept;

  Peer& peer(ReplicaId id) noexcept;

  TcpOptions options_;
  std::uint64_t incarnation_ = tcp::random_word();
  tcp::TcpMemory memory_;
  std::unique_ptr<LinkContext> context_;
  int epoll_fd_ = -1;
  int listen_fd_ = -1;
  int timer_fd_ = -1;
  int wake_fd_ = -1;
  std::uint64_t now_ns_ = 0;
  LazyTimer timer_;
  std::uint64_t due_ns_ = 0;           // next housekeeping
  std::uint64_t listen_again_ns_ = 0;  // descriptors were missing; 0: it listens
  bool pause_told_ = false;            // since a connection was accepted last
  std::uint64_t kept_ns_ = 0;          // last housekeeping
  std::uint64_t stranger_told_ns_ = 0;
  std::uint64_t links_lost_ = 0;
  std::uint64_t probes_ = 0;
  // All that the sockets had was taken in: the next poll(), with which the owner makes sure that
  // nothing is left, does not ask the kernel.  The one after it does.
  bool drained_ = false;
  bool ops_ready_ = false;  // some operation was settled since the last collect_ops()
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> graveyard_;  // freed by the next poll()
  std::vector<Waiting> waiting_;                        // oldest first, from next_waiting_ on
  std::size_t next_waiting_ = 0;
  std::vector<std::byte> arena_;                  // data of waiting_
  std::deque<std::vector<std::byte>> read_data_;  // of the waiting reads, in order
  std::vector<std::vector<std::byte>> handed_;    // of the reads of the last poll()
};

}  // namespace crane::consensus
