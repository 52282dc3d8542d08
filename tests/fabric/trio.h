// SPDX-License-Identifier: Apache-2.0
#pragma once
// Three connected fabrics in one process, for tests of any kind of fabric.

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/fabric/harness.h"

namespace crane::test {

// The report of a child process to the test.
struct StreamState {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> completed;
  std::atomic<std::uint64_t> refused;
  std::atomic<bool> ready;
};

inline constexpr ReplicaId kA{0};
inline constexpr ReplicaId kB{1};
inline constexpr ReplicaId kC{2};
inline constexpr std::uint64_t kLate = 1U << 16;  // offset of a write under a revoked key

// A write that has not completed may be visible in part.
template <typename Group>
inline constexpr bool kPartial = requires {
  Group::kPartialWrites;
};
// Writes land without work of the owner, so its memory is never full.
template <typename Group>
inline constexpr bool kNeverFull = requires {
  Group::kNoBacklog;
};

// How often a case repeats its steps; fewer times on a slow machine (an emulated one), unless
// CRANE_FULL is set.
template <typename Group>
int times(int n) {
  if constexpr (requires { Group::kSlow; }) {
    return std::getenv("CRANE_FULL") == nullptr ? std::max(1, n / Group::kSlow) : n;
  }
  return n;
}

template <typename Group>
struct Trio {
  Group group;
  std::unique_ptr<Fabric> a = group.open(0);
  std::unique_ptr<Fabric> b = group.open(1);
  std::unique_ptr<Fabric> c = group.open(2);
  Trio() {
    INFO("over RDMA these cases run in the virtual machine: tests/run.py --only vm");
    REQUIRE((a != nullptr && b != nullptr && c != nullptr));
    for (int round = 0; round < 2; ++round) {
      for (Fabric* f : {a.get(), b.get(), c.get()}) drain(*f);
    }
    REQUIRE(a->connected(kB));
    REQUIRE(a->connected(kC));
    REQUIRE(b->connected(kA));
    REQUIRE(c->connected(kB));
  }
  // a may write to b.
  Key grant_b_to_a() {
    auto key = b->permit_writes(kA);
    REQUIRE(key.ok());
    return key.value();
  }
};

inline bool write_ok(Fabric& f, ReplicaId peer, Key key, std::uint64_t offset,
                     const std::string& text) {
  const auto bytes = bytes_of(text);
  f.write(peer, key, offset, bytes, Token{9});
  return completion_of(f, Token{9}).ok;
}

inline std::string log_text(Fabric& f, std::uint64_t offset, std::size_t size) {
  return text_of(f.log_memory().subspan(offset, size));
}

}  // namespace crane::test
