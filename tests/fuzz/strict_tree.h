// SPDX-License-Identifier: Apache-2.0
#pragma once
// For targets that read trees: a sink that asserts the guarantees for sinks, for any bytes that a
// reader got, and the reader's source of these bytes.
//
// Threads: one object, one thread.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/pack.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

class StrictTree : public checkpoint::TreeSink {
 public:
  Outcome inode(const std::string& name, const checkpoint::Inode& inode) override {
    check(name);
    CRANE_ASSERT(inode.link == 0 || inode.link == ++links_);
    if (S_ISDIR(inode.mode) || S_ISREG(inode.mode)) open_.push_back({inode, 0});
    return Done{};
  }
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    CRANE_ASSERT(!open_.empty() && S_ISREG(open_.back().first.mode));
    auto& [file, end] = open_.back();
    CRANE_ASSERT(offset >= end && !bytes.empty() && bytes.size() <= checkpoint::kPieceMax);
    end = offset + bytes.size();
    CRANE_ASSERT(end <= file.size);
    return Done{};
  }
  Outcome leave() override {
    CRANE_ASSERT(!open_.empty());
    open_.pop_back();
    return Done{};
  }
  Outcome link(const std::string& name, std::uint32_t number) override {
    check(name);
    CRANE_ASSERT(!open_.empty() && number >= 1 && number <= links_);
    return Done{};
  }

 protected:
  // Checks the guarantees of the format for a name.
  virtual void check(const std::string& name) = 0;
  bool is_closed() const noexcept { return open_.empty(); }
  // REQUIRES: !is_closed().
  bool in_directory() const noexcept { return S_ISDIR(open_.back().first.mode); }

 private:
  std::vector<std::pair<checkpoint::Inode, std::uint64_t>> open_;
  std::uint32_t links_ = 0;
};

// The bytes of an input; an error when they are used up.
inline checkpoint::ByteSource source_of(Input& input) {
  return [&input](void* to, std::size_t size) -> Outcome {
    const auto bytes = input.take_bytes(size);
    if (bytes.size() < size) return Error{Code::kDamaged, 0, "it ends"};
    if (size > 0) std::memcpy(to, bytes.data(), size);
    return Done{};
  };
}

}  // namespace crane::fuzz
