// SPDX-License-Identifier: Apache-2.0
// VerbsFabric: grants on this replica's log memory, and writes to a peer's.
#include <algorithm>
#include <cstring>

#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_fence.h"
#include "consensus/fabric/verbs_wire.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using verbs::FrameKind;
using verbs::WorkId;
using verbs::WorkKind;

// --- grants -------------------------------------------------------------------------------------

VerbsFabric::OwnSlot* VerbsFabric::ready_spare(Peer& p) noexcept {
  for (OwnSlot& slot : p.spares) {
    if (slot.ready) return &slot;
  }
  return nullptr;
}

Result<Key> VerbsFabric::permit_writes(ReplicaId id) noexcept {
  CRANE_ASSERT(id != options_.self);
  revoke_writes(id);
  Peer& p = peer(id);
  p.grant.emplace(Grant{});
  if (OwnSlot* const slot = ready_spare(p)) {
    p.grant->key = Key{slot->id};
    p.grant->slot = std::move(*slot);
    std::erase_if(p.spares, [&](const OwnSlot& l) { return &l == slot; });
  } else {
    // The peer requests a slot when it begins to write.
    p.grant->key = Key{own()->next_key.fetch_add(1)};
  }
  own()->live_key[value(id)].store(value(p.grant->key), std::memory_order_release);
  return p.grant->key;
}

void VerbsFabric::revoke_writes(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (!p.grant) return;
  if (p.grant->slot) {
    fence_slot(*p.grant->slot);
    retire(std::move(*p.grant->slot));
  }
  own()->live_key[value(id)].store(0, std::memory_order_release);
  if (p.pending_open == p.grant->key && p.pending_open != kNoKey) {
    verbs::Frame no = frame(FrameKind::kRefused);
    no.serial = p.open_serial;
    send_frame(id, no);
  }
  p.pending_open = kNoKey;
  p.grant.reset();
}

Key VerbsFabric::permitted(ReplicaId id) const noexcept {
  const Peer& p = peer(id);
  return p.grant ? p.grant->key : kNoKey;
}

// FABRIC-F2.  When it returns the device executes nothing more for this slot.
void VerbsFabric::fence_slot(OwnSlot& slot) noexcept {
  const int failed = take_back(options_.fence, slot.qp, slot.region);
  CRANE_ASSERT(failed == 0);
}

// tidy() destroys retired slots: destruction is slow, and a retired slot is harmless.
void VerbsFabric::retire(OwnSlot slot) { retired_own_.push_back(std::move(slot)); }

void VerbsFabric::retire(PeerSlot slot) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(slot.qp.get(), &attr, IBV_QP_STATE);
  retired_.push_back(std::move(slot));
}

void VerbsFabric::tidy() noexcept {
  // One step per call: the device may take long for each.
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    const Peer& p = peers_[i];
    if (p.up && p.spares.size() < options_.spares && add_spare(ReplicaId{i}).ok()) return;
  }
  if (!retired_own_.empty()) {
    retired_own_.pop_back();
  } else if (!retired_.empty()) {
    const std::vector<Buffer> held = std::move(retired_.back().held);
    retired_.pop_back();
    for (const Buffer& b : held) staging_.return_buffer(b);
  }
}

std::uint32_t VerbsFabric::slot_sends() const noexcept {
  return std::min(verbs::kSlotSends, verbs::kCompletions / options_.replicas / 2);  // VERBS-V3
}

// --- writing ------------------------------------------------------------------------------------

// Connects under a key that has not been used yet.  False: it is impossible.
bool VerbsFabric::begin_writing(Peer& p, ReplicaId id, Key key) noexcept {
  p.key = key;
  p.slot = 0;
  p.written = 0;
  if (!p.up || key == kNoKey) {
    p.writing = Writing::kFailed;
    return false;
  }
  if (p.slots.contains(value(key))) {  // the grant's slot, connected ahead of time
    p.slot = value(key);
    p.writing = Writing::kOpen;
    return true;
  }
  p.writing = Writing::kOpening;
  verbs::Frame ask = frame(FrameKind::kOpen);
  ask.key = value(key);
  ask.serial = ++p.serial;
  if (!send_frame(id, ask)) p.writing = Writing::kFailed;
  return p.writing != Writing::kFailed;
}

// FABRIC-F5: operations that have not completed fail, as do all later ones under this key.
void VerbsFabric::fail_writing(Peer& p) noexcept {
  p.writing = Writing::kFailed;
  p.written = 0;
  const auto slot = p.slots.find(p.slot);
  for (Op& op : p.ops) {
    if (op.kind != Op::Kind::kWrite && op.kind != Op::Kind::kOpen) continue;
    if (op.state == Op::State::kDone) continue;
    op.state = Op::State::kDone;
    if (op.buffer.at == nullptr) continue;
    // The device may still read it.
    if (slot != p.slots.end()) slot->second.held.push_back(op.buffer);
    op.buffer = {};
  }
  if (slot != p.slots.end()) {
    retire(std::move(slot->second));
    p.slots.erase(slot);
  }
  p.slot = 0;
}

void VerbsFabric::close_writing(Peer& p) noexcept {
  if (p.writing == Writing::kOpen || p.writing == Writing::kOpening) fail_writing(p);
}

void VerbsFabric::close_log(ReplicaId id) noexcept { close_writing(peer(id)); }

void VerbsFabric::open_log(ReplicaId id, Key key, Token token) noexcept {
  Peer& p = peer(id);
  close_writing(p);
  Op& op = add_op(p, Op::Kind::kOpen, token);
  op.key = key;
  // Always request a slot: the answer shows whether the key is live.
  if (const auto slot = p.slots.find(value(key)); slot != p.slots.end()) {
    retire(std::move(slot->second));
    p.slots.erase(slot);
  }
  if (!begin_writing(p, id, key)) op.state = Op::State::kDone;
}

void VerbsFabric::write(ReplicaId id, Key key, std::uint64_t offset,
                        std::span<const std::byte> bytes, Token token) noexcept {
  Peer& p = peer(id);
  if (p.key != key || p.writing == Writing::kNone) {
    close_writing(p);
    begin_writing(p, id, key);
  }
  Op& op = add_op(p, Op::Kind::kWrite, token);
  op.key = key;
  op.offset = offset;
  op.bytes = bytes;
  if (p.writing == Writing::kFailed) {
    op.state = Op::State::kDone;
    return;
  }
  if (offset > options_.log_bytes || bytes.size() > options_.log_bytes - offset) {
    fail_writing(p);
    return;
  }
  if (p.writing == Writing::kOpen) {
    if (p.written >= slot_sends() / 2) take_log_completions();
    if (p.writing == Writing::kOpen && !post_write(p, id, op, p.first_op + p.ops.size() - 1)) {
      fail_writing(p);
    }
  }
  p.dirty = p.wrote = true;
}

void VerbsFabric::post_waiting(Peer& p, ReplicaId id) noexcept {
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    Op& op = p.ops[i];
    if (op.kind != Op::Kind::kWrite || op.state != Op::State::kWaiting) continue;
    if (!post_write(p, id, op, p.first_op + i)) {
      fail_writing(p);
      return;
    }
  }
}

// Posts one signalled work request.  A write larger than the device's messages has unsignalled
// requests before it, which the last request's completion covers.
bool VerbsFabric::post_write(Peer& p, ReplicaId id, Op& op, std::uint64_t number) noexcept {
  const auto slot = p.slots.find(p.slot);
  if (slot == p.slots.end()) return false;
  const std::size_t size = op.bytes.size();
  const std::byte* from = op.bytes.data();
  std::uint32_t lkey = 0;
  const bool inlined = size <= inline_bytes_;
  if (!inlined) {
    lkey = log_region_->lkey;
    if (from < log_.data() || from + size > log_.data() + log_.size()) {
      auto buffer = staging_.take(size);
      if (!buffer) return false;
      op.buffer = buffer.value();
      std::memcpy(op.buffer.at, from, size);
      from = op.buffer.at;
      lkey = op.buffer.lkey;
    }
  }
  const std::size_t most = device_.max_message();
  std::size_t done = 0;
  do {
    const std::size_t n = std::min(size - done, most);
    ibv_sge place{reinterpret_cast<std::uint64_t>(from + done), static_cast<std::uint32_t>(n),
                  lkey};
    ibv_send_wr work{};
    work.wr_id = WorkId{WorkKind::kOperation, id, number}.packed();
    work.sg_list = &place;
    work.num_sge = n == 0 ? 0 : 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    if (done + n == size) work.send_flags |= IBV_SEND_SIGNALED;
    if (inlined) work.send_flags |= IBV_SEND_INLINE;
    work.wr.rdma.remote_addr = slot->second.log_at + op.offset + done;
    work.wr.rdma.rkey = slot->second.rkey;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(slot->second.qp.get(), &work, &bad) != 0) return false;
    done += n;
  } while (done < size);
  op.state = Op::State::kPosted;
  ++p.written;
  return true;
}

void VerbsFabric::take_log_completions() noexcept {
  verbs::take_all<32>(log_cq_.get(), [this](const ibv_wc& wc) { on_log_completion(wc); });
}

void VerbsFabric::on_log_completion(const ibv_wc& wc) noexcept {
  const WorkId work = WorkId::of(wc.wr_id);
  Peer& p = peer(work.peer);
  Op* const op = find_op(p, work.number);
  // Ignore completions of a slot that was closed meanwhile: its operations are finished.
  if (op == nullptr || op->kind != Op::Kind::kWrite || op->state != Op::State::kPosted) return;
  if (wc.status != IBV_WC_SUCCESS) {
    fail_writing(p);
    return;
  }
  op->ok = true;
  op->state = Op::State::kDone;
  if (op->buffer.at != nullptr) staging_.return_buffer(op->buffer);
  op->buffer = {};
  --p.written;
}

}  // namespace crane::consensus
