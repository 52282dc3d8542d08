// SPDX-License-Identifier: Apache-2.0
#include "eval/papers/core_node.h"

#include <algorithm>
#include <array>
#include <variant>

#include "dmt/base/assert.h"
#include "dmt/base/overloaded.h"

namespace crane::eval {
namespace {

namespace core = consensus::core;
using consensus::FabricEvent;
using consensus::Key;

constexpr Pico kPicoPerNs = 1000;

core::Config config_of(ReplicaId self, std::uint8_t replicas, std::uint64_t ring_bytes) {
  core::Config c;
  c.self = self;
  c.replicas = replicas;
  c.incarnation = core::kFirstIncarnation;
  c.members = core::Members::first(replicas);
  c.log_id = 1;
  c.ring_bytes = ring_bytes;
  c.payload_bytes_max = static_cast<std::uint32_t>(ring_bytes / 16);
  c.campaign_at_once = value(self) == 0;
  return c;
}

}  // namespace

CoreNode::CoreNode(LogGpNetwork& network, ReplicaId self, std::uint8_t replicas,
                   std::uint64_t ring_bytes)
    : network_(network),
      fabric_(network[value(self)]),
      core_(config_of(self, replicas, ring_bytes), fabric_.log_memory()),
      random_(value(self) + 1) {
  fabric_.on_wake = [this] { wake(); };
}

void CoreNode::start() {
  fabric_.begin();
  step(core::Start{});
  plan_tick();
}

Index CoreNode::propose(std::span<const std::byte> payload) {
  const auto index = core_.propose({1, 0, 0, payload}, now());
  CRANE_ASSERT(index.ok());
  carry_out();
  plan_tick();
  return index.value();
}

core::Now CoreNode::now() noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return {fabric_.processor() / kPicoPerNs, random_};
}

void CoreNode::step(const core::Event& event) {
  const Index before = core_.committed();
  core_.step(event, now());
  carry_out();
  while (!answers_.empty()) {
    const core::Event answer = answers_.front();
    answers_.pop_front();
    core_.step(answer, now());
    carry_out();
  }
  if (core_.committed() > before) committed_at_ = fabric_.processor();
}

void CoreNode::carry_out() {
  while (core_.take_actions(actions_)) {
    const core::ActionList list = actions_;
    for (const core::Action& a : list) carry_out(a);
  }
}

void CoreNode::carry_out(const core::Action& action) {
  const auto memory = fabric_.log_memory();
  std::visit(Overloaded{
                 [&](const core::WriteLog& a) {
                   fabric_.write(a.peer, Key{1}, a.offset, memory.subspan(a.offset, a.size),
                                 a.token);
                 },
                 [&](const core::ReadLog& a) { fabric_.read(a.peer, a.offset, a.size, a.token); },
                 [&](const core::ReadCell& a) { fabric_.read_cell(a.peer, a.cell, a.token); },
                 [&](const core::SetCell& a) {
                   consensus::CellValue v;
                   std::copy(a.value.begin(), a.value.end(), v.words);
                   fabric_.set_cell(a.cell, v);
                 },
                 [&](const core::SendMessage& a) {
                   fabric_.send_request(a.peer, std::as_bytes(std::span(&a.message, 1)));
                 },
                 [&](const core::PermitWrites& a) {
                   answers_.push_back(core::Permitted{a.peer, Key{1}, true});
                 },
                 [&](const core::RevokeWrites& a) { answers_.push_back(core::Revoked{a.peer}); },
                 [](const core::Fatal&) { CRANE_ASSERT(!"no replica fails here"); },
                 [](const auto&) {},
             },
             action);
}

void CoreNode::wake() {
  std::array<FabricEvent, 1> events;
  bool news = false;
  while (fabric_.poll(events) > 0) {
    const FabricEvent& e = events[0];
    switch (e.kind) {
      case FabricEvent::Kind::kCompletion:
        step(core::Completion{e.token, e.ok, e.data});
        break;
      case FabricEvent::Kind::kRequest:
        step(core::MessageArrived{e.peer, e.data});
        break;
      case FabricEvent::Kind::kLanded:
        step(core::LogArrived{});
        break;
      case FabricEvent::Kind::kPeerUp:
      case FabricEvent::Kind::kPeerDown:
        break;
    }
  }
  while (core_.deliver()) {
    news = true;
    carry_out();
  }
  carry_out();
  if (news) step(core::Flush{});
  plan_tick();
}

void CoreNode::plan_tick() {
  const std::uint64_t due = core_.deadline_ns();
  const std::uint64_t now_ns = network_.world.now_ns() / kPicoPerNs;
  const bool planned = tick_planned_ns_ > now_ns && tick_planned_ns_ <= due;
  if (planned || due > now_ns + 3'600'000'000'000) return;
  tick_planned_ns_ = std::max(due, now_ns + 1);
  network_.world.at(tick_planned_ns_ * kPicoPerNs, [this, at = tick_planned_ns_] {
    if (at != tick_planned_ns_) return;
    tick_planned_ns_ = 0;
    fabric_.begin();
    if (core_.deadline_ns() * kPicoPerNs <= fabric_.processor()) step(core::Tick{});
    plan_tick();
  });
}

}  // namespace crane::eval
