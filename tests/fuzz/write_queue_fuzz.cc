// SPDX-License-Identifier: Apache-2.0
// The write queue of the shared-memory fabric: another process may leave any bytes in the segment.
// The owner takes the writes in or reports a broken format; it stays within its memory and returns.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "consensus/fabric/shm_write_queue.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::consensus;
using namespace crane::consensus::shm;

constexpr std::uint64_t kCapacity = 64 * kWriteQueueData;
constexpr Key kTestKey{5};

struct Prefix {
  std::uint64_t tail, base, drained;
  std::uint8_t header;  // also damages the constant fields
  std::uint8_t padding[7];
  std::uint64_t magic, key, capacity;
};

// One segment for all runs, mapped a second time as another process would map it.
struct Fixture {
  Fixture() : directory("/dev/shm/crane-fuzz-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory);
    auto made = WriteQueueOwner::create(directory, kTestKey, kCapacity);
    CRANE_ASSERT(made.ok());
    auto mapped = Region::open(write_queue_path(directory, kTestKey), Region::Access::kReadWrite,
                               kWriteQueueData);
    CRANE_ASSERT(mapped.ok());
    foreign = std::move(mapped).value();
  }
  ~Fixture() { std::filesystem::remove_all(directory); }
  std::string directory;
  Region foreign;
  std::vector<std::byte> log = std::vector<std::byte>(1U << 14);
};

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (const std::uint64_t start : {std::uint64_t{0}, kCapacity - 64, 3 * kCapacity + 16}) {
    std::string s;
    put(s, Prefix{start + 3 * 48, 0, start, 0, {}, kWriteQueueMagic, value(kTestKey), kCapacity});
    for (std::uint64_t i = 0; i < 3; ++i) {
      put(s, Record{i * 100, 32});
      s.append(32, static_cast<char>(i));
    }
    out.push_back(s);
  }
  // A base that is not a multiple of a record: the next record would end after the segment.
  std::string odd;
  put(odd, Prefix{kCapacity + 64, 9, kCapacity + 8, 0, {}, kWriteQueueMagic, 5, kCapacity});
  out.push_back(odd);
  std::string skip;
  put(skip, Prefix{kCapacity + 48, 0, kCapacity - 48, 1, {}, kWriteQueueMagic, 5, kCapacity});
  put(skip, Record{kSkip, 0});
  out.push_back(skip);
  // At the largest number: the next lap would start at 0.
  std::string wrapped;
  const std::uint64_t end = ~std::uint64_t{0};
  put(wrapped, Prefix{end - 63, 0, end - 127, 0, {}, kWriteQueueMagic, 5, kCapacity});
  put(wrapped, Record{kSkip, 0});
  out.push_back(wrapped);
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  crane::fuzz::Input input(data, size);
  const auto prefix = input.take<Prefix>();
  WriteQueue* const h = fixture.foreign.as<WriteQueue>();
  h->magic = prefix.header & 1 ? prefix.magic : kWriteQueueMagic;
  h->key = prefix.header & 2 ? prefix.key : value(kTestKey);
  h->capacity = prefix.header & 4 ? prefix.capacity : kCapacity;
  h->state = value(kTestKey);
  h->tail = prefix.tail;
  h->base = prefix.base;
  h->drained = prefix.drained;
  // The place where the owner will look next.
  std::uint64_t place = (prefix.drained - prefix.base) % kCapacity;
  for (const std::byte b : input.rest()) {
    fixture.foreign.data()[kWriteQueueData + place] = b;
    place = (place + 1) % kCapacity;
  }
  auto owner = WriteQueueOwner::open(fixture.directory, kTestKey);
  if (!owner.ok()) return 0;
  if (owner.value().take_in(fixture.log)) CRANE_ASSERT(!owner.value().pending());
  (void)owner.value().revoke(fixture.log);
  return 0;
}
