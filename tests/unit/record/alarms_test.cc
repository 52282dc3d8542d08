// SPDX-License-Identifier: Apache-2.0
// GOAL    After a difference that no majority settles, the status reports the difference and how
//         far later entries are verified. Later comparisons never verify earlier entries (LIVE-A1).
//         Replicas that restarted at one entry have equal digests if they do the same from then on,
//         and different ones otherwise.
// METHOD  A hand-written history of judgements; outputs and schedules of two replicas that
//         differed.

#include <catch2/catch.hpp>
#include <string>

#include "dmt/sequence/turn_record.h"
#include "proxy/record/alarms.h"
#include "proxy/record/output_hash.h"

namespace {

using namespace crane;
using namespace crane::proxy;

void write(OutputHash& hash, std::uint64_t conn, const std::string& text) {
  hash.bytes(ConnId{conn}, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

TEST_CASE("alarms: a later comparison proves nothing about earlier entries", "[verify]") {
  Alarms a;
  CHECK(a.none());
  CHECK(a.text().empty());
  a.agreed(100);
  CHECK(a.unbroken() == 100);
  a.raised("they differ", 200, "noon");
  CHECK_FALSE(a.none());
  CHECK(a.text() == "they differ; differences: 1, since noon (log index 200)");
  // The majority continued.
  a.agreed(300);
  CHECK(a.unbroken() == 300);
  a.raised("they differ again", 400, "one");
  a.restart_from(410);
  CHECK(a.text() ==
        "they differ again; differences: 2, since noon (log index 200); compared again from log "
        "index 410: nothing yet");
  CHECK(a.verified() == 300);
  a.agreed(405);  // a cut before it
  CHECK(a.verified() == 300);
  a.agreed(500);
  CHECK(a.unbroken() == 300);
  CHECK(a.verified() == 500);
  CHECK(a.text().ends_with("again from log index 410: equal up to 500"));
  a.restart_from(600);
  CHECK(a.verified() == 300);
  Alarms restored;
  restored.restore(a.unbroken(), a.restarted_from());
  restored.agreed(700);
  CHECK(restored.unbroken() == 300);
  CHECK(restored.verified() == 700);
}

TEST_CASE("alarms: a difference is over when all voters are equal again", "[verify]") {
  Alarms a;
  a.agreed(100);
  a.all_agreed();
  CHECK_FALSE(a.differ());
  a.raised("one differs", 200, "noon");
  a.agreed(300);  // a majority
  CHECK(a.differ());
  a.agreed(400);
  a.all_agreed();
  CHECK_FALSE(a.differ());
  CHECK(a.text() ==
        "one differs; differences: 1, since noon (log index 200); all voters are equal again");
  a.raised("one differs again", 500, "one");
  CHECK(a.differ());
  a.restart_from(510);  // what precedes it stays unknown
  a.agreed(600);
  a.all_agreed();
  CHECK(a.differ());
}

TEST_CASE("again: replicas that differed are equal again if they do the same", "[verify]") {
  OutputHash a, b;
  write(a, 9, "rss:4711");
  write(b, 9, "rss:471");  // not even as long
  CHECK(a.digest() != b.digest());
  a = {}, b = {};
  for (OutputHash* h : {&a, &b}) write(*h, 9, std::string(4000, 'x'));
  CHECK(a.digest() == b.digest());
  write(a, 9, "1");
  write(b, 9, "2");
  CHECK(a.digest() != b.digest());
  // The schedule: the hash starts from zero at the entry's admission, at one clock.
  std::uint64_t ours = fold_turn(1, 1, 2, 3), theirs = fold_turn(1, 1, 2, 4);
  CHECK(ours != theirs);
  ours = fold_admission(0, 50, 500), theirs = fold_admission(0, 50, 500);
  CHECK(fold_turn(ours, 1, 2, 3) == fold_turn(theirs, 1, 2, 3));
}
