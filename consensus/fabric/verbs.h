// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric of replicas with RDMA: reliable connections over libibverbs (InfiniBand, RoCE,
// soft-RoCE).
//
// Words.  A SLOT is one way to write one replica's log memory: a connection, and at the owner a
// protection domain with one registration of the log memory.  A few spare slots per peer are
// connected and registered ahead of time (tidy()).  A grant gives one slot to a peer, under a key
// that is never reused.
//
// How each guarantee of fabric.h is met:
//   F1      one reliable connection per key: the device delivers in order.  A write that has not
//           completed may be there in part, its first bytes first (the core's entries carry CRCs).
//   F2      Fence.  kDeregister: deregisters the slot's memory, which waits for accesses under way.
//           This also works on soft-RoCE, where the access flags of a connection do not fence.
//           tidy() destroys the slot's connection and its domain later, so a stale packet finds
//           neither.  kQueuePairReset: destroys the connection first, the registration later.
//   F3      a completion is the acknowledgement of the owner's device; the log memory is a file on
//           tmpfs, which outlives the process.
//   F4, F8  a queue of operations per peer; a device's errors fail only that peer's operations.
//   F5      a connection in the error state accepts no more work; open_log binds the key to a fresh
//           slot.
//   F6      keys count up from a random start and are persistent; tidy() does the registration.
//   F7      the bootstrap connection closes when the peer's process dies; an error of the
//           background connection counts as the same.
//   F9      cells, reads and requests have their own connection.
//   F10     two copies with a version and a checksum; a reader repeats the read until it gets a
//           whole copy that is not older than what it has seen.
//   F11     SEND into receives posted ahead; the receiver writes back how many it has consumed, so
//           that every send finds a receive.
//   F13     a bell is a SEND that raises the completion channel's descriptor if the peer has armed
//           it; it is sent when all earlier writes have completed.  The device writes silently:
//           kLanded comes with the bell, or with the writer's death.
//   F14     as shm: files on tmpfs.  A grant that outlived its slot gets another one by open_log.
//
// The whole log memory is registered and so resident: log_bytes of memory are in use, on huge pages
// if HugePages (choices.h) and the machine allow it.
//
// Threads: one.  Processes: the owner of each replica's directory is the process that holds its
// lock. fork(): a child must not use the object.  The device writes only to shared memory.

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consensus/fabric/tmpfs_fabric.h"
#include "consensus/fabric/verbs_bootstrap.h"
#include "consensus/fabric/verbs_device.h"
#include "consensus/fabric/verbs_layout.h"

namespace crane::consensus {

struct VerbsOptions : FabricOptions {
  std::string device{};   // empty: the first usable device
  std::string address{};  // numeric address of this replica's end; empty: any
  Fence fence = Fence::kDeregister;
  std::vector<std::string> flag_devices{};  // Options::fence_flags_devices
  std::uint8_t spares = 2;                  // slots kept ready per peer, 1..kSparesMax
  static constexpr std::uint8_t kSparesMax = 8;
  verbs::RetryPolicy retry{};
  HugePages huge_pages = HugePages::kAuto;
};

class VerbsFabric final : public TmpfsFabric {
 public:
  // kBusy: another process runs as this replica. kNotFound: no RDMA device. kUnsupported: the
  // chosen fence does not work on this device, or required huge pages are not available.  Else
  // kDamaged, kSystem.
  static Result<std::unique_ptr<VerbsFabric>> open(const VerbsOptions& options,
                                                   std::unique_ptr<verbs::Bootstrap> bootstrap);
  ~VerbsFabric() override;

  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override;
  CellValue own_cell(std::uint8_t cell) const noexcept override;

  Result<Key> permit_writes(ReplicaId peer) noexcept override;
  void revoke_writes(ReplicaId peer) noexcept override;
  Key permitted(ReplicaId peer) const noexcept override;

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
  void tidy() noexcept override;

  FabricStatus status() const override {
    return {device_.name(), name(options_.fence), pages_, 0, 0};
  }
  // The number of operations that have not completed.
  std::size_t test_only_outstanding() const noexcept;

 private:
  using Buffer = verbs::Buffers::Buffer;

  // The owner's end of a slot.
  struct OwnSlot {
    std::uint64_t id = 0;
    bool ready = false;  // the writer's end is connected, too
    std::uint32_t psn = 0;
    verbs::Owned<ibv_pd> domain;
    verbs::Owned<ibv_mr> region;
    verbs::Owned<ibv_qp> qp;  // declared last: destroyed first
  };
  // The writer's end.
  struct PeerSlot {
    std::uint64_t id = 0;
    std::uint64_t log_at = 0;
    std::uint32_t rkey = 0;
    std::vector<Buffer> held;  // sources of writes that have not completed
    verbs::Owned<ibv_qp> qp;
  };
  struct Op {
    enum class Kind : std::uint8_t { kOpen, kWrite, kRead, kCell };
    enum class State : std::uint8_t { kWaiting, kPosted, kDone };
    Kind kind{};
    State state = State::kWaiting;
    bool ok = false;
    std::uint8_t cell = 0;
    std::uint16_t tries = 0;
    Token token{};
    Key key{};
    std::uint64_t offset = 0;
    std::span<const std::byte> bytes;  // bytes to write, or bytes read
    Buffer buffer;
  };
  struct Grant {
    Key key{};
    std::optional<OwnSlot> slot;
  };
  enum class Writing : std::uint8_t { kNone, kOpening, kOpen, kFailed };

  struct Peer {
    bool linked = false;  // the bootstrap connection is up
    bool hello = false;   // its hello came, and the background connection is up
    bool ready_sent = false, ready_received = false;
    bool up = false;                  // reported as kPeerUp
    const char* complaint = nullptr;  // the last message about it
    bool broken = false;  // its background connection failed; the next poll() handles it
    // Background plane.
    verbs::Owned<ibv_pd> domain;
    verbs::Owned<ibv_mr> log_region, cells_region, credit_region;
    verbs::Buffers buffers;        // in `domain`
    std::vector<Buffer> receives;  // kReceives receive buffers, then kSendSlots send buffers
    verbs::Owned<ibv_qp> qp;
    std::uint32_t psn = 0;
    verbs::Frame remote{};  // its hello
    std::uint64_t memory = 0;
    std::uint32_t sent = 0;            // SENDs to the peer
    std::uint32_t taken = 0;           // SENDs that the peer has consumed
    std::uint32_t posted = 0;          // background work requests since the last signalled one
    std::uint32_t bg_outstanding = 0;  // signalled, not completed
    std::uint32_t consumed = 0;        // the peer's SENDs that this replica consumed
    std::uint32_t consumed_sent = 0;   // the value of `consumed` last sent to the peer
    bool dirty = false;                // something was sent or written since the last bell
    bool wrote = false;                // something was written since the last bell
    bool bell_due = false;             // ring it as soon as possible
    std::array<std::uint64_t, kCellsMax> seen_version{};
    // Writing into its log.
    std::map<std::uint64_t, PeerSlot> slots;
    Writing writing = Writing::kNone;
    Key key{};  // the key of `writing`, unless kNone
    std::uint64_t slot = 0;
    std::uint32_t serial = 0;    // of this replica's last kOpen request
    std::uint64_t written = 0;   // signalled writes posted, not completed
    std::deque<Op> ops;          // not yet reported, in the order of the calls
    std::uint64_t first_op = 1;  // number of ops.front()
    // Its permission to write here.
    std::optional<Grant> grant;
    std::list<OwnSlot> spares;
    Key pending_open{};             // key of its pending kOpen request; no slot was ready
    std::uint32_t open_serial = 0;  // of the peer's last kOpen request
  };
  struct Mail {
    ReplicaId peer{};
    std::uint32_t slot = 0;  // of peer.receives
    std::uint32_t size = 0;
  };

  VerbsFabric(const VerbsOptions& options, std::unique_ptr<verbs::Bootstrap> bootstrap);

  // verbs_open.cc
  Outcome open_own();
  Outcome choose_pages();
  Outcome open_device();
  Outcome check_fence();
  void look_at_cells() noexcept;

  // verbs_peer.cc: the bootstrap connection; peers up and down
  void take_system_events();
  void take_frames();
  void on_frame(ReplicaId id, std::span<const std::byte> bytes);
  void on_linked(ReplicaId id);
  void on_hello(ReplicaId id, const verbs::Frame& f);
  void send_ready(ReplicaId id);
  void mark_up(ReplicaId id);
  void on_offer(ReplicaId id, const verbs::Frame& f);
  void on_accept(ReplicaId id, const verbs::Frame& f);
  void on_open(ReplicaId id, Key key, std::uint32_t serial);
  void on_opened(ReplicaId id, const verbs::Frame& f);
  Outcome make_background(ReplicaId id);
  Outcome add_spare(ReplicaId id);
  void down(ReplicaId id);
  void complain(ReplicaId id, const Error& e) noexcept;
  void take_broken();
  bool send_frame(ReplicaId id, verbs::Frame f);
  verbs::Frame frame(verbs::FrameKind kind) const noexcept;
  verbs::Frame slot_frame(verbs::FrameKind kind, std::uint64_t slot, const ibv_qp* qp,
                          std::uint32_t psn) const noexcept;

  // The most writes that may be outstanding to one peer, so that all completions fit their queue.
  std::uint32_t slot_sends() const noexcept;

  // verbs_log.cc: grants, and writing into a peer's log
  OwnSlot* ready_spare(Peer& p) noexcept;
  void fence_slot(OwnSlot& slot) noexcept;
  void retire(OwnSlot slot);
  void retire(PeerSlot slot);
  bool begin_writing(Peer& p, ReplicaId id, Key key) noexcept;
  void post_waiting(Peer& p, ReplicaId id) noexcept;
  bool post_write(Peer& p, ReplicaId id, Op& op, std::uint64_t number) noexcept;
  void fail_writing(Peer& p) noexcept;
  void close_writing(Peer& p) noexcept;
  void take_log_completions() noexcept;
  void on_log_completion(const ibv_wc& wc) noexcept;

  // verbs.cc: background plane, events
  Op& add_op(Peer& p, Op::Kind kind, Token token) noexcept;
  Op* find_op(Peer& p, std::uint64_t number) noexcept;
  bool post_read(Peer& p, ReplicaId id, Op& op, std::uint64_t number) noexcept;
  void on_read_completion(Peer& p, ReplicaId id, std::uint64_t number) noexcept;
  bool take_cell(Peer& p, Op& op) noexcept;
  bool send_mail(Peer& p, ReplicaId id, std::uint32_t kind, std::span<const std::byte> body,
                 std::uint32_t reserve) noexcept;
  bool post_marked(Peer& p, ReplicaId id, ibv_sge place, ibv_send_wr work) noexcept;
  bool post_receive(Peer& p, ReplicaId id, std::uint32_t slot) noexcept;
  void return_credits(Peer& p, ReplicaId id, bool all) noexcept;
  void consume(ReplicaId id, std::uint32_t slot) noexcept;
  void ring_due(Peer& p, ReplicaId id) noexcept;
  void take_background() noexcept;
  void take_mail() noexcept;
  void take_queues() noexcept;
  void take_completions(std::span<FabricEvent> out, std::size_t& n) noexcept;
  std::size_t take_writes_first(std::span<FabricEvent> out) noexcept;
  bool something_waits() const noexcept;
  bool arm() noexcept;
  void landed(ReplicaId id) noexcept;

  Peer& peer(ReplicaId id) noexcept { return peer_at(peers_, id); }
  const Peer& peer(ReplicaId id) const noexcept { return peer_at(peers_, id); }
  verbs::Control* own() const noexcept { return control_.as<verbs::Control>(); }

  VerbsOptions options_;
  std::string pages_;
  int wake_fd_ = -1;
  bool writes_only_ = false;  // the last poll() looked only at completed writes
  bool slept_ = true;         // prepare_to_sleep() succeeded since the last look at the epoll set
  std::uint32_t polls_ = 0;
  std::array<std::uint64_t, kCellsMax> cell_version_{};
  void* credits_ = nullptr;  // Credit[replicas], shared memory

  std::unique_ptr<verbs::Bootstrap> bootstrap_;
  verbs::Device device_;
  std::uint32_t inline_bytes_ = 0;
  verbs::Owned<ibv_comp_channel> channel_;
  verbs::Owned<ibv_cq> log_cq_, background_cq_, mail_cq_;
  verbs::Owned<ibv_pd> domain_;      // for the writer's ends
  verbs::Owned<ibv_mr> log_region_;  // this replica's log memory, as the source of writes
  verbs::Buffers staging_;           // other sources; in domain_
  std::vector<Peer> peers_;
  std::vector<OwnSlot> retired_own_;
  std::vector<PeerSlot> retired_;

  std::deque<FabricEvent> waiting_;  // events other than completions and requests
  std::deque<Mail> mail_;
  std::vector<Mail> handed_mail_;                           // handed out by the last poll()
  std::vector<std::pair<ReplicaId, Buffer>> handed_reads_;  // handed out by the last poll()
};

}  // namespace crane::consensus
