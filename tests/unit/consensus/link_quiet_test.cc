// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/link_quiet.h"

#include <catch2/catch.hpp>

using namespace crane::consensus;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
using Step = LinkQuiet::Step;

// The peer is heard at this interval, several times; returns the time of the last.
std::uint64_t receive_every(LinkQuiet& link, std::uint64_t every_ns, int n,
                            std::uint64_t now = kMs) {
  for (int i = 0; i < n; ++i) {
    now += every_ns;
    link.on_receive(now);
    link.note({false, 0, kMs, 0}, now);
  }
  return now;
}

LinkState cut(std::uint64_t ago_ns) { return {true, ago_ns, kMs, 3}; }

}  // namespace

TEST_CASE("link quiet: a cut is found within 100 ms while traffic flows", "[fabric]") {
  LinkQuiet link;
  CHECK(link.due_ns() == LinkQuiet::kNever);
  const std::uint64_t last = receive_every(link, 2 * kMs, 50);
  CHECK(link.step(last + 10 * kMs) == Step::kNothing);
  const std::uint64_t ask = link.due_ns();
  CHECK(ask == last + LinkQuiet::kAskMinNs);
  CHECK(link.step(ask) == Step::kAsk);
  CHECK(link.step(ask) == Step::kNothing);
  const std::uint64_t look = link.due_ns();
  CHECK(look < last + 100 * kMs);
  CHECK(link.step(look) == Step::kLook);
  link.look(cut(look - last), look);
  CHECK(link.quiet());
  CHECK(link.due_ns() == LinkQuiet::kNever);
  link.on_receive(look + kMs);
  CHECK_FALSE(link.quiet());
}

TEST_CASE("link quiet: a peer that is rarely heard is probed later", "[fabric]") {
  LinkQuiet link;
  const std::uint64_t last = receive_every(link, 100 * kMs, 50);
  CHECK(link.due_ns() > last + 150 * kMs);
  CHECK(link.due_ns() <= last + LinkQuiet::kAskMaxNs);
}

TEST_CASE("link quiet: pauses between bursts are usual, until traffic flows", "[fabric]") {
  LinkQuiet link;
  std::uint64_t last = kMs;
  for (int i = 0; i < 30; ++i)
    last = receive_every(link, kMs / 2, 2, receive_every(link, 98 * kMs, 1, last));
  CHECK(link.due_ns() > last + 150 * kMs);
  last = receive_every(link, kMs / 5, 2000, last);
  CHECK(link.due_ns() == last + LinkQuiet::kAskMinNs);
}

TEST_CASE("link quiet: probes and their answers do not count as traffic", "[fabric]") {
  LinkQuiet link;
  std::uint64_t now = receive_every(link, 100 * kMs, 50);
  for (int i = 0; i < 50; ++i) {
    for (int ms = 10; ms < 100; ms += 10) link.on_receive(now += 10 * kMs, false);
    link.on_receive(now += 10 * kMs);
  }
  CHECK(link.due_ns() > now + 150 * kMs);
}

TEST_CASE("link quiet: a peer that only answers is probed at growing intervals", "[fabric]") {
  LinkQuiet link;
  std::uint64_t now = kMs, asked = 0;
  for (link.on_receive(now, false); now < 3000 * kMs; ++asked) {
    now = link.due_ns();
    CHECK(link.step(now) == Step::kAsk);
    link.on_receive(now + kMs, false);
  }
  CHECK(asked < 40);
  CHECK(link.due_ns() - now > 250 * kMs);
}

TEST_CASE("link quiet: a process that waits for a processor is not a network fault", "[fabric]") {
  LinkQuiet link;
  receive_every(link, 2 * kMs, 50);
  CHECK(link.step(link.due_ns()) == Step::kAsk);
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t look = link.due_ns();
    CHECK(link.step(look) == Step::kLook);
    // Its kernel acknowledges everything, or did so a moment ago.
    link.look(i % 2 == 0 ? LinkState{false, 500 * kMs, kMs, 0} : LinkState{true, 5 * kMs, kMs, 0},
              look);
    CHECK_FALSE(link.quiet());
  }
}

TEST_CASE("link quiet: a network that lost something recently is not judged", "[fabric]") {
  LinkQuiet link;
  std::uint64_t now = receive_every(link, 2 * kMs, 50);
  link.note({false, 0, kMs, 1}, now);
  const auto goes_quiet = [&] {
    link.step(link.due_ns());
    now = link.due_ns();
    link.look(cut(80 * kMs), now);
    return link.quiet();
  };
  CHECK_FALSE(goes_quiet());
  for (now += LinkQuiet::kLossMemoryNs; now < 2 * LinkQuiet::kLossMemoryNs; now += kMs) {
    link.on_receive(now);
  }
  link.on_receive(now);
  CHECK(goes_quiet());
}

TEST_CASE("link quiet: a retransmission during a silence is not a loss before it", "[fabric]") {
  LinkQuiet link;
  receive_every(link, 2 * kMs, 50);
  CHECK(link.step(link.due_ns()) == Step::kAsk);
  const std::uint64_t look = link.due_ns();
  link.note({true, 50 * kMs, kMs, 4}, look - kMs);
  link.look(cut(80 * kMs), look);
  CHECK(link.quiet());
}

TEST_CASE("link quiet: a replica that was stopped itself restarts its clock", "[fabric]") {
  LinkQuiet link;
  link.resume(5);  // before anything was heard
  CHECK(link.due_ns() == LinkQuiet::kNever);
  const std::uint64_t last = receive_every(link, 2 * kMs, 50);
  CHECK(link.step(link.due_ns()) == Step::kAsk);
  link.resume(last + 500 * kMs);
  CHECK(link.step(last + 500 * kMs) == Step::kNothing);
  CHECK(link.due_ns() > last + 500 * kMs);
}
