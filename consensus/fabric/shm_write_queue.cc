// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/shm_write_queue.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crane::consensus::shm {
namespace {

// After this many bytes of a lap, the writer starts over at the beginning if the queue is empty.
constexpr std::uint64_t kRestartAfter = 256U << 10;
// Both ends populate this much before the first write: an owner that keeps up never needs more.
constexpr std::uint64_t kPopulated = kRestartAfter + (64U << 10);

void put_record(std::byte* at, std::uint64_t offset, std::uint64_t size) noexcept {
  const Record r{offset, size};
  std::memcpy(at, &r, sizeof r);
}

Record get_record(const std::byte* at) noexcept {
  Record r;
  std::memcpy(&r, at, sizeof r);
  return r;
}

std::uint64_t next_lap(std::uint64_t position, std::uint64_t base,
                       std::uint64_t capacity) noexcept {
  return base + ((position - base) / capacity + 1) * capacity;
}

}  // namespace

std::string write_queue_path(const std::string& replica_dir, Key key) {
  return replica_dir + "/write_queue-" + std::to_string(value(key));
}

// --- owner --------------------------------------------------------------------------------------

Result<WriteQueueOwner> WriteQueueOwner::create(const std::string& replica_dir, Key key,
                                                std::uint64_t capacity) noexcept {
  CRANE_ASSERT(key != kNoKey && capacity % kWriteQueueData == 0);
  const std::string path = write_queue_path(replica_dir, key);
  auto region = Region::create(path, kWriteQueueData + capacity, Fill::kSparse);
  if (!region) return region.error();
  if (!region.value().back(0, std::min(kWriteQueueData + kPopulated, region.value().size()))) {
    ::unlink(path.c_str());
    return Error{Code::kFull, ENOSPC, "allocate a write queue"};
  }
  WriteQueueOwner out;
  out.region_ = std::move(region).value();
  WriteQueue* h = out.header();
  h->key = value(key);
  h->capacity = capacity;
  h->magic = kWriteQueueMagic;
  out.region_.populate(0, kWriteQueueData + kPopulated);
  return out;
}

Result<WriteQueueOwner> WriteQueueOwner::open(const std::string& replica_dir, Key key) noexcept {
  auto region =
      Region::open(write_queue_path(replica_dir, key), Region::Access::kReadWrite, kWriteQueueData);
  if (!region) return region.error();
  WriteQueueOwner out;
  out.region_ = std::move(region).value();
  const WriteQueue* h = out.header();
  if (h->magic != kWriteQueueMagic || h->key != value(key) ||
      out.region_.size() != kWriteQueueData + h->capacity) {
    return Error{Code::kDamaged, 0, "write queue segment"};
  }
  return out;
}

void WriteQueueOwner::grant(ReplicaId writer) noexcept {
  WriteQueue* h = header();
  CRANE_ASSERT(h->state.load() == 0);  // SHM-L4: a segment serves one grant
  h->writer.store(value(writer), std::memory_order_relaxed);
  h->state.store(h->key, std::memory_order_release);
}

bool WriteQueueOwner::take_in(std::span<std::byte> log) noexcept {
  WriteQueue* h = header();
  const std::byte* const data = region_.data() + kWriteQueueData;
  const std::uint64_t capacity = region_.size() - kWriteQueueData;
  const std::uint64_t tail = h->tail.load(std::memory_order_acquire);  // SHM-L1
  const std::uint64_t base = h->base.load(std::memory_order_relaxed);
  std::uint64_t at = h->drained.load(std::memory_order_relaxed);
  if (at == tail) return true;
  if (tail - at > capacity || base > at) return false;  // SHM-L3
  while (at != tail) {
    const std::uint64_t place = (at - base) % capacity;
    if (capacity - place < sizeof(Record)) return false;  // no correct writer sets such a base
    const Record r = get_record(data + place);
    std::uint64_t next = at;
    if (r.offset == kSkip) {
      next = next_lap(at, base, capacity);
    } else {
      if (r.size > log.size() || r.offset > log.size() - r.size) return false;
      if (record_bytes(r.size) > capacity - place) return false;
      std::memcpy(log.data() + r.offset, data + place + sizeof(Record), r.size);
      next += record_bytes(r.size);
    }
    if (next <= at || next > tail) return false;  // positions near 2^64 would wrap to 0
    at = next;
    // After the copy: an owner that dies during the copy repeats it after its restart.
    h->drained.store(at, std::memory_order_release);
  }
  return true;
}

bool WriteQueueOwner::revoke(std::span<std::byte> log) noexcept {
  header()->state.store(kRevoked, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // SHM-L2
  return take_in(log);
}

// --- writer -------------------------------------------------------------------------------------

Result<WriteQueueWriter> WriteQueueWriter::open(const std::string& replica_dir, Key key,
                                                ReplicaId self) noexcept {
  auto region =
      Region::open(write_queue_path(replica_dir, key), Region::Access::kReadWrite, kWriteQueueData);
  if (!region) {
    const Error e = region.error();
    return e.code == Code::kNotFound ? Error{Code::kRevoked, 0, "grant is gone"} : e;
  }
  WriteQueueWriter out;
  out.region_ = std::move(region).value();
  out.key_ = key;
  const WriteQueue* h = out.header();
  if (h->magic != kWriteQueueMagic || h->key != value(key) ||
      out.region_.size() != kWriteQueueData + h->capacity) {
    return Error{Code::kDamaged, 0, "write queue segment"};
  }
  if (!out.live() || h->writer.load(std::memory_order_relaxed) != value(self)) {
    return Error{Code::kRevoked, 0, "grant is not live for this replica"};
  }
  out.region_.populate(0, kWriteQueueData + kPopulated);
  out.capacity_ = h->capacity;
  out.tail_ = h->tail.load(std::memory_order_relaxed);
  out.base_ = h->base.load(std::memory_order_relaxed);
  out.drained_ = out.drained();
  return out;
}

bool WriteQueueWriter::write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  return live() && copy(offset, bytes) && publish();
}

bool WriteQueueWriter::test_only_copy(std::uint64_t offset,
                                      std::span<const std::byte> bytes) noexcept {
  return copy(offset, bytes);
}

bool WriteQueueWriter::room_for(std::uint64_t need) noexcept {
  if (tail_ + need - drained_ <= capacity_) return true;
  drained_ = drained();
  return tail_ + need - drained_ <= capacity_;
}

bool WriteQueueWriter::copy(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  const std::uint64_t need = record_bytes(bytes.size());
  if (need > capacity_) return false;
  std::uint64_t place = (tail_ - base_) % capacity_;
  if (place > kRestartAfter) {
    if (drained_ != tail_) drained_ = drained();
    if (drained_ == tail_) {  // empty: start over, on cached memory
      base_ = tail_;
      header()->base.store(base_, std::memory_order_relaxed);
      place = 0;
    }
  }
  if (need > capacity_ - place) {
    if (!room_for(capacity_ - place + need)) return false;
    if (!region_.back(kWriteQueueData + place, sizeof(Record))) return false;
    put_record(data() + place, kSkip, 0);
    tail_ = next_lap(tail_, base_, capacity_);
    place = 0;
  }
  if (!room_for(need)) return false;  // SHM-L3
  // ROOM-1; without room the write fails, as do all later writes (FABRIC-F5).
  if (!region_.back(kWriteQueueData + place, need)) return false;
  std::byte* const at = data() + place;
  put_record(at, offset, bytes.size());
  if (!bytes.empty()) std::memcpy(at + sizeof(Record), bytes.data(), bytes.size());
  tail_ += need;
  return true;
}

bool WriteQueueWriter::back_ahead(std::uint64_t bytes) noexcept {
  const std::uint64_t need = std::min(bytes, capacity_);
  const std::uint64_t place = (tail_ - base_) % capacity_;
  const std::uint64_t first = std::min(need, capacity_ - place);
  return region_.back(kWriteQueueData + place, first) &&
         region_.back(kWriteQueueData, need - first);
}

bool WriteQueueWriter::publish() noexcept {
  header()->tail.store(tail_, std::memory_order_release);  // SHM-L1
  std::atomic_thread_fence(std::memory_order_seq_cst);     // SHM-L2
  return header()->state.load(std::memory_order_relaxed) == value(key_);
}

void WriteQueueWriter::overlay(std::uint64_t drained, std::uint64_t offset,
                               std::span<std::byte> out) const noexcept {
  std::uint64_t at = drained;
  const std::uint64_t end = offset + out.size();
  while (at != tail_) {
    const std::uint64_t place = (at - base_) % capacity_;
    const Record r = get_record(data() + place);
    if (r.offset == kSkip) {
      at = next_lap(at, base_, capacity_);
      continue;
    }
    const std::uint64_t from = std::max(r.offset, offset);
    const std::uint64_t to = std::min(r.offset + r.size, end);
    if (from < to) {
      std::memcpy(out.data() + (from - offset), data() + place + sizeof(Record) + (from - r.offset),
                  to - from);
    }
    at += record_bytes(r.size);
  }
}

}  // namespace crane::consensus::shm
