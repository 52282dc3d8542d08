// SPDX-License-Identifier: Apache-2.0
// GOAL    Name lookups of the server: the request, its single answer, and how a lookup ends.
// METHOD  The test holds the turn and pushes the entries of a leader.
// CHECKS  NAME-1; the table's room.
#include "dmt/names.h"

#include <netdb.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

struct Names : World {
  Names() { hold(); }
  std::uint64_t ask(Slot who, const char* name = "a.example") {
    ++w.scheduler.clock;  // each request is a separate operation
    NameRequest request{};
    request.question = NameQuestion::kAddresses;
    std::strcpy(request.name, name);
    return send_name_query(w, who, request);
  }
  void resolved(std::uint64_t number, std::int32_t error, std::uint8_t last = 1) {
    ResolvedBody body{};
    body.number = number;
    body.error = error;
    body.count = error == 0 ? 1 : 0;
    body.addresses[0].ip[3] = last;
    push(EntryType::kResolved, kPlenty, &body, sizeof body);
    admit();
  }
};

}  // namespace

TEST_CASE_METHOD(Names, "a lookup is sent to the node and answered once", "[names][NAME-1]") {
  const std::uint64_t number = ask(main);
  CHECK((number & kOutboundBit) != 0);
  REQUIRE(find_name(w, number) != nullptr);
  CHECK(find_name(w, number)->state == NameState::kAsked);
  const auto records = outputs();
  REQUIRE(records.size() == 1);
  CHECK(records[0].header.type == OutputType::kResolve);
  CHECK(records[0].header.conn == number);
  resolved(number + 1, 0);
  CHECK(find_name(w, number)->state == NameState::kAsked);
  resolved(number, 0, 7);
  resolved(number, EAI_AGAIN);  // from a leader that did not know of the first answer
  REQUIRE(find_name(w, number)->state == NameState::kAnswered);
  CHECK(find_name(w, number)->answer.error == 0);
  CHECK(find_name(w, number)->answer.addresses[0].ip[3] == 7);
  forget_name(w, number);
  CHECK(find_name(w, number) == nullptr);
  resolved(number, 0);
  CHECK(find_name(w, number) == nullptr);
}

TEST_CASE_METHOD(Names, "an answer wakes only the thread that waits for it", "[names]") {
  const Slot other = create_slot(w, kMainProcess);
  const std::uint64_t first = ask(main), second = ask(other);
  CHECK(first != second);
  w.slots[value(other)].state = SlotState::kWaiting;
  resolved(first, EAI_NONAME);
  CHECK(find_name(w, second)->state == NameState::kAsked);
  CHECK(find_name(w, first)->answer.error == EAI_NONAME);
}

TEST_CASE_METHOD(Names, "at the limit only abandoned lookups make room", "[names]") {
  const Slot other = create_slot(w, kMainProcess);
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < kNamesMax; ++i) {
    const std::uint64_t number = ask(other);
    REQUIRE(number != 0);
    if (i == 0) first = number;
  }
  CHECK(ask(main) == 0);
  SECTION("the thread itself left its call with a longjmp") {
    CHECK(ask(other) != 0);
    CHECK(find_name(w, first) == nullptr);
  }
  SECTION("the thread has ended, and another thread has its slot") {
    ++w.slots[value(other)].generation;
    CHECK(ask(main) != 0);
    CHECK(find_name(w, first) == nullptr);
  }
  SECTION("one lookup was answered and taken") {
    forget_name(w, first);
    CHECK(ask(main) != 0);
  }
}
