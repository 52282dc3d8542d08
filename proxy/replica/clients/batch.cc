// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/batch.h"

#include <cstring>

#include "dmt/base/assert.h"

namespace crane::proxy {

std::span<std::byte> Batch::room(std::size_t bytes) {
  const std::size_t need = arena_used_ + sizeof(DataBody) + bytes;
  if (arena_.size() < need) arena_.resize(need + kDataBytesMax);
  return {arena_.data() + arena_used_ + sizeof(DataBody), bytes};
}

std::byte* Batch::append(EntryType type, std::size_t size, Opener* unnamed) {
  if (arena_.size() < arena_used_ + size) arena_.resize(arena_used_ + size + kDataBytesMax);
  pending_.push_back({type, unnamed, arena_used_, size});
  std::byte* body = arena_.data() + arena_used_;
  arena_used_ += size;
  return body;
}

void Batch::add_data(Opener& from, std::size_t bytes, bool ends_urgent) {
  CRANE_ASSERT(bytes > 0 && bytes <= kDataBytesMax);
  CRANE_ASSERT(arena_used_ + sizeof(DataBody) + bytes <= arena_.size());
  const DataBody body = data_body(from.conn, ends_urgent);
  std::memcpy(
      append(EntryType::kData, sizeof body + bytes, value(from.conn) == 0 ? &from : nullptr), &body,
      sizeof body);
  pending_.back().marks = ends_urgent ? kUrgentBit : 0;
}

void Batch::add_connect(Opener& opener, const ConnectBody& body) {
  CRANE_ASSERT(value(opener.conn) == 0);
  std::memcpy(append(EntryType::kConnect, sizeof body, &opener), &body, sizeof body);
}

void Batch::add_conn(EntryType type, Opener& from, std::uint64_t total, bool with_total) {
  const WindowBody body{from.conn, total};
  const std::size_t size = with_total ? sizeof(WindowBody) : sizeof(ConnBody);
  static_assert(offsetof(WindowBody, conn) == 0 && sizeof(ConnBody) == sizeof(ConnId));
  std::memcpy(append(type, size, value(from.conn) == 0 ? &from : nullptr), &body, size);
}

void Batch::add_taken(std::span<const TakenBody> clients) {
  std::memcpy(append(EntryType::kTaken, clients.size_bytes(), nullptr), clients.data(),
              clients.size_bytes());
}

void Batch::clear() noexcept {
  pending_.clear();
  next_ = 0;
  arena_used_ = 0;
}

}  // namespace crane::proxy
