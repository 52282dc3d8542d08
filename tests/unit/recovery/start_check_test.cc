// SPDX-License-Identifier: Apache-2.0
// The contents of leaders' STARTs, after a hand-over to another build and elsewhere (HANDOVER-2).
#include "proxy/host/recovery/start_check.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

using namespace crane;
using namespace crane::node;

namespace {

constexpr Agreed kOurs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

Agreed with(std::size_t item, std::uint64_t other) {
  Agreed all = kOurs;
  all[item] = other;
  return all;
}

struct Log {
  StartCheck check{kOurs};
  std::vector<std::byte> payload;

  std::string look(EntryType type) {
    consensus::EntryView entry{};
    entry.type = static_cast<std::uint8_t>(type);
    entry.payload = payload;
    const char* what = check.look(entry);
    payload.clear();
    return what == nullptr ? "" : what;
  }
  std::string start(const Agreed& of) {
    payload.resize(sizeof(StartBody) + sizeof of);
    std::memcpy(payload.data() + sizeof(StartBody), of.data(), sizeof of);
    return look(EntryType::kStart);
  }
};

bool names_schedule(const std::string& what) { return what.find("schedule") != what.npos; }

}  // namespace

TEST_CASE("start check: another schedule is refused if nothing was handed over",
          "[start_check][HANDOVER-2]") {
  Log log;
  CHECK(log.start(kOurs).empty());
  CHECK(log.look(EntryType::kConnect).empty());
  CHECK(names_schedule(log.start(with(kAgreedSchedule, 99))));
}

TEST_CASE(
    "start check: after a hand-over a leader of the old build may begin, but none of its clients",
    "[start_check][HANDOVER-2]") {
  Log log;
  log.check.begin_behind_hand_over();
  CHECK(log.look(EntryType::kData).empty());  // from the previous reign: nothing shows whose it is
  CHECK(log.start(with(kAgreedSchedule, 99)).empty());
  CHECK(log.look(EntryType::kTime).empty());
  CHECK(log.look(EntryType::kHash).empty());
  CHECK(log.look(EntryType::kTaken).empty());
  SECTION("its clients are not accepted") {
    for (const EntryType type : {EntryType::kConnect, EntryType::kData, EntryType::kSignal,
                                 EntryType::kConnected, EntryType::kReset}) {
      CHECK(names_schedule(log.look(type)));
    }
  }
  SECTION("the next leader is of this build, and others are refused from then on") {
    CHECK(log.start(kOurs).empty());
    CHECK(log.look(EntryType::kConnect).empty());
    CHECK(names_schedule(log.start(with(kAgreedSchedule, 99))));
  }
  SECTION("any other difference is refused at once") {
    CHECK_FALSE(log.start(with(1, 99)).empty());
    Agreed both = with(kAgreedSchedule, 99);
    both[kAgreedSchedule + 1] = 99;
    CHECK_FALSE(log.start(both).empty());
  }
}

TEST_CASE("start check: a START without digests agrees with all", "[start_check]") {
  Log log;
  log.payload.resize(sizeof(StartBody));
  CHECK(log.look(EntryType::kStart).empty());
  CHECK(log.look(EntryType::kConnect).empty());
}
