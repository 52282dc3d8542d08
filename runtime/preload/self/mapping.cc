// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/mapping.h"

#include <sys/stat.h>

#include <atomic>

#include "dmt/admission.h"
#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr std::uint64_t kSegments = 1ull << 32;  // device numbers are smaller

struct Mapping {
  std::atomic<std::uintptr_t> begin;  // 0 = free
  std::atomic<std::uintptr_t> end;    // stored last; 0 while the entry is made
  std::uint64_t identity;
  std::uint64_t offset;  // of `begin`
};
constinit Mapping mappings[kMappingsMax] = {};
std::atomic<std::size_t> used{0};   // high-water mark
std::atomic<std::size_t> taken{0};  // entries in use

std::uintptr_t word_of(const volatile void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

bool overlaps(const Mapping& m, std::uintptr_t begin, std::uintptr_t end) noexcept {
  return m.begin.load(std::memory_order_acquire) < end &&
         begin < m.end.load(std::memory_order_acquire);
}

void add(std::uintptr_t begin, std::uintptr_t end, std::uint64_t identity,
         std::uint64_t offset) noexcept {
  for (std::size_t i = 0; i < kMappingsMax; ++i) {
    std::uintptr_t none = 0;
    if (!mappings[i].begin.compare_exchange_strong(none, begin)) continue;
    taken.fetch_add(1, std::memory_order_relaxed);
    mappings[i].identity = identity;
    mappings[i].offset = offset;
    mappings[i].end.store(end, std::memory_order_release);
    std::size_t high = used.load(std::memory_order_relaxed);
    while (high < i + 1 && !used.compare_exchange_weak(high, i + 1)) {
    }
    return;
  }
  // Objects in this mapping would have other names than in other processes, so wake-ups would be
  // lost. Callers checked for room before, but in parallel mode several may have seen the last
  // room.
  dmt::fence(without_turn(),
             "a process of the server has more shared mappings than the table holds");
}

// Returns the mapping of an address, or null.
const Mapping* find(std::uintptr_t address) noexcept {
  const std::size_t count = used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (overlaps(mappings[i], address, address + 1)) return &mappings[i];
  }
  return nullptr;
}

}  // namespace

bool has_room_for_mappings() noexcept {
  constexpr std::size_t kReserve = 64;  // for concurrent checks
  static constinit Bound bound{kMappingsMax - kReserve, "shared mappings of one process",
                               "mappings beyond it fail (ENOMEM)"};
  const bool has_room = taken.load(std::memory_order_relaxed) + kReserve <= kMappingsMax;
  if (!has_room) bound.count_refusal();
  return has_room;
}

void add_mapping(dmt::Layout& w, const void* address, std::size_t size, std::uint64_t identity,
                 std::uint64_t offset) noexcept {
  remove_mapping(address, size);
  w.processes[self.process].shares_memory = true;
  add(word_of(address), word_of(address) + size, identity, offset);
}

void remove_mapping(const void* address, std::size_t size) noexcept {
  const std::uintptr_t begin = word_of(address), end = begin + size;
  const std::size_t count = used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    Mapping& m = mappings[i];
    if (!overlaps(m, begin, end)) continue;
    const std::uintptr_t first = m.begin.load(), last = m.end.load();
    const std::uint64_t identity = m.identity, offset = m.offset;
    m.end.store(0, std::memory_order_release);
    m.begin.store(0, std::memory_order_release);
    taken.fetch_sub(1, std::memory_order_relaxed);
    // Adds the remaining parts on both sides.
    if (first < begin) add(first, begin, identity, offset);
    if (end < last) add(end, last, identity, offset + (end - first));
  }
}

void move_mapping(dmt::Layout& w, const void* from, std::size_t old_size, const void* to,
                  std::size_t new_size) noexcept {
  const Mapping* m = find(word_of(from));
  if (m == nullptr) return;
  const std::uint64_t identity = m->identity;
  const std::uint64_t offset = m->offset + (word_of(from) - m->begin.load());
  remove_mapping(from, old_size);
  add_mapping(w, to, new_size, identity, offset);
}

bool touches_mapping(const void* address, std::size_t size) noexcept {
  const std::size_t count = used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (overlaps(mappings[i], word_of(address), word_of(address) + size)) return true;
  }
  return false;
}

bool cuts_mapping(const void* address, std::size_t size) noexcept {
  const std::uintptr_t begin = word_of(address);
  const Mapping* m = begin == 0 ? nullptr : find(begin - 1);
  return m != nullptr && m == find(begin + size);
}

std::uint64_t name_of_shared(const volatile void* address) noexcept {
  const Mapping* m = find(word_of(address));
  // Private to this process: a child of fork has a copy at the same address.
  if (m == nullptr) return name_of_address(self.space, address);
  const std::uint64_t offset = m->offset + (word_of(address) - m->begin.load());
  return name_of_address(m->identity, reinterpret_cast<const void*>(offset));
}

std::uint64_t identity_of_segment(int id) noexcept {
  return (kSegments + static_cast<std::uint32_t>(id)) * 0x9E3779B97F4A7C15;
}

}  // namespace crane
