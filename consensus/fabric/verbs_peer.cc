// SPDX-License-Identifier: Apache-2.0
// VerbsFabric: frames of the bootstrap connections; connects and disconnects peers.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_wire.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using verbs::Credit;
using verbs::Frame;
using verbs::FrameKind;
using verbs::Owned;
using verbs::Remote;

namespace {

constexpr std::size_t kLanesMax = 2 + 2 * VerbsOptions::kSparesMax;

Remote remote_of(const Frame& f) noexcept {
  Remote out;
  out.qpn = f.qpn;
  out.psn = f.psn;
  out.mtu = f.mtu;
  out.lid = static_cast<std::uint16_t>(f.lid);
  std::memcpy(out.gid.raw, f.gid, sizeof f.gid);
  return out;
}

}  // namespace

// Reports an operation of libibverbs that failed while a connection was made.  It affects only that
// peer and is retried; the same error is reported once.
void VerbsFabric::complain(ReplicaId id, const Error& e) noexcept {
  Peer& p = peer(id);
  if (p.complaint == e.what) return;
  p.complaint = e.what;
  Message() << "no RDMA connection: r" << static_cast<unsigned>(value(id)) << ": " << e.what
            << ": errno " << e.detail;
}

// --- system events ------------------------------------------------------------------------------

void VerbsFabric::take_system_events() {
  epoll_event events[8];
  const int n = ::epoll_wait(epoll_fd_, events, 8, 0);
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_fd_) {
      std::uint64_t times = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_fd_, &times, sizeof times);
    } else if (fd == channel_->fd) {
      ibv_cq* cq = nullptr;
      void* unused = nullptr;
      while (ibv_get_cq_event(channel_.get(), &cq, &unused) == 0) ibv_ack_cq_events(cq, 1);
    } else if (fd == device_.context()->async_fd) {
      ibv_async_event e{};
      while (ibv_get_async_event(device_.context(), &e) == 0) {
        // Errors of connections also come as completions.  Of the other events only this one is
        // reported nowhere else.
        if (e.event_type == IBV_EVENT_DEVICE_FATAL) {
          Message() << "RDMA device failed: " << device_.name() << ": replace or reset it";
        }
        ibv_ack_async_event(&e);
      }
    } else {
      take_frames();
    }
  }
}

void VerbsFabric::take_frames() {
  verbs::Bootstrap::Event e;
  while (bootstrap_->next(e)) {
    switch (e.kind) {
      case verbs::Bootstrap::Event::Kind::kUp:
        on_linked(e.peer);
        break;
      case verbs::Bootstrap::Event::Kind::kDown:
        down(e.peer);
        break;
      case verbs::Bootstrap::Event::Kind::kFrame:
        on_frame(e.peer, e.data);
        break;
    }
  }
}

// The background connection failed although the bootstrap connection is up: both start over.
void VerbsFabric::take_broken() {
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (!peers_[i].broken) continue;
    down(ReplicaId{i});
    bootstrap_->reset(ReplicaId{i});
  }
}

// --- frames -------------------------------------------------------------------------------------

Frame VerbsFabric::frame(FrameKind kind) const noexcept {
  Frame f{};
  f.magic = verbs::kFrameMagic;
  f.version = verbs::kVerbsVersion;
  f.kind = kind;
  return f;
}

Frame VerbsFabric::slot_frame(FrameKind kind, std::uint64_t slot, const ibv_qp* qp,
                              std::uint32_t psn) const noexcept {
  Frame f = frame(kind);
  const Remote here = device_.here();
  f.slot = slot;
  f.qpn = qp->qp_num;
  f.psn = psn;
  f.mtu = here.mtu;
  f.lid = here.lid;
  std::memcpy(f.gid, here.gid.raw, sizeof f.gid);
  return f;
}

bool VerbsFabric::send_frame(ReplicaId id, Frame f) {
  return bootstrap_->send(id, std::as_bytes(std::span(&f, 1)));
}

void VerbsFabric::on_frame(ReplicaId id, std::span<const std::byte> bytes) {
  Frame f{};
  if (bytes.size() != sizeof f || !peer(id).linked) return;
  std::memcpy(&f, bytes.data(), sizeof f);
  if (f.magic != verbs::kFrameMagic || f.version != verbs::kVerbsVersion) {
    Message() << "replica refused: r" << static_cast<unsigned>(value(id))
              << ": it uses another protocol version; start it with the same program";
    down(id);
    return;
  }
  if (f.kind == FrameKind::kHello) return on_hello(id, f);
  if (!peer(id).hello) return;
  switch (f.kind) {
    case FrameKind::kOffer:
      return on_offer(id, f);
    case FrameKind::kAccept:
      return on_accept(id, f);
    case FrameKind::kOpen:
      return on_open(id, Key{f.key}, f.serial);
    case FrameKind::kOpened:
      return on_opened(id, f);
    case FrameKind::kRefused: {
      Peer& p = peer(id);
      if (p.writing == Writing::kOpening && p.serial == f.serial) fail_writing(p);
      return;
    }
    case FrameKind::kReady:
      peer(id).ready_received = true;
      return mark_up(id);
    case FrameKind::kHello:
      return;
  }
}

// --- the background connection ------------------------------------------------------------------

void VerbsFabric::on_linked(ReplicaId id) {
  if (peer(id).linked) down(id);
  Peer& p = peer(id);
  p.linked = true;
  if (const Outcome made = make_background(id); !made) {
    complain(id, made.error());
    p.broken = true;
    return;
  }
  Frame f = slot_frame(FrameKind::kHello, 0, p.qp.get(), p.psn);
  f.replicas = options_.replicas;
  f.group = options_.group;
  f.log_bytes = options_.log_bytes;
  f.memory = own()->memory;
  f.log_at = reinterpret_cast<std::uint64_t>(log_.data());
  f.log_rkey = p.log_region->rkey;
  f.cells_at = reinterpret_cast<std::uint64_t>(own()->cells);
  f.cells_rkey = p.cells_region->rkey;
  f.credit_at = reinterpret_cast<std::uint64_t>(static_cast<Credit*>(credits_) + value(id));
  f.credit_rkey = p.credit_region->rkey;
  send_frame(id, f);
}

Outcome VerbsFabric::make_background(ReplicaId id) {
  Peer& p = peer(id);
  auto domain = device_.domain();
  if (!domain) return domain.error();
  p.domain = std::move(domain).value();
  ibv_pd* const pd = p.domain.get();
  Credit* const credit = static_cast<Credit*>(credits_) + value(id);
  credit->consumed.store(0);
  credit->inverse.store(~0U);
  p.log_region.reset(ibv_reg_mr(pd, log_.data(), log_.size(), IBV_ACCESS_REMOTE_READ));
  p.cells_region.reset(ibv_reg_mr(pd, own()->cells, sizeof own()->cells, IBV_ACCESS_REMOTE_READ));
  p.credit_region.reset(
      ibv_reg_mr(pd, credit, sizeof *credit, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!p.log_region || !p.cells_region || !p.credit_region) {
    return system_error("register memory (is the limit of locked memory too low? ulimit -l)");
  }
  p.buffers = verbs::Buffers(pd);
  for (std::uint32_t i = 0; i < verbs::kReceives + verbs::kSendSlots + 1; ++i) {
    auto buffer = p.buffers.take(verbs::kMailBytesMax);
    if (!buffer) return buffer.error();
    p.receives.push_back(buffer.value());
  }
  auto qp = device_.connection(
      pd, background_cq_.get(), mail_cq_.get(),
      {verbs::kBackgroundSends, verbs::kReceives, std::min(inline_bytes_, verbs::kMailBytesMax)},
      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
  if (!qp) return qp.error();
  p.qp = std::move(qp).value();
  p.psn = verbs::random_psn();
  for (std::uint32_t i = 0; i < verbs::kReceives; ++i) {
    if (!post_receive(p, id, i)) return system_error("post a receive");
  }
  return Done{};
}

void VerbsFabric::on_hello(ReplicaId id, const Frame& f) {
  Peer& p = peer(id);
  if (p.hello) return;
  if (f.group != options_.group || f.replicas != options_.replicas ||
      f.log_bytes != options_.log_bytes) {
    Message() << "replica refused: r" << static_cast<unsigned>(value(id))
              << ": it belongs to another group, or has another ring size; start it with the same "
                 "options";
    down(id);
    return;
  }
  const Outcome done = device_.connect(p.qp.get(), remote_of(f), p.psn, options_.retry);
  if (!done) {
    complain(id, done.error());
    p.broken = true;
    return;
  }
  if (f.memory != p.memory) p.seen_version = {};  // new memory: its cells start over
  p.memory = f.memory;
  p.remote = f;
  p.hello = true;
  for (std::uint8_t i = 0; i < options_.spares; ++i) {
    if (const Outcome made = add_spare(id); !made) complain(id, made.error());
  }
  if (p.spares.empty()) send_ready(id);
}

// The spare slots are connected: this replica can grant at once.
void VerbsFabric::send_ready(ReplicaId id) {
  Peer& p = peer(id);
  if (p.ready_sent) return;
  p.ready_sent = send_frame(id, frame(FrameKind::kReady));
  mark_up(id);
}

void VerbsFabric::mark_up(ReplicaId id) {
  Peer& p = peer(id);
  if (p.up || !p.ready_sent || !p.ready_received) return;
  p.up = true;
  p.writing = Writing::kNone;
  p.complaint = nullptr;
  waiting_.push_back({FabricEvent::Kind::kPeerUp, id, true, {}, {}});
}

void VerbsFabric::down(ReplicaId id) {
  Peer& p = peer(id);
  if (!p.linked) return;
  const bool was_up = p.up;
  fail_writing(p);
  p.key = was_up ? p.key : kNoKey;
  for (Op& op : p.ops) {
    // The buffers of reads are freed below.
    op.ok = op.ok && op.kind != Op::Kind::kRead && op.kind != Op::Kind::kCell;
    op.buffer = {};
    op.state = Op::State::kDone;
  }
  std::erase_if(mail_, [id](const Mail& m) { return m.peer == id; });
  p.qp.reset();
  p.log_region.reset();
  p.cells_region.reset();
  p.credit_region.reset();
  p.receives.clear();
  p.buffers = verbs::Buffers();
  p.slots.clear();
  p.spares.clear();
  p.domain.reset();
  if (p.grant && p.grant->slot) {  // the grant stays; the peer cannot reach its slot any more
    fence_slot(*p.grant->slot);
    retire(std::move(*p.grant->slot));
    p.grant->slot.reset();
  }
  p.pending_open = kNoKey;
  p.linked = p.hello = p.ready_sent = p.ready_received = p.up = p.broken = false;
  p.dirty = p.wrote = p.bell_due = false;
  p.sent = p.taken = p.posted = p.bg_outstanding = p.consumed = p.consumed_sent = 0;
  if (!was_up) return;
  landed(id);  // the bell of its last writes may be lost
  waiting_.push_back({FabricEvent::Kind::kPeerDown, id, true, {}, {}});
}

// --- slots --------------------------------------------------------------------------------------

Outcome VerbsFabric::add_spare(ReplicaId id) {
  OwnSlot slot;
  slot.id = own()->next_key.fetch_add(1);
  auto domain = device_.domain();
  if (!domain) return domain.error();
  slot.domain = std::move(domain).value();
  slot.region.reset(ibv_reg_mr(slot.domain.get(), log_.data(), log_.size(),
                               IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  if (!slot.region) return system_error("register the log memory");
  auto qp = device_.connection(slot.domain.get(), log_cq_.get(), log_cq_.get(), {1, 1, 0},
                               IBV_ACCESS_REMOTE_WRITE);
  if (!qp) return qp.error();
  slot.qp = std::move(qp).value();
  slot.psn = verbs::random_psn();
  Frame f = slot_frame(FrameKind::kOffer, slot.id, slot.qp.get(), slot.psn);
  f.log_at = reinterpret_cast<std::uint64_t>(log_.data());
  f.log_rkey = slot.region->rkey;
  peer(id).spares.push_back(std::move(slot));
  send_frame(id, f);
  return Done{};
}

void VerbsFabric::on_offer(ReplicaId id, const Frame& f) {
  auto qp = device_.connection(domain_.get(), log_cq_.get(), log_cq_.get(),
                               {slot_sends(), 1, inline_bytes_}, 0);
  if (!qp) return complain(id, qp.error());
  PeerSlot slot;
  slot.id = f.slot;
  slot.log_at = f.log_at;
  slot.rkey = f.log_rkey;
  slot.qp = std::move(qp).value();
  const std::uint32_t psn = verbs::random_psn();
  if (const Outcome done = device_.connect(slot.qp.get(), remote_of(f), psn, options_.retry);
      !done) {
    return complain(id, done.error());
  }
  const Frame answer = slot_frame(FrameKind::kAccept, f.slot, slot.qp.get(), psn);
  Peer& p = peer(id);
  p.slots.insert_or_assign(slot.id, std::move(slot));
  // The owner keeps few slots; much older ones belong to grants that were never used.
  for (auto old = p.slots.begin(); p.slots.size() > kLanesMax && old != p.slots.end();) {
    if (old->first == p.slot) {
      ++old;
      continue;
    }
    retire(std::move(old->second));
    old = p.slots.erase(old);
  }
  send_frame(id, answer);
}

void VerbsFabric::on_accept(ReplicaId id, const Frame& f) {
  Peer& p = peer(id);
  const auto slot = std::find_if(p.spares.begin(), p.spares.end(),
                                 [&](const OwnSlot& l) { return l.id == f.slot; });
  if (slot == p.spares.end() || slot->ready) return;
  const Outcome done = device_.connect(slot->qp.get(), remote_of(f), slot->psn, options_.retry);
  if (!done) {
    complain(id, done.error());
    p.spares.erase(slot);
    return;
  }
  slot->ready = true;
  if (std::all_of(p.spares.begin(), p.spares.end(), [](const OwnSlot& l) { return l.ready; })) {
    send_ready(id);
  }
  if (p.pending_open != kNoKey) on_open(id, p.pending_open, p.open_serial);
}

// The peer has lost the slot of its grant, or never had one.
void VerbsFabric::on_open(ReplicaId id, Key key, std::uint32_t serial) {
  Peer& p = peer(id);
  p.open_serial = serial;
  p.pending_open = kNoKey;
  if (key == kNoKey || permitted(id) != key) {
    Frame no = frame(FrameKind::kRefused);
    no.serial = serial;
    send_frame(id, no);
    return;
  }
  OwnSlot* const slot = ready_spare(p);
  if (slot == nullptr) {
    p.pending_open = key;
    if (p.spares.empty()) {
      if (const Outcome made = add_spare(id); !made) complain(id, made.error());
    }
    return;
  }
  if (p.grant->slot) {
    fence_slot(*p.grant->slot);
    retire(std::move(*p.grant->slot));
  }
  Frame yes = frame(FrameKind::kOpened);
  yes.serial = serial;
  yes.slot = slot->id;
  p.grant->slot = std::move(*slot);
  std::erase_if(p.spares, [&](const OwnSlot& l) { return &l == slot; });
  send_frame(id, yes);
}

void VerbsFabric::on_opened(ReplicaId id, const Frame& f) {
  Peer& p = peer(id);
  if (p.writing != Writing::kOpening || p.serial != f.serial) return;
  if (!p.slots.contains(f.slot)) {
    fail_writing(p);
    return;
  }
  p.slot = f.slot;
  p.writing = Writing::kOpen;
  for (Op& op : p.ops) {
    if (op.kind != Op::Kind::kOpen || op.state == Op::State::kDone) continue;
    op.ok = true;
    op.state = Op::State::kDone;
  }
  post_waiting(p, id);
}

}  // namespace crane::consensus
