// SPDX-License-Identifier: Apache-2.0
// GOAL    The log in a backup is exactly the log after its checkpoint, otherwise it is refused. A
//         replica that takes it into its store holds all of it as committed.
// METHOD  Stores with some entries; their tails are written, damaged byte by byte, cut, and
//         combined wrongly with valid checksums.
// CHECKS  BACKUP-1; the content of a store after take_place_with(), also after an interruption.
#include "consensus/log_tail.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "consensus/core/log.h"
#include "consensus/store/mem_store.h"
#include "consensus/store/recovery.h"
#include "consensus/store/tail_format.h"
#include "consensus/store/tail_writer.h"

using namespace crane;
using namespace crane::consensus;

namespace {

constexpr std::uint64_t kLogId = 77;
constexpr std::uint64_t kRing = 8192;
constexpr std::uint32_t kPayloadMax = 1024;
constexpr unsigned kEntries = 30, kBegin = 12, kConfigAt = 20;

struct Scratch {
  std::string path = std::filesystem::temp_directory_path() / "crane-tail-XXXXXX";
  Scratch() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

std::vector<std::byte> bytes_of(const core::Members& members) {
  std::vector<std::byte> list(core::members_bytes(members.count()));
  members.encode(list);
  return list;
}

// A store of kEntries entries in two views, with the position after each entry. Entry kConfigAt is
// a member list in which replica 2 has a new incarnation.
struct Stored {
  Scratch scratch;
  store::MemDisk disk;
  store::MemStore s{disk};
  std::vector<core::Cursor> at = {core::Cursor{}};
  core::Members before = core::Members::first(3), after = core::Members::first(3);
  const std::string path = scratch.path + "/log";

  explicit Stored(std::uint64_t log_id = kLogId) {
    after.set(ReplicaId{2}, MemberRole::kVoter, 9);
    REQUIRE(s.reset({log_id, 7}).ok());
    std::vector<std::byte> memory(core::log_memory_bytes(kRing));
    core::LogRing ring(memory, kRing, log_id, kPayloadMax);
    for (unsigned i = 1; i <= kEntries; ++i) {
      core::EntryHeader h;
      h.view = i < 15 ? 256 : 513;
      h.type = i == kConfigAt ? core::kConfig : 1;
      core::Cursor next = at.back();
      ring.append(next, h,
                  h.type == 1 ? std::vector<std::byte>(i * 7, std::byte(i)) : bytes_of(after));
      std::vector<std::byte> bytes(next.pos - at.back().pos);
      ring.copy_out(at.back().pos, bytes);
      REQUIRE(s.append(at.back(), bytes, next).ok());
      at.push_back(next);
    }
    std::ofstream(path, std::ios::binary);  // the file exists and is empty
  }
  LogPlace place(unsigned index) const { return {at[index].last, at[index].pos}; }
  core::Checkpoint checkpoint(unsigned index) const {
    return {at[index], View{513}, {{View{256}, Index{2}}, before}};
  }
  Outcome write(unsigned begin = kBegin, unsigned to = kEntries) {
    store::TailWriter writer(path, at[begin], Index{to});
    while (!writer.done()) {
      if (const Outcome o = writer.step(s); !o) return o;
    }
    return Done{};
  }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Writes a file with another head whose checksum is valid.
  template <typename Change>
  void change_head(std::string all, Change change) const {
    store::TailHead head;
    std::memcpy(&head, all.data(), sizeof head);
    change(head);
    head.crc = store::crc_of(head);
    std::memcpy(all.data(), &head, sizeof head);
    put(all);
  }
  Code code() const {
    const auto read = check_log_tail(path);
    return read ? Code::kOk : read.error().code;
  }
  std::string why() const { return check_log_tail(path).error().text; }
};

// Returns the offset of entry `index` in a file.
std::size_t offset_of(const Stored& d, unsigned index) {
  return sizeof(store::TailHead) + d.at[index - 1].pos - d.at[kBegin].pos;
}

}  // namespace

TEST_CASE("tail: the file contains the log after the position", "[store][BACKUP-1]") {
  Stored d;
  for (const auto& [begin, to] : {std::pair{kBegin, kEntries}, {0U, 5U}, {kEntries, kEntries}}) {
    REQUIRE(d.write(begin, to).ok());
    const auto read = check_log_tail(d.path);
    REQUIRE(read.ok());
    CHECK(read.value().log_id == kLogId);
    CHECK(read.value().begin == d.place(begin));
    CHECK(read.value().end == d.place(to));
    CHECK(read.value().entries == to - begin);
  }
}

TEST_CASE("tail: every flipped bit is detected", "[store][BACKUP-1]") {
  Stored d;
  REQUIRE(d.write(25).ok());
  const std::string whole = d.bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    d.put(changed);
    INFO("byte " << i);
    CHECK((d.code() == Code::kDamaged || d.code() == Code::kWrongVersion));
  }
}

TEST_CASE("tail: a file that ends early or continues is no tail", "[store][BACKUP-1]") {
  Stored d;
  REQUIRE(d.write(25).ok());
  const std::string whole = d.bytes();
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    d.put(whole.substr(0, size));
    INFO(size << " bytes");
    CHECK(d.code() == Code::kDamaged);
  }
  d.put(whole.substr(0, offset_of(d, 30) - (d.at[25].pos - d.at[kBegin].pos)));
  CHECK(d.why() == "the file ends after entry 29 of 30");
  d.put(whole + "x");
  CHECK(d.why() == "data follows the last entry");
  // Its head was never written.
  d.put(std::string(sizeof(store::TailHead), '\0') + whole.substr(sizeof(store::TailHead)));
  CHECK(d.why() == "the file has no head");
}

TEST_CASE("tail: entries that do not follow each other are refused", "[store][BACKUP-1]") {
  Stored d;
  REQUIRE(d.write().ok());
  const std::string whole = d.bytes();
  const auto nothing = [](store::TailHead&) {};
  // A gap: entry 18 is missing.
  const std::size_t from = offset_of(d, 18), behind = offset_of(d, 19);
  d.change_head(whole.substr(0, from) + whole.substr(behind), nothing);
  CHECK(d.why() == "entry 18 is damaged, or does not follow the previous one");
  // Twice the same.
  d.change_head(whole.substr(0, behind) + whole.substr(from), nothing);
  CHECK(d.why() == "entry 19 is damaged, or does not follow the previous one");
  // An entry that says another predecessor's view, with a checksum that is right.
  std::string chained = whole;
  core::EntryHeader h;
  std::memcpy(static_cast<void*>(&h), chained.data() + from, sizeof h);
  h.prev_view = 256;
  h.crc = crc32c(reinterpret_cast<const char*>(&h) + sizeof h.crc, sizeof h - sizeof h.crc);
  h.crc = crc32c(chained.data() + from + sizeof h, h.length, h.crc);
  std::memcpy(chained.data() + from, &h, sizeof h);
  d.change_head(chained, nothing);
  CHECK(d.why() == "entry 18 is damaged, or does not follow the previous one");
  // The head says another log, or another place before.
  d.change_head(whole, [](store::TailHead& head) { head.log_id = 78; });
  CHECK(d.why() == "entry 13 is damaged, or does not follow the previous one");
  d.change_head(whole, [](store::TailHead& head) { head.begin.view = 0; });
  CHECK(d.why() == "entry 13 is damaged, or does not follow the previous one");
  d.change_head(whole, [](store::TailHead& head) { head.end.view += 256; });
  CHECK(d.why() == "the last entry is not the one that the head names");
  d.change_head(whole, [](store::TailHead& head) { ++head.digest; });
  CHECK(d.why() == "the digest differs from the head's");
  d.change_head(whole, [](store::TailHead& head) { ++head.entries; });
  CHECK(d.why() == "the head is damaged");
  d.change_head(whole, [](store::TailHead& head) { ++head.version; });
  CHECK(d.code() == Code::kWrongVersion);
}

TEST_CASE("tail: a huge entry length does not make the reader allocate memory",
          "[store][BACKUP-1]") {
  Stored d;
  REQUIRE(d.write().ok());
  std::string whole = d.bytes();
  const std::uint32_t length = 0xfffffff0U;
  std::memcpy(whole.data() + offset_of(d, 13) + offsetof(core::EntryHeader, length), &length,
              sizeof length);
  d.put(whole);
  CHECK(d.why() == "entry 13 is damaged");
}

TEST_CASE("tail: a store that lacks the position writes no tail", "[store]") {
  Stored d;
  store::TailWriter foreign(d.path, {d.at[kBegin].pos, {View{300}, Index{kBegin}}}, Index{20});
  CHECK(foreign.step(d.s).error().code == Code::kBadArgument);
  REQUIRE(d.s.drop_below(Index{kBegin + 2}).ok());
  CHECK(d.write().error().code == Code::kGone);
  CHECK(d.write(kBegin + 1).ok());
  CHECK(d.code() == Code::kOk);
  // The log is truncated while it is copied.
  store::TailWriter late(d.path, d.at[kBegin + 1], Index{kEntries});
  REQUIRE(late.step(d.s).ok());
  REQUIRE(d.s.drop_below(Index{25}).ok());
  CHECK(late.step(d.s).error().code == Code::kGone);
  CHECK_FALSE(late.done());
  CHECK(d.code() == Code::kDamaged);
}

namespace {

struct Replica {
  store::MemDisk disk;
  std::vector<std::byte> memory = std::vector<std::byte>(core::log_memory_bytes(kRing));

  Outcome take(const Stored& d, ReplicaId self, const core::Checkpoint& c,
               bool was_member = false) {
    store::MemStore s(disk);
    return store::take_place_with(d.path, s, kLogId, self, was_member, c);
  }
  Result<store::Recovered> recover(const core::Checkpoint& c, bool was_member = false) {
    store::MemStore s(disk);
    store::Memory m;
    m.log = memory;
    m.ring_bytes = kRing;
    m.payload_bytes_max = kPayloadMax;
    return store::recover(s, m, kLogId, was_member, &c);
  }
  store::State state() {
    store::MemStore s(disk);
    return s.state();
  }
};

}  // namespace

TEST_CASE("tail: a restored replica is the member of the newest list, and holds the whole log",
          "[store]") {
  Stored d;
  REQUIRE(d.write().ok());
  const core::Checkpoint c = d.checkpoint(kBegin);
  for (const auto& [self, incarnation] :
       {std::pair{0, core::kFirstIncarnation}, std::pair{2, std::uint32_t{9}}}) {
    Replica r;
    REQUIRE(r.take(d, ReplicaId(self), c).ok());
    const auto recovered = r.recover(c);
    REQUIRE(recovered.ok());
    CHECK(recovered.value().start.kind == core::StartKind::kSurvived);
    CHECK(recovered.value().incarnation == incarnation);
    CHECK(recovered.value().replay_to == Index{kEntries});
    CHECK(recovered.value().start.promise[core::kPromisedView] == 513);
    CHECK(recovered.value().start.promise[core::kLowWaterIndex] == kEntries);
    CHECK(r.state().first == d.at[kBegin]);
    CHECK(r.state().last == d.at[kEntries]);
    CHECK(r.state().commit == d.at[kEntries]);
    const auto saved = core::LogRing(r.memory, kRing, kLogId, kPayloadMax).saved_config();
    REQUIRE(saved);
    CHECK(saved->members == d.after);
  }
}

TEST_CASE("tail: a restored replica may start at a newer checkpoint of its group", "[store]") {
  Stored d;
  REQUIRE(d.write().ok());
  const core::Checkpoint within = d.checkpoint(25);
  Replica r;
  REQUIRE(r.take(d, ReplicaId{1}, within).ok());
  CHECK(r.recover(within).value().replay_to == Index{kEntries});
  core::Checkpoint beyond = d.checkpoint(kEntries);
  beyond.at = {beyond.at.pos + 800, {View{769}, Index{kEntries + 3}}};
  beyond.view = View{769};
  Replica late;
  REQUIRE(late.take(d, ReplicaId{1}, beyond).ok());
  const auto recovered = late.recover(beyond);
  REQUIRE(recovered.ok());
  CHECK(recovered.value().start.kind == core::StartKind::kSurvived);
  CHECK(recovered.value().incarnation == core::kFirstIncarnation);
  CHECK(late.state().first == beyond.at);
}

TEST_CASE("tail: a start that was interrupted is repeated to its end", "[store]") {
  Stored d;
  REQUIRE(d.write().ok());
  const core::Checkpoint c = d.checkpoint(kBegin);
  Replica r;
  // The state after a process was killed between two transactions.
  {
    store::MemStore s(r.disk);
    REQUIRE(s.reset_at({kLogId, core::kFirstIncarnation}, d.at[kBegin], View{513}).ok());
    std::vector<std::byte> some;
    REQUIRE(d.s.read(Index{kBegin + 1}, 700, some).ok());
    const auto to = s.append(d.at[kBegin], some, d.at[kEntries]);
    REQUIRE(to.ok());
    REQUIRE(to.value().last.index < Index{kEntries});
  }
  REQUIRE(r.take(d, ReplicaId{1}, c).ok());
  CHECK(r.state().last == d.at[kEntries]);
  CHECK(r.state().commit == d.at[kEntries]);
  REQUIRE(r.take(d, ReplicaId{1}, c).ok());  // repeating it changes nothing
  CHECK(r.state().last == d.at[kEntries]);
}

TEST_CASE("tail: a replica that was a member, or holds a store, does not take it", "[store]") {
  Stored d;
  REQUIRE(d.write().ok());
  const core::Checkpoint c = d.checkpoint(kBegin);
  Replica lost;
  REQUIRE(lost.take(d, ReplicaId{0}, c, true).ok());
  CHECK(lost.recover(c, true).value().start.kind == core::StartKind::kLost);
  Replica other;
  {
    store::MemStore s(other.disk);
    REQUIRE(s.reset({kLogId, 5}).ok());
  }
  REQUIRE(other.take(d, ReplicaId{0}, c).ok());
  CHECK(other.state().identity.incarnation == 5);
}

TEST_CASE("tail: a damaged tail, or one of another group, changes no store", "[store]") {
  Stored d, foreign(78);
  REQUIRE(foreign.write().ok());
  Replica r;
  CHECK(r.take(foreign, ReplicaId{0}, d.checkpoint(kBegin)).error().code == Code::kDamaged);
  Stored e;
  REQUIRE(e.write().ok());
  std::string bytes = e.bytes();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  e.put(bytes);
  CHECK(r.take(e, ReplicaId{0}, e.checkpoint(kBegin)).error().code == Code::kDamaged);
  CHECK(r.disk.bytes.empty());
}
