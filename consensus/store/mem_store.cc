// SPDX-License-Identifier: Apache-2.0
#include "consensus/store/mem_store.h"

#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"

namespace crane::consensus::store {

namespace {

constexpr std::size_t kPage = 512;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
T read_as(const std::vector<std::byte>& bytes, std::size_t at) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

// --- the disk -----------------------------------------------------------------------------------

void MemDisk::lose_power(const std::function<std::uint64_t()>& random) {
  const std::size_t kept = synced + random() % (bytes.size() - synced + 1);
  bytes.resize(kept);
  for (std::size_t at = synced; at < kept;) {
    const std::size_t end = std::min(kept, (at / kPage + 1) * kPage);
    if (random() % 4 == 0)
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), end - at, std::byte(random()));
    at = end;
  }
  synced = bytes.size();
}

void MemDisk::rot(std::uint64_t random) {
  if (mark == 0) return;
  bytes[random / 8 % mark] ^= std::byte(1U << random % 8);
}

// --- the store ----------------------------------------------------------------------------------

MemStore::MemStore(MemDisk& disk) : disk_(disk) {
  const std::size_t whole = recover();
  if (whole < disk_.mark) {
    state_.damage = "record at byte " + std::to_string(whole) + " of " +
                    std::to_string(disk_.mark) + " does not match its checksum";
    return;
  }
  disk_.bytes.resize(whole);  // remove a transaction that was cut short
  disk_.synced = std::min(disk_.synced, whole);
}

std::size_t MemStore::recover() {
  std::size_t at = 0;
  while (disk_.bytes.size() - at >= sizeof(Record)) {
    const auto r = read_as<Record>(disk_.bytes, at);
    const std::size_t body = at + sizeof r;
    if (r.length > disk_.bytes.size() - body) break;
    const std::size_t size = sizeof r - sizeof r.crc + r.length;
    if (crc32c(disk_.bytes.data() + at + sizeof r.crc, size) != r.crc) break;
    apply(r.kind, body, r.length);
    at = body + r.length;
  }
  return at;
}

Outcome MemStore::write(Kind kind, std::span<const std::byte> body,
                        std::span<const std::byte> more) {
  const std::size_t at = disk_.bytes.size();
  Record r{0, kind, body.size() + more.size()};
  const auto head = bytes_of(r);
  disk_.bytes.insert(disk_.bytes.end(), head.begin(), head.end());
  disk_.bytes.insert(disk_.bytes.end(), body.begin(), body.end());
  disk_.bytes.insert(disk_.bytes.end(), more.begin(), more.end());
  r.crc = crc32c(disk_.bytes.data() + at + sizeof r.crc, disk_.bytes.size() - at - sizeof r.crc);
  std::memcpy(disk_.bytes.data() + at, &r.crc, sizeof r.crc);
  apply(kind, at + sizeof r, r.length);
  return Done{};
}

Outcome MemStore::sync() {
  if (disk_.test_only_no_sync) return Done{};
  disk_.synced = disk_.mark = disk_.bytes.size();
  ++disk_.syncs;
  return Done{};
}

void MemStore::apply(Kind kind, std::size_t at, std::size_t length) {
  switch (kind) {
    case Kind::kIdentity:
      entries_.clear();
      state_ = {};
      state_.identity = read_as<Identity>(disk_.bytes, at);
      break;
    case Kind::kPromise:
      state_.promise = read_as<View>(disk_.bytes, at);
      break;
    case Kind::kEntries:
      apply_entries(at, length);
      break;
    case Kind::kBegin:
      state_.first = state_.last = state_.commit = read_as<core::Cursor>(disk_.bytes, at);
      break;
    case Kind::kDrop:
      state_.first = read_as<core::Cursor>(disk_.bytes, at);
      entries_.erase(entries_.begin(), entries_.upper_bound(value(state_.first.last.index)));
      break;
  }
}

void MemStore::apply_entries(std::size_t at, std::size_t length) {
  const std::size_t end = at + length;
  state_.commit = read_as<core::Cursor>(disk_.bytes, at);
  at += sizeof(core::Cursor);
  while (at < end) {
    const auto h = read_as<core::EntryHeader>(disk_.bytes, at);
    const auto held = entries_.find(h.index);
    const bool same = held != entries_.end() &&
                      read_as<core::EntryHeader>(disk_.bytes, held->second).view == h.view;
    if (!same) {
      truncate(Index{h.index - 1});  // STORE-T3
      entries_[h.index] = at;
      state_.last = core::LogRing::after(h);
    }
    at += core::entry_bytes(h.length);
  }
}

void MemStore::truncate(Index last) {
  entries_.erase(entries_.upper_bound(value(last)), entries_.end());
}

Outcome MemStore::reset_at(const Identity& identity, const core::Cursor& begin, View promise) {
  disk_.bytes.clear();
  disk_.synced = disk_.mark = 0;
  Outcome written = write(Kind::kIdentity, bytes_of(identity), {});
  if (written && value(begin.last.index) > 0) written = write(Kind::kBegin, bytes_of(begin), {});
  if (written && promise != View{0}) written = write(Kind::kPromise, bytes_of(promise), {});
  return written ? sync() : written;
}

Outcome MemStore::promise(View view) {
  const Outcome written = write(Kind::kPromise, bytes_of(view), {});
  return written ? sync() : written;
}

Result<core::Cursor> MemStore::append(const core::Cursor& from, std::span<const std::byte> bytes,
                                      const core::Cursor& commit) {
  CRANE_ASSERT(from.last.index >= state_.first.last.index);
  CRANE_ASSERT(from.last.index <= state_.last.last.index);  // STORE-T2
  CRANE_ASSERT(before(from.last.index).last == from.last);
  core::Cursor at = from;
  std::size_t used = 0;
  core::EntryHeader h;
  while (core::valid_entry(at, state_.identity.log_id, bytes.subspan(used), h)) {
    at = core::LogRing::after(h);
    used += core::entry_bytes(h.length);
  }
  core::Cursor known = commit.last.index > at.last.index ? at : commit;
  if (known.last.index < state_.commit.last.index) known = state_.commit;
  const Outcome written = write(Kind::kEntries, bytes_of(known), bytes.first(used));
  if (!written) return written.error();
  const Outcome synced = sync();
  if (!synced) return synced.error();
  return at;
}

void MemStore::test_only_cut_short(const core::Cursor& from, std::span<const std::byte> bytes,
                                   const core::Cursor& commit) {
  const std::size_t synced = disk_.synced;
  const std::size_t mark = disk_.mark;
  static_cast<void>(append(from, bytes, commit));
  disk_.synced = synced;
  disk_.mark = mark;
}

std::span<const std::byte> MemStore::entry(Index index) const {
  const auto at = entries_.find(value(index));
  if (at == entries_.end()) return {};
  const auto h = read_as<core::EntryHeader>(disk_.bytes, at->second);
  return std::span(disk_.bytes).subspan(at->second, core::entry_bytes(h.length));
}

// The cursor after the entry `index`.
core::Cursor MemStore::before(Index index) const {
  const auto at = entries_.find(value(index));
  if (at == entries_.end()) return state_.first;
  return core::LogRing::after(read_as<core::EntryHeader>(disk_.bytes, at->second));
}

Result<Index> MemStore::read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  std::span<const std::byte> bytes = entry(from);
  if (bytes.empty()) return Error{Code::kNotFound, 0, "read from the store"};
  while (!bytes.empty() &&
         (out.size() == begin || out.size() + bytes.size() <= begin + bytes_max)) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    from = next(from);
    bytes = entry(from);
  }
  return from;
}

Result<core::EntryHeader> MemStore::header(Index index) {
  const auto at = entries_.find(value(index));
  if (at == entries_.end()) return Error{Code::kNotFound, 0, "read from the store"};
  return read_as<core::EntryHeader>(disk_.bytes, at->second);
}

Outcome MemStore::drop_below(Index index) {
  if (value(index) <= value(state_.first.last.index) + 1) return Done{};
  CRANE_ASSERT(index <= next(state_.commit.last.index));
  const core::Cursor first = before(Index{value(index) - 1});
  const Outcome written = write(Kind::kDrop, bytes_of(first), {});
  return written ? sync() : written;
}

}  // namespace crane::consensus::store
