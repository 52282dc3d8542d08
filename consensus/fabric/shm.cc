// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/shm.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace crane::consensus {

using shm::Control;
using shm::Mailbox;
using shm::Region;
using shm::WriteQueueOwner;
using shm::WriteQueueWriter;

namespace {

// An owner that never sleeps checks the epoll set once in this many polls.
constexpr std::uint32_t kSystemEventsEvery = 64;

}  // namespace

// --- own memory ---------------------------------------------------------------------------------

void ShmFabric::set_cell(std::uint8_t cell, const CellValue& v) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  own()->cells[cell].store(v);
}

CellValue ShmFabric::own_cell(std::uint8_t cell) const noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  CellValue v;
  CRANE_ASSERT(own()->cells[cell].load(v));
  return v;
}

// --- permissions --------------------------------------------------------------------------------

Result<Key> ShmFabric::permit_writes(ReplicaId id) noexcept {
  CRANE_ASSERT(id != options_.self);
  revoke_writes(id);
  if (spares_.empty()) {
    if (const Outcome made = add_spare(); !made) return made.error();
  }
  Peer& p = peer(id);
  p.grant = std::move(spares_.back());
  spares_.pop_back();
  p.grant->grant(id);
  own()->live_key[value(id)].store(value(p.grant->key()), std::memory_order_release);
  return p.grant->key();
}

void ShmFabric::revoke_writes(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (!p.grant) return;
  p.grant->revoke(log_memory());
  own()->live_key[value(id)].store(0, std::memory_order_release);
  // Freeing pages takes time, so tidy() unmaps and removes the file, off the path of a grant.
  retired_.push_back(std::move(*p.grant));
  p.grant.reset();
}

Key ShmFabric::permitted(ReplicaId id) const noexcept {
  const Peer& p = peer(id);
  return p.grant ? p.grant->key() : kNoKey;
}

Outcome ShmFabric::add_spare() {
  const Key key{own()->next_key.fetch_add(1)};
  auto made = WriteQueueOwner::create(own_dir_, key, options_.write_queue_bytes);
  if (!made) return made.error();
  spares_.push_back(std::move(made).value());
  return Done{};
}

void ShmFabric::tidy() noexcept {
  for (const WriteQueueOwner& gone : retired_) {
    ::unlink(shm::write_queue_path(own_dir_, gone.key()).c_str());
  }
  retired_.clear();
  while (spares_.size() < options_.spares && add_spare().ok()) {
  }
}

// --- a peer's memory ----------------------------------------------------------------------------

void ShmFabric::complete(ReplicaId id, Token token, bool ok) noexcept {
  waiting_.push_back({FabricEvent::Kind::kCompletion, id, ok, token, {}});
}

bool ShmFabric::connect_writer(Peer& p, ReplicaId id, Key key) noexcept {
  p.writer.reset();
  if (p.incarnation == 0 || key == kNoKey) return false;
  auto writer = WriteQueueWriter::open(options_.directory_of(id), key, options_.self);
  if (!writer) return false;
  p.writer = std::move(writer).value();
  return true;
}

void ShmFabric::open_log(ReplicaId id, Key key, Token token) noexcept {
  Peer& p = peer(id);
  const bool ok = connect_writer(p, id, key);
  p.failed_key = ok ? kNoKey : key;
  complete(id, token, ok);
}

void ShmFabric::close_log(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (p.writer) p.failed_key = p.writer->key();
  p.writer.reset();
}

void ShmFabric::write(ReplicaId id, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
                      Token token) noexcept {
  Peer& p = peer(id);
  bool ok = key != kNoKey && key != p.failed_key && p.incarnation != 0;
  if (ok && (!p.writer || p.writer->key() != key)) ok = connect_writer(p, id, key);
  ok = ok && offset <= options_.log_bytes && bytes.size() <= options_.log_bytes - offset &&
       p.log.back(offset, ahead(offset, bytes.size(), options_.log_bytes)) &&
       p.writer->write(offset, bytes);
  if (ok) {
    p.dirty = true;
  } else {
    p.failed_key = key;  // FABRIC-F5
    p.writer.reset();
  }
  complete(id, token, ok);
}

bool ShmFabric::back_peers(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return std::all_of(peers_.begin(), peers_.end(), [&](Peer& p) {
    if (p.incarnation == 0) return true;
    return p.log.back(offset, bytes) && (!p.writer || p.writer->back_ahead(bytes));
  });
}

WriteQueueWriter* ShmFabric::test_only_writer(ReplicaId id, Key key) noexcept {
  Peer& p = peer(id);
  if (!p.writer && !connect_writer(p, id, key)) return nullptr;
  return &*p.writer;
}

void ShmFabric::read(ReplicaId id, std::uint64_t offset, std::uint64_t n, Token token) noexcept {
  CRANE_ASSERT(n <= kReadBytesMax);
  Peer& p = peer(id);
  if (!p.log.mapped() || offset > p.log.size() || n > p.log.size() - offset) {
    complete(id, token, false);
    return;
  }
  const bool is_own = p.writer && p.writer->live();
  const std::uint64_t drained = is_own ? p.writer->drained() : 0;
  std::vector<std::byte> data(n);
  if (!p.log.read(offset, data)) {
    complete(id, token, false);
    return;
  }
  if (is_own) p.writer->overlay(drained, offset, data);  // FABRIC-F12
  read_data_.push_back(std::move(data));
  waiting_.push_back({FabricEvent::Kind::kCompletion, id, true, token, read_data_.back()});
}

void ShmFabric::read_cell(ReplicaId id, std::uint8_t cell, Token token) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  Peer& p = peer(id);
  CellValue v;
  if (!p.control.mapped() || !p.header()->cells[cell].load(v)) {
    complete(id, token, false);
    return;
  }
  const auto bytes = std::as_bytes(std::span(&v, 1));
  read_data_.emplace_back(bytes.begin(), bytes.end());
  waiting_.push_back({FabricEvent::Kind::kCompletion, id, true, token, read_data_.back()});
}

// --- background plane ---------------------------------------------------------------------------

Mailbox* ShmFabric::mailbox(const Region& control, ReplicaId from) noexcept {
  return reinterpret_cast<Mailbox*>(control.data() + shm::mailbox_offset()) + value(from);
}

bool ShmFabric::send_request(ReplicaId id, std::span<const std::byte> body) noexcept {
  CRANE_ASSERT(body.size() <= kRequestBytesMax);
  Peer& p = peer(id);
  if (p.incarnation == 0) return false;
  Mailbox* const box = mailbox(p.control, options_.self);
  const std::uint64_t tail = box->tail.load(std::memory_order_relaxed);
  if (tail - box->head.load(std::memory_order_acquire) >= shm::kMailboxSlots) return false;
  shm::Request& slot = box->slots[tail % shm::kMailboxSlots];
  slot.size = static_cast<std::uint32_t>(body.size());
  if (!body.empty()) std::memcpy(slot.body, body.data(), body.size());
  box->tail.store(tail + 1, std::memory_order_release);
  p.dirty = true;
  return true;
}

void ShmFabric::take_in_mail(std::span<FabricEvent> out, std::size_t& n) noexcept {
  std::size_t used = 0;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} == options_.self) continue;
    Mailbox* const box = mailbox(control_, ReplicaId{i});
    std::uint64_t head = box->head.load(std::memory_order_relaxed);
    const std::uint64_t tail = box->tail.load(std::memory_order_acquire);
    while (head != tail && n < out.size() && used < mail_.size()) {
      const shm::Request& slot = box->slots[head % shm::kMailboxSlots];
      const std::size_t size = std::min<std::size_t>(slot.size, kRequestBytesMax);
      auto& copy = mail_[used++];
      std::memcpy(copy.data(), slot.body, size);
      box->head.store(++head, std::memory_order_release);
      out[n++] = {FabricEvent::Kind::kRequest, ReplicaId{i}, true, {}, {copy.data(), size}};
    }
  }
}

// --- events -------------------------------------------------------------------------------------

void ShmFabric::take_completions(std::span<FabricEvent> out, std::size_t& n) noexcept {
  while (next_waiting_ < waiting_.size() && n < out.size()) {
    const FabricEvent& e = waiting_[next_waiting_++];
    if (e.data.data() != nullptr) {
      handed_.push_back(std::move(read_data_.front()));  // the bytes do not move
      read_data_.pop_front();
    }
    out[n++] = e;
  }
  if (next_waiting_ == waiting_.size()) {
    waiting_.clear();
    next_waiting_ = 0;
  }
}

void ShmFabric::take_in_writes(std::span<FabricEvent> out, std::size_t& n) noexcept {
  for (std::uint8_t i = 0; i < options_.replicas && n < out.size(); ++i) {
    Peer& p = peers_[i];
    if (!p.grant || !p.grant->pending()) continue;
    if (!p.grant->take_in(log_memory())) {
      revoke_writes(ReplicaId{i});  // a broken queue affects only that peer (FABRIC-F8)
      continue;
    }
    out[n++] = {FabricEvent::Kind::kLanded, ReplicaId{i}, true, {}, {}};
  }
}

std::size_t ShmFabric::poll(std::span<FabricEvent> out) noexcept {
  CRANE_ASSERT(!out.empty());
  handed_.clear();
  own()->sleeping.store(0, std::memory_order_relaxed);
  if (slept_ || ++polls_ % kSystemEventsEvery == 0) {
    slept_ = false;
    take_system_events();
  }
  look_for_peers();
  std::size_t n = 0;
  take_completions(out, n);
  take_in_mail(out, n);
  take_in_writes(out, n);
  return n;
}

bool ShmFabric::something_waits() const noexcept {
  if (next_waiting_ < waiting_.size()) return true;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} == options_.self) continue;
    const Peer& p = peers_[i];
    const Mailbox* const box = mailbox(control_, ReplicaId{i});
    if (box->tail.load(std::memory_order_acquire) != box->head.load(std::memory_order_relaxed)) {
      return true;
    }
    if (p.grant && p.grant->pending()) return true;
    const std::uint64_t hello = own()->hello[i].load(std::memory_order_acquire);
    if (hello != 0 && hello != p.incarnation && p.refused != hello) return true;
  }
  return false;
}

bool ShmFabric::prepare_to_sleep() noexcept {
  // FABRIC-F13. Set the flag, then a full fence, then the last look. A peer publishes, fences, then
  // reads the flag.
  own()->sleeping.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (something_waits()) {
    own()->sleeping.store(0, std::memory_order_relaxed);
    return false;
  }
  slept_ = true;
  return true;
}

void ShmFabric::wake_self() noexcept {
  slept_ = true;  // so that the next poll() empties the FIFO
  const char byte = 1;
  [[maybe_unused]] const ssize_t sent = ::write(bell_fd_, &byte, 1);
}

void ShmFabric::ring_doorbell(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (!p.dirty || p.incarnation == 0) return;
  p.dirty = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic<std::uint32_t>& sleeping = p.header()->sleeping;
  if (sleeping.load(std::memory_order_relaxed) == 0 || sleeping.exchange(0) == 0) return;
  const char byte = 1;
  // A full FIFO is readable already.  The FIFO is open for reading and writing, so the pipe never
  // breaks.
  [[maybe_unused]] const ssize_t sent = ::write(p.bell, &byte, 1);
}

}  // namespace crane::consensus
