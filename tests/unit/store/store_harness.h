// SPDX-License-Identifier: Apache-2.0
#pragma once
// Logs to store, and a store of each kind on a disk that outlives it.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "consensus/core/log.h"
#include "consensus/store/bdb_store.h"
#include "consensus/store/mem_store.h"

namespace crane::test {

using consensus::core::Cursor;
using consensus::core::EntryHeader;
using consensus::core::LogRing;
using consensus::store::BdbOptions;
using consensus::store::BdbStore;
using consensus::store::Identity;
using consensus::store::MemDisk;
using consensus::store::MemStore;
using consensus::store::State;
using consensus::store::Store;

inline constexpr std::uint64_t kLogId = 4711;
inline constexpr std::uint64_t kRingBytes = 1U << 16;
inline const Identity kOwner{kLogId, 1};

inline View view(std::uint64_t counter) { return make_view(counter, ReplicaId{0}); }

// A log for appending, which returns its content between two cursors.
class Log {
 public:
  Cursor append(std::uint64_t of_view, std::size_t payload_bytes, std::uint64_t number) {
    std::vector<std::byte> payload(payload_bytes, std::byte(number));
    if (payload_bytes >= sizeof number) std::memcpy(payload.data(), &number, sizeof number);
    EntryHeader h;
    h.view = value(view(of_view));
    h.type = 1;
    h.stamp_ns = number;
    ring_.append(end_, h, payload);
    return end_;
  }
  std::vector<std::byte> between(const Cursor& from, const Cursor& to) const {
    std::vector<std::byte> bytes(to.pos - from.pos);
    ring_.copy_out(from.pos, bytes);
    return bytes;
  }
  void back_to(const Cursor& at) { end_ = at; }
  const Cursor& end() const { return end_; }

 private:
  std::vector<std::byte> memory_ =
      std::vector<std::byte>(consensus::core::log_memory_bytes(kRingBytes));
  LogRing ring_{memory_, kRingBytes, kLogId, 4096};
  Cursor end_;
};

// Reads entries first..last back and checks each one.
inline std::vector<std::uint64_t> numbers(Store& store) {
  std::vector<std::uint64_t> out;
  Cursor at = store.state().first;
  for (Index i = next(at.last.index); i <= store.state().last.last.index;) {
    std::vector<std::byte> bytes;
    const auto behind = store.read(i, 1000, bytes);
    REQUIRE(behind.ok());
    std::size_t used = 0;
    while (i < behind.value()) {
      EntryHeader h;
      REQUIRE(consensus::core::valid_entry(at, kLogId, std::span(bytes).subspan(used), h));
      out.push_back(h.stamp_ns);
      at = LogRing::after(h);
      used += consensus::core::entry_bytes(h.length);
      i = next(i);
    }
    CHECK(used == bytes.size());
  }
  CHECK(at == store.state().last);
  return out;
}

inline std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = from; i <= to; ++i) out.push_back(i);
  return out;
}

class TemporaryDisk {
 public:
  TemporaryDisk() {
    char name[] = "/tmp/crane-store-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TemporaryDisk() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A disk with a store that can be closed and reopened.
class OnMemory {
 public:
  Store& open() {
    store_.reset();
    store_ = std::make_unique<MemStore>(disk);
    return *store_;
  }
  void rot_in_the_middle() { disk.bytes[disk.bytes.size() / 2] ^= std::byte{4}; }
  MemDisk disk;

 private:
  std::unique_ptr<MemStore> store_;
};

class OnBdb {
 public:
  Store& open() {
    store_.reset();
    BdbOptions o;
    o.directory = disk_.path();
    o.segment_bytes = 20'000;
    o.checkpoint_bytes = 100'000;
    o.log_file_bytes = 200'000;
    auto opened = BdbStore::open(o);
    REQUIRE(opened.ok());
    store_ = std::move(opened).value();
    return *store_;
  }
  // Closing wrote everything into the B-trees: flips a bit of an entry in one of them.
  void rot_in_the_middle() {
    store_.reset();
    for (const auto& f : std::filesystem::directory_iterator(disk_.path() + "/env")) {
      if (f.path().filename().string().rfind("entries-", 0) != 0) continue;
      std::fstream file(f.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(4096 + 3000);
      const auto byte = static_cast<char>(file.get() ^ 4);
      file.seekp(4096 + 3000);
      file.put(byte);
      return;
    }
    FAIL("no segment");
  }
  const std::string& path() const { return disk_.path(); }
  void close() { store_.reset(); }

 private:
  TemporaryDisk disk_;
  std::unique_ptr<BdbStore> store_;
};

}  // namespace crane::test
