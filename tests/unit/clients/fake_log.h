// SPDX-License-Identifier: Apache-2.0
#pragma once
// A log for tests of the proxy: takes all proposals, and fails on demand.

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "proxy/clients/encode.h"
#include "proxy/replica/clients/batch.h"

namespace crane::proxy {

struct Taken {
  EntryType type;
  GrantTurns grant;
  std::vector<std::byte> body;
  std::uint64_t index;

  template <typename Body>
  Body as() const {
    Body result{};
    std::memcpy(&result, body.data(), sizeof result);
    return result;
  }
  std::string data() const {
    return {reinterpret_cast<const char*>(body.data()) + sizeof(DataBody),
            body.size() - sizeof(DataBody)};
  }
};

struct FakeLog {
  std::vector<Taken> taken;
  std::uint64_t next_index = 100;
  Code fails = Code::kOk;
  int room = -1;  // entries until kBusy; -1: no limit

  // Called by Batch.
  Result<Index> operator()(EntryType type, GrantTurns grant, std::span<const std::byte> body) {
    if (fails != Code::kOk) return Error{fails, 0, "as told"};
    if (room == 0) return Error{Code::kBusy, 0, "full"};
    if (room > 0) --room;
    taken.push_back({type, grant, {body.begin(), body.end()}, next_index});
    return Index{next_index++};
  }
  Outcome propose_all(Batch& batch, GrantTurns grant) {
    return batch.propose_all(grant, *this, [](Opener&) {});
  }
  std::string types() const {
    std::string all;
    for (const Taken& t : taken) all += std::string(all.empty() ? "" : " ") + name(t.type);
    return all;
  }
};

}  // namespace crane::proxy
