// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric between hosts without RDMA: frames over TLS links; no thread.
//
// Each pair of replicas has two links (secure_link.h), a log plane and a background plane; the
// replica with the smaller id dials.  A write is a frame (key, offset, bytes).  The owner's process
// checks the key, copies the bytes into its log memory and then acknowledges: a completion is an
// acknowledgement sent AFTER the copy.
//
// How each guarantee of fabric.h is met:
//   F1             one stream per peer; a write is copied when its frame is complete.
//   F2, F6         a grant is a number in the owner's control file, compared with each frame;
//                  clearing the number is the revoke.  Keys count up from a random start and are
//                  persistent.
//   F3             an acknowledged write is copied, into memory that outlives the process.
//   F4             a queue of operations per peer; completions leave it in order.
//   F5             every outstanding write fails after a refused write, a lost log link, or more
//                  than backlog_bytes waiting.  The writer then refuses the key until open_log().
//   F7             the end of the background link: at once when the process dies, after silence_ns
//                  when the network is cut or the peer is stopped.  Hellos carry the incarnation of
//                  the process and the session of the pair.  So links of different processes or
//                  sessions are never mixed, and the rest of an old link is dropped unread.
//   F8, F9         links, queues and their bounds are per peer and plane; long reads go in parts.
//   F9             probes make TCP repair a lost segment soon (answer_clock.h), on both planes.
//   F10            the owner answers: no other process touches a cell.
//   F13            frames leave in ring_doorbell(), poll() and prepare_to_sleep(), one send per
//                  plane and peer; arriving bytes make event_fd(), an epoll set, readable.
//   F14            tmpfs_fabric.h; only the owner's process maps the files.
//
// WHAT DIFFERS FROM SHM.  Nothing completes without the peer's process.  While it is stopped,
// operations on it wait, and fail after silence_ns, when the links are given up (kPeerDown).  A
// replica takes part only while it polls: if it does not poll for silence_ns, its peers consider it
// dead.  Failed writes may still land while their key is live.
//
// Other links do not belong to the fabric (is_visit()): the fabric hands them out as soon as they
// are open.  Their traffic does not delay the fabric's.
//
// Threads: one.  Errors: a peer's errors are events; open() returns errors of this replica's
// address or directory.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/answer_clock.h"
#include "consensus/fabric/lazy_timer.h"
#include "consensus/fabric/link_quiet.h"
#include "consensus/fabric/secure_link.h"
#include "consensus/fabric/tcp_frame.h"
#include "consensus/fabric/tmpfs_fabric.h"

namespace crane::consensus {

namespace tcp {

inline constexpr std::uint32_t kTcpMemoryVersion = 1;
inline constexpr std::uint64_t kTcpControlMagic = 0x3170635463727243;
struct Control {
  ControlHead head;
  std::uint64_t next_key;                    // from a random start (FABRIC-F6)
  std::uint64_t live_key[kReplicasMax + 1];  // [j]: j's grant, 0 none
  alignas(kLine) Cell cells[kCellsMax];
};

}  // namespace tcp

struct TcpOptions : FabricOptions {
  std::vector<Endpoint> endpoints{};  // one per replica; this replica's: where to listen
  GroupSecret secret{};               // not all zeros
  // A peer that is silent for this long is given up.  Pings are sent four times as often.
  std::uint64_t silence_ns = 1'000'000'000;
  std::uint64_t backlog_bytes = 0;  // limit of writes on their way to one peer; 0: from log_bytes
  TakeVisitor take_visitor{};
};

class TcpFabric final : public TmpfsFabric {
 public:
  // kBusy: another process runs as this replica. kBadArgument: options. kSystem: address or
  // directory.
  static Result<std::unique_ptr<TcpFabric>> open(const TcpOptions& options);
  ~TcpFabric() override;

  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override;
  CellValue own_cell(std::uint8_t cell) const noexcept override;

  Result<Key> permit_writes(ReplicaId peer) noexcept override;
  void revoke_writes(ReplicaId peer) noexcept override;
  Key permitted(ReplicaId peer) const noexcept override {
    return Key{own()->live_key[value(peer)]};
  }

  void open_log(ReplicaId peer, Key key, Token token) noexcept override;
  void close_log(ReplicaId peer) noexcept override;
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override;
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n, Token token) noexcept override;
  void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept override;

  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override;

  std::size_t poll(std::span<FabricEvent> out) noexcept override;
  bool prepare_to_sleep() noexcept override;
  void wake_self() noexcept override;
  void ring_doorbell(ReplicaId peer) noexcept override;
  bool connected(ReplicaId peer) const noexcept override { return peers_[value(peer)].up; }
  bool quiet(ReplicaId peer) const noexcept override { return peers_[value(peer)].quiet.quiet(); }
  FabricStatus status() const override { return {"", "", "", links_lost_, probes_}; }
  void populate(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    log_.populate(offset, bytes);
  }
  bool back(std::uint64_t offset, std::uint64_t bytes) noexcept override {
    return log_.back(offset, bytes);
  }
  void clear_log() noexcept override { log_.clear(); }

  // For tests that stop in the middle of sending: the number of operations that have not completed,
  // and a write sent in two halves.
  std::size_t test_only_outstanding() const noexcept;
  void test_only_half_write(ReplicaId peer, Key key, std::uint64_t offset,
                            std::span<const std::byte> bytes, Token token) noexcept;
  void test_only_other_half(ReplicaId peer) noexcept;

 private:
  // A link and the known facts about its other end.
  struct Connection {
    std::unique_ptr<SecureLink> link;
    tcp::Plane plane{};
    std::uint8_t peer = kUnknownPeer;  // kUnknownPeer until it is known
    bool dialled = false;
    bool hello_sent = false;
    bool greeted = false;  // the other side's hello was accepted
    bool more = false;     // there may be more bytes, without a socket event
    bool dead = false;
    bool wants_write = false;       // as registered in the epoll set
    std::uint64_t deadline_ns = 0;  // for the greeting, and for both links to be up
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

  struct ReadJob {  // a peer reads this replica's memory
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;
  };

  struct Peer {
    SocketAddress address;
    Connection* connections[tcp::kPlanes] = {};  // dialled, or accepted and greeted
    std::uint64_t dial_at_ns[tcp::kPlanes] = {};
    unsigned tries = 0;
    const char* complaint = nullptr;  // the last message about it, until it is up
    std::uint64_t session = 0;
    std::uint64_t incarnation = 0;  // of the peer's process on the greeted connections
    bool up = false;
    std::uint64_t last_received_ns = 0;
    std::uint64_t sent_ns = 0;  // on the background plane

    // State for writes and reads of the peer's memory.
    std::deque<Op> ops;
    std::uint64_t sequence = 0;
    std::size_t log_pending = 0;             // pending ops of kind kLog
    std::uint64_t last_log_progress_ns = 0;  // last progress of those ops
    Key used_key{};
    Key failed_key{};              // FABRIC-F5: writes under it fail until open_log
    std::vector<std::byte> early;  // log frames that wait for a new log link
    std::vector<std::byte> test_held;
    unsigned requests = 0;  // requests since the background plane's queue was last empty
    AnswerClock clocks[tcp::kPlanes];
    LinkQuiet quiet;  // of the background plane

    // State for the peer's writes and reads of this replica's memory.
    std::uint64_t ack_sequence = 0;
    std::uint8_t ack_flag = 0;
    bool ack_due = false;
    bool landed = false;
    std::deque<ReadJob> jobs;
  };

  struct Waiting {
    FabricEvent event;
    std::size_t at = 0;  // position of its data in arena_
    std::size_t size = 0;
    bool in_arena = false;
  };

  explicit TcpFabric(const TcpOptions& options);
  Outcome start();

  // tcp_links.cc
  bool take_socket_events() noexcept;
  void accept_links() noexcept;
  void pause_listening() noexcept;
  void listen_again() noexcept;
  void dial(ReplicaId id, tcp::Plane plane) noexcept;
  void add_connection(std::unique_ptr<Connection> connection) noexcept;
  void pump(Connection& connection) noexcept;
  void watch_writes(Connection& connection) noexcept;
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
  void maintain_peer(ReplicaId id) noexcept;
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
  void on_answer(Peer& p, tcp::Plane plane, std::uint64_t sequence) noexcept;
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
  void report_event(const FabricEvent& event, std::span<const std::byte> data = {}) noexcept;
  std::size_t hand_out(std::span<FabricEvent> out) noexcept;

  Peer& peer(ReplicaId id) noexcept { return peer_at(peers_, id); }
  tcp::Control* own() const noexcept { return control_.as<tcp::Control>(); }

  TcpOptions options_;
  std::uint64_t incarnation_ = random_word();
  std::unique_ptr<LinkContext> context_;
  int listen_fd_ = -1;
  int timer_fd_ = -1;
  int wake_fd_ = -1;
  std::uint64_t now_ns_ = 0;
  LazyTimer timer_;
  std::uint64_t due_ns_ = 0;           // next housekeeping
  std::uint64_t listen_again_ns_ = 0;  // set when descriptors ran out; 0: it listens
  bool pause_reported_ = false;        // reported since the last accepted connection
  std::uint64_t kept_ns_ = 0;          // last housekeeping
  std::uint64_t foreign_reported_ns_ = 0;
  std::uint64_t links_lost_ = 0;
  std::uint64_t probes_ = 0;
  // All bytes of the sockets were read.  So the next poll(), by which the owner makes sure that
  // nothing is left, makes no system call.  The poll() after it does.
  bool drained_ = false;
  bool ops_ready_ = false;  // some operation was settled since the last collect_ops()
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> graveyard_;  // freed by the next poll()
  std::vector<Waiting> waiting_;                        // oldest first, from next_waiting_ on
  std::size_t next_waiting_ = 0;
  std::vector<std::byte> arena_;                  // data of the events in waiting_
  std::deque<std::vector<std::byte>> read_data_;  // data of waiting reads, in order
  std::vector<std::vector<std::byte>> handed_;    // data of the last poll()'s reads
};

}  // namespace crane::consensus
