// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine of server_change.h with a shell that notes its actions, and answers as the test
// decides.

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/replica/recovery/server_change.h"

namespace crane::replica::change {

inline constexpr std::int64_t kMs = 1'000'000, kS = 1000 * kMs;
inline constexpr View kView{256};
inline const Upgrade::Server kOld{{"/bin/old"}}, kNew{{"/bin/new", "-x"}, 1};

inline Options options() {
  Options o;
  o.container = o.restarts = true;
  return o;
}

struct ServerChangeTest {
  explicit ServerChangeTest(const Options& o = options()) : machine(o) {
    tick.view = kView;
    tick.serves = tick.may_lead = tick.publishes = tick.runs = true;
  }

  // Returns the names of the actions that follow from an event; requests are answered.
  std::vector<std::string> step(const Event& event) {
    machine.step(event, now_ns);
    std::vector<std::string> names;
    ActionList list;
    while (machine.take_actions(list)) {
      for (const Action& a : list) {
        std::visit([&](const auto& action) { names.emplace_back(carry_out(action)); }, a);
      }
    }
    std::erase(names, "");
    return names;
  }
  std::vector<std::string> look(std::int64_t after_ns = 0) {
    now_ns += after_ns;
    return step(tick);
  }
  std::vector<std::string> commit(std::uint32_t what, std::uint64_t index,
                                  const std::optional<Next>& next = {}, unsigned patience_s = 0) {
    Committed entry;
    entry.body = {what, patience_s};
    entry.place.at.at.index = Index{index};
    entry.next = next;
    return step(entry);
  }
  std::vector<std::string> admit(std::uint64_t index) {
    tick.applied = Index{index};
    return step(Admitted{Index{index}});
  }
  // A RESTART that orders this server to end, and its end.
  void end_at(std::uint64_t index, const std::optional<Next>& next = {}, unsigned patience_s = 30) {
    REQUIRE(commit(RestartBody::kEnd, index, next, patience_s) == Names{"KeepFiles"});
    admit(index);
    REQUIRE(machine.expects_end());
    REQUIRE(step(EndedAtTurn{}).empty());
  }
  // The second entry, and the server's end in the kernel: the next server begins.
  std::vector<std::string> begin_at(std::uint64_t index) {
    REQUIRE(commit(RestartBody::kBegin, index) == Names{"NotePlace"});
    tick.applied = Index{index};
    REQUIRE(look() == Names{"LookWhetherOver", "NoteServer"});
    REQUIRE(machine.expects_kernel_end());
    REQUIRE(step(EndedInKernel{}).empty());
    return look();
  }
  // A server with another command line replaces the first one.
  void on_trial() {
    end_at(10, Next{"", kNew, kOld, true});
    REQUIRE(look() == Names{"Propose"});
    REQUIRE(begin_at(15) == Names{"BeginServer", "ReleaseLog"});
    REQUIRE(begun.server == kNew);
    REQUIRE(machine.upgrade().on_trial());
  }
  static OutputHeader listen() {
    OutputHeader header{};
    header.type = OutputType::kListen;
    header.conn = 80;
    return header;
  }

  using Names = std::vector<std::string>;
  ServerChange machine;
  Tick tick;
  std::int64_t now_ns = kS;
  bool over = true;  // the result of a look
  std::string busy;  // why nothing can be proposed
  std::string cannot_end, cannot_begin, cannot_pack;
  std::vector<Purpose> proposed;
  Propose last;
  BeginServer begun;
  Answer answer;
  Fail failure;
  std::vector<Index> published, not_published;
  std::vector<std::uint64_t> release_output;
  std::string logged, end;
  bool dead = false;

 private:
  const char* carry_out(const Answer& a) {
    answer = a;
    return "Answer";
  }
  const char* carry_out(const Propose& p) {
    last = p;
    if (busy.empty()) proposed.push_back(p.purpose);
    machine.step(Proposed{p.purpose, Index{7}, busy}, now_ns);
    return "Propose";
  }
  const char* carry_out(const KeepFiles&) { return "KeepFiles"; }
  const char* carry_out(const LeaveFiles&) { return "LeaveFiles"; }
  const char* carry_out(const NotePlace&) { return "NotePlace"; }
  const char* carry_out(const LookWhetherOver&) {
    machine.step(Looked{over}, now_ns);
    return "LookWhetherOver";
  }
  const char* carry_out(const NoteServer& n) {
    REQUIRE((over || n.dead));  // RESTARTER-2
    dead = n.dead;
    return "NoteServer";
  }
  const char* carry_out(const EndServer&) {
    if (!cannot_end.empty()) machine.step(EndRefused{cannot_end}, now_ns);
    return "EndServer";
  }
  const char* carry_out(const BeginServer& b) {
    begun = b;
    machine.step(Begun{cannot_begin}, now_ns);
    return "BeginServer";
  }
  const char* carry_out(const HandOver&) { return "HandOver"; }
  const char* carry_out(const LetIn& l) {
    release_output.push_back(l.output.header.conn);
    return "LetIn";
  }
  const char* carry_out(const ReleaseLog&) {
    REQUIRE_FALSE(machine.holds_log());  // RESTARTER-1
    return "ReleaseLog";
  }
  const char* carry_out(const Publish& p) {
    if (!cannot_pack.empty()) machine.step(Packed{p.at, cannot_pack, false}, now_ns);
    return "Publish";
  }
  const char* carry_out(const AbandonPacking&) { return "AbandonPacking"; }
  const char* carry_out(const Published& p) {
    published.push_back(p.at);
    return "Published";
  }
  const char* carry_out(const NotPublished& p) {
    not_published.push_back(p.at);
    return "NotPublished";
  }
  const char* carry_out(const Fail& f) {
    failure = f;
    return "Fail";
  }
  const char* carry_out(const EndHandedOver& e) {
    end = e.text;
    return "EndHandedOver";
  }
  const char* carry_out(const LogMessage& s) {
    logged = s.text;
    return "";
  }
};

using Names = ServerChangeTest::Names;

}  // namespace crane::replica::change
