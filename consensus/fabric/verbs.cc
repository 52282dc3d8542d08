// SPDX-License-Identifier: Apache-2.0
// VerbsFabric: cells, the background plane, events.
#include "consensus/fabric/verbs.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "consensus/fabric/verbs_wire.h"
#include "dmt/base/crc.h"

namespace crane::consensus {

using verbs::CellCopy;
using verbs::Credit;
using verbs::MailHead;
using verbs::WorkId;
using verbs::WorkKind;

namespace {

// An owner that never sleeps checks the epoll set once in this many polls.
constexpr std::uint32_t kSystemEventsEvery = 64;
constexpr std::uint16_t kCellTriesMax = 200;
constexpr std::uint32_t kBellReserve = 8;  // receives reserved for bells
constexpr std::uint32_t kCreditsEvery = 16;
constexpr int kBatch = 16;  // completions taken at once

std::uint64_t check_of(const CellCopy& c) noexcept { return crc64(&c, offsetof(CellCopy, check)); }

// A fresh cell is all zero.
bool whole(const CellCopy& c) noexcept {
  if (c.version != 0) return c.check == check_of(c);
  return c.check == 0 && std::all_of(std::begin(c.words), std::end(c.words),
                                     [](std::uint64_t w) { return w == 0; });
}

// Returns the newest complete copy, or null.
const CellCopy* newest(const verbs::Cell& cell) noexcept {
  const CellCopy* best = nullptr;
  for (const CellCopy& c : cell.copy) {
    if (whole(c) && (best == nullptr || c.version > best->version)) best = &c;
  }
  return best;
}

}  // namespace

// --- own memory ---------------------------------------------------------------------------------

void VerbsFabric::set_cell(std::uint8_t cell, const CellValue& v) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  CellCopy next{};
  next.version = ++cell_version_[cell];
  std::copy(std::begin(v.words), std::end(v.words), next.words);
  next.check = check_of(next);
  std::memcpy(&own()->cells[cell].copy[next.version % 2], &next, sizeof next);
  std::atomic_thread_fence(std::memory_order_release);
}

CellValue VerbsFabric::own_cell(std::uint8_t cell) const noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  const CellCopy* const c = newest(own()->cells[cell]);
  CRANE_ASSERT(c != nullptr);  // FABRIC-F10: one copy is complete, wherever the owner died
  CellValue v;
  std::copy(std::begin(c->words), std::end(c->words), v.words);
  return v;
}

// After a restart: continues the version numbers.
void VerbsFabric::look_at_cells() noexcept {
  for (std::uint8_t i = 0; i < kCellsMax; ++i) {
    const CellCopy* const c = newest(own()->cells[i]);
    CRANE_ASSERT(c != nullptr);
    cell_version_[i] = c->version;
  }
}

// --- operations ---------------------------------------------------------------------------------

VerbsFabric::Op& VerbsFabric::add_op(Peer& p, Op::Kind kind, Token token) noexcept {
  Op& op = p.ops.emplace_back();
  op.kind = kind;
  op.token = token;
  return op;
}

VerbsFabric::Op* VerbsFabric::find_op(Peer& p, std::uint64_t number) noexcept {
  if (number < p.first_op || number - p.first_op >= p.ops.size()) return nullptr;
  return &p.ops[number - p.first_op];
}

void VerbsFabric::read(ReplicaId id, std::uint64_t offset, std::uint64_t n, Token token) noexcept {
  CRANE_ASSERT(n <= kReadBytesMax);
  Peer& p = peer(id);
  Op& op = add_op(p, Op::Kind::kRead, token);
  op.offset = offset;
  op.bytes = {static_cast<const std::byte*>(nullptr), n};
  if (!p.up || offset > options_.log_bytes || n > options_.log_bytes - offset) {
    op.state = Op::State::kDone;
    return;
  }
  post_read(p, id, op, p.first_op + p.ops.size() - 1);
}

void VerbsFabric::read_cell(ReplicaId id, std::uint8_t cell, Token token) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  Peer& p = peer(id);
  Op& op = add_op(p, Op::Kind::kCell, token);
  op.cell = cell;
  if (!p.up) {
    op.state = Op::State::kDone;
    return;
  }
  post_read(p, id, op, p.first_op + p.ops.size() - 1);
}

// False when the read must wait until others complete.
bool VerbsFabric::post_read(Peer& p, ReplicaId id, Op& op, std::uint64_t number) noexcept {
  if (p.bg_outstanding >= verbs::kReadsOutstandingMax) return false;
  const bool cell = op.kind == Op::Kind::kCell;
  const std::size_t size = cell ? sizeof(verbs::Cell) : op.bytes.size();
  if (op.buffer.at == nullptr) {
    auto buffer = p.buffers.take(size);
    if (!buffer) {
      op.state = Op::State::kDone;
      return true;
    }
    op.buffer = buffer.value();
  }
  ibv_sge place{reinterpret_cast<std::uint64_t>(op.buffer.at), static_cast<std::uint32_t>(size),
                op.buffer.lkey};
  ibv_send_wr work{};
  work.wr_id = WorkId{WorkKind::kOperation, id, number}.packed();
  work.sg_list = &place;
  work.num_sge = size == 0 ? 0 : 1;
  work.opcode = IBV_WR_RDMA_READ;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr =
      cell ? p.remote.cells_at + op.cell * sizeof(verbs::Cell) : p.remote.log_at + op.offset;
  work.wr.rdma.rkey = cell ? p.remote.cells_rkey : p.remote.log_rkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(p.qp.get(), &work, &bad) != 0) return false;
  ++p.bg_outstanding;
  op.state = Op::State::kPosted;
  return true;
}

// FABRIC-F10: false when no copy is complete, or the newest is older than one already seen.
bool VerbsFabric::take_cell(Peer& p, Op& op) noexcept {
  verbs::Cell seen;
  std::memcpy(&seen, op.buffer.at, sizeof seen);
  const CellCopy* const c = newest(seen);
  if (c == nullptr || c->version < p.seen_version[op.cell]) return false;
  p.seen_version[op.cell] = c->version;
  std::memmove(op.buffer.at, c->words, sizeof c->words);
  op.bytes = {op.buffer.at, sizeof(CellValue)};
  return true;
}

void VerbsFabric::on_read_completion(Peer& p, ReplicaId id, std::uint64_t number) noexcept {
  Op* const op = find_op(p, number);
  if (op == nullptr || op->state != Op::State::kPosted) return;
  if (op->kind == Op::Kind::kCell && !take_cell(p, *op)) {
    op->state = Op::State::kWaiting;
    if (++op->tries < kCellTriesMax && post_read(p, id, *op, number)) return;
    op->state = Op::State::kDone;  // the owner overtook the reader each time
    return;
  }
  if (op->kind == Op::Kind::kRead) op->bytes = {op->buffer.at, op->bytes.size()};
  op->ok = true;
  op->state = Op::State::kDone;
}

// --- requests and bells -------------------------------------------------------------------------

bool VerbsFabric::post_receive(Peer& p, ReplicaId id, std::uint32_t slot) noexcept {
  const Buffer& b = p.receives[slot];
  ibv_sge place{reinterpret_cast<std::uint64_t>(b.at), verbs::kMailBytesMax, b.lkey};
  ibv_recv_wr work{};
  work.wr_id = WorkId{WorkKind::kReceive, id, slot}.packed();
  work.sg_list = &place;
  work.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(p.qp.get(), &work, &bad) == 0;
}

// Posts a send whose completion is not awaited.
bool VerbsFabric::post_marked(Peer& p, ReplicaId id, ibv_sge place, ibv_send_wr work) noexcept {
  work.wr_id = WorkId{WorkKind::kMark, id, 0}.packed();
  work.sg_list = &place;
  work.num_sge = 1;
  // One in kSignalEvery is signalled: its completion frees the places of those before it.
  const bool signalled = ++p.posted % verbs::kSignalEvery == 0;
  if (signalled) work.send_flags |= IBV_SEND_SIGNALED;
  if (place.length <= inline_bytes_) work.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(p.qp.get(), &work, &bad) != 0) return false;
  if (signalled) ++p.bg_outstanding;
  return true;
}

// Sends if more than `reserve` receives are free at the peer.
bool VerbsFabric::send_mail(Peer& p, ReplicaId id, std::uint32_t kind,
                            std::span<const std::byte> body, std::uint32_t reserve) noexcept {
  const Credit& c = static_cast<const Credit*>(credits_)[value(id)];
  const std::uint32_t consumed = c.consumed.load(std::memory_order_acquire);
  if (c.inverse.load(std::memory_order_relaxed) == ~consumed) p.taken = consumed;
  if (p.sent - p.taken >= verbs::kReceives - reserve) return false;
  // A slot is reused after kSendSlots sends; by then the peer has consumed its message.
  const Buffer& b = p.receives[verbs::kReceives + p.sent % verbs::kSendSlots];
  const MailHead head{kind, static_cast<std::uint32_t>(body.size())};
  std::memcpy(b.at, &head, sizeof head);
  if (!body.empty()) std::memcpy(b.at + sizeof head, body.data(), body.size());
  const auto size = static_cast<std::uint32_t>(sizeof head + body.size());
  ibv_send_wr work{};
  work.opcode = IBV_WR_SEND;
  if (kind != verbs::kMailRequest) work.send_flags |= IBV_SEND_SOLICITED;
  if (!post_marked(p, id, {reinterpret_cast<std::uint64_t>(b.at), size, b.lkey}, work)) {
    return false;
  }
  ++p.sent;
  return true;
}

bool VerbsFabric::send_request(ReplicaId id, std::span<const std::byte> body) noexcept {
  CRANE_ASSERT(body.size() <= kRequestBytesMax);
  Peer& p = peer(id);
  if (!p.up || !send_mail(p, id, verbs::kMailRequest, body, kBellReserve)) return false;
  p.dirty = true;
  return true;
}

// Writes to the peer how many of its messages this replica has consumed.
void VerbsFabric::return_credits(Peer& p, ReplicaId id, bool all) noexcept {
  const std::uint32_t untold = p.consumed - p.consumed_sent;
  if (!p.up || untold == 0 || (!all && untold < kCreditsEvery)) return;
  const std::uint32_t words[2] = {p.consumed, ~p.consumed};
  const Buffer& b = p.receives[verbs::kReceives + verbs::kSendSlots];
  std::memcpy(b.at, words, sizeof words);
  ibv_send_wr work{};
  work.opcode = IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = p.remote.credit_at;
  work.wr.rdma.rkey = p.remote.credit_rkey;
  if (post_marked(p, id, {reinterpret_cast<std::uint64_t>(b.at), sizeof words, b.lkey}, work)) {
    p.consumed_sent = p.consumed;
  }
}

// The message in this slot was processed: another one may come there.
void VerbsFabric::consume(ReplicaId id, std::uint32_t slot) noexcept {
  Peer& p = peer(id);
  post_receive(p, id, slot);
  ++p.consumed;
  return_credits(p, id, false);
}

void VerbsFabric::ring_doorbell(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (!p.dirty || !p.up) return;
  p.bell_due = true;
  if (p.written != 0) take_log_completions();
  ring_due(p, id);
}

// The bell waits until all earlier writes have completed.  A bell that overtook a write would wake
// the peer for nothing, and no later bell would follow.
void VerbsFabric::ring_due(Peer& p, ReplicaId id) noexcept {
  if (!p.bell_due || !p.up || p.written != 0 || p.writing == Writing::kOpening) return;
  if (!send_mail(p, id, p.wrote ? verbs::kMailBellLanded : verbs::kMailBell, {}, 0)) return;
  p.bell_due = p.dirty = p.wrote = false;
}

void VerbsFabric::landed(ReplicaId id) noexcept {
  if (peer(id).grant) waiting_.push_back({FabricEvent::Kind::kLanded, id, true, {}, {}});
}

// --- queues -------------------------------------------------------------------------------------

void VerbsFabric::take_background() noexcept {
  verbs::take_all<kBatch>(background_cq_.get(), [this](const ibv_wc& done) {
    const WorkId work = WorkId::of(done.wr_id);
    Peer& p = peer(work.peer);
    if (!p.qp || p.qp->qp_num != done.qp_num) return;  // completion of an earlier connection
    if (done.status != IBV_WC_SUCCESS) {
      p.broken = true;
      return;
    }
    --p.bg_outstanding;
    if (work.kind != WorkKind::kOperation) return;
    on_read_completion(p, work.peer, work.number);
    for (std::size_t k = 0; k < p.ops.size(); ++k) {  // rare: more reads were requested than fit
      Op& op = p.ops[k];
      if (op.state != Op::State::kWaiting || p.bg_outstanding >= verbs::kReadsOutstandingMax)
        continue;
      if (op.kind != Op::Kind::kRead && op.kind != Op::Kind::kCell) continue;
      post_read(p, work.peer, op, p.first_op + k);
    }
  });
}

void VerbsFabric::take_mail() noexcept {
  verbs::take_all<kBatch>(mail_cq_.get(), [this](const ibv_wc& done) {
    const WorkId work = WorkId::of(done.wr_id);
    Peer& p = peer(work.peer);
    if (!p.qp || p.qp->qp_num != done.qp_num) return;
    if (done.status != IBV_WC_SUCCESS) {
      p.broken = true;
      return;
    }
    const auto slot = static_cast<std::uint32_t>(work.number);
    MailHead head{};
    std::memcpy(&head, p.receives[slot].at, sizeof head);
    if (head.kind == verbs::kMailRequest) {
      const std::uint32_t most = std::max<std::uint32_t>(done.byte_len, sizeof head);
      mail_.push_back(
          {work.peer, slot, std::min<std::uint32_t>(head.size, most - std::uint32_t{sizeof head})});
      return;
    }
    if (head.kind == verbs::kMailBellLanded) landed(work.peer);
    consume(work.peer, slot);
  });
}

void VerbsFabric::take_queues() noexcept {
  take_log_completions();
  take_background();
  take_mail();
  for (std::uint8_t i = 0; i < options_.replicas; ++i) ring_due(peers_[i], ReplicaId{i});
}

// --- events -------------------------------------------------------------------------------------

void VerbsFabric::take_completions(std::span<FabricEvent> out, std::size_t& n) noexcept {
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    Peer& p = peers_[i];
    while (!p.ops.empty() && p.ops.front().state == Op::State::kDone && n < out.size()) {
      const Op& op = p.ops.front();
      const bool data = op.ok && (op.kind == Op::Kind::kRead || op.kind == Op::Kind::kCell);
      out[n++] = {FabricEvent::Kind::kCompletion, ReplicaId{i}, op.ok, op.token,
                  data ? op.bytes : std::span<const std::byte>{}};
      if (op.buffer.at != nullptr) handed_reads_.emplace_back(ReplicaId{i}, op.buffer);
      p.ops.pop_front();
      ++p.first_op;
    }
  }
}

// Completed writes commit entries, and clients wait for these.  All other events wait for the next
// poll(), which always looks at everything (FABRIC-F9).
std::size_t VerbsFabric::take_writes_first(std::span<FabricEvent> out) noexcept {
  std::size_t n = 0;
  const bool due =
      !writes_only_ && waiting_.empty() &&
      std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.written != 0; });
  if (due) {
    take_log_completions();
    take_completions(out, n);
  }
  writes_only_ = n > 0;
  return n;
}

std::size_t VerbsFabric::poll(std::span<FabricEvent> out) noexcept {
  CRANE_ASSERT(!out.empty());
  for (const auto& [id, buffer] : handed_reads_) peer(id).buffers.return_buffer(buffer);
  handed_reads_.clear();
  for (const Mail& m : handed_mail_) consume(m.peer, m.slot);
  handed_mail_.clear();
  if (const std::size_t n = take_writes_first(out); n > 0) return n;
  if (slept_ || ++polls_ % kSystemEventsEvery == 0) {
    slept_ = false;
    take_system_events();
  }
  take_queues();
  take_broken();
  std::size_t n = 0;
  for (; !waiting_.empty() && n < out.size(); waiting_.pop_front()) out[n++] = waiting_.front();
  take_completions(out, n);
  for (; !mail_.empty() && n < out.size(); mail_.pop_front()) {
    const Mail& m = mail_.front();
    const std::byte* const body = peer(m.peer).receives[m.slot].at + sizeof(MailHead);
    out[n++] = {FabricEvent::Kind::kRequest, m.peer, true, {}, {body, m.size}};
    handed_mail_.push_back(m);
  }
  return n;
}

bool VerbsFabric::something_waits() const noexcept {
  if (!waiting_.empty() || !mail_.empty()) return true;
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& p) {
    return p.broken || (!p.ops.empty() && p.ops.front().state == Op::State::kDone);
  });
}

// The next completion of this replica, or the next bell of a peer, will make the channel readable.
bool VerbsFabric::arm() noexcept {
  bool log = false;
  bool background = false;
  for (const Peer& p : peers_) {
    log = log || p.written != 0;
    background = background || p.bg_outstanding != 0;
  }
  return ibv_req_notify_cq(mail_cq_.get(), 1) == 0 &&
         (!log || ibv_req_notify_cq(log_cq_.get(), 0) == 0) &&
         (!background || ibv_req_notify_cq(background_cq_.get(), 0) == 0);
}

bool VerbsFabric::prepare_to_sleep() noexcept {
  take_queues();
  if (something_waits()) return false;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    return_credits(peers_[i], ReplicaId{i}, true);
  }
  // FABRIC-F13: arm first, then look a last time.
  if (!arm()) return false;
  take_queues();
  if (something_waits()) return false;
  slept_ = true;
  return true;
}

std::size_t VerbsFabric::test_only_outstanding() const noexcept {
  std::size_t n = 0;
  for (const Peer& p : peers_) {
    for (const Op& op : p.ops) n += op.state == Op::State::kDone ? 0 : 1;
  }
  return n;
}

void VerbsFabric::wake_self() noexcept {
  slept_ = true;  // so that the next poll() empties the eventfd
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t sent = ::write(wake_fd_, &one, sizeof one);
}

}  // namespace crane::consensus
