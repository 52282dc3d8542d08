// SPDX-License-Identifier: Apache-2.0
#include "eval/papers/loggp.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dmt/base/assert.h"

namespace crane::eval {

using consensus::FabricEvent;
using consensus::Key;
using consensus::Token;

LogGpFabric::LogGpFabric(LogGpNetwork& network, ReplicaId self, std::uint64_t log_bytes)
    : network_(network), self_(self), memory_(log_bytes) {}

void LogGpFabric::set_cell(std::uint8_t cell, const consensus::CellValue& v) noexcept {
  cells_[cell] = v;
}

Result<Key> LogGpFabric::permit_writes(ReplicaId) noexcept { return Key{1}; }

void LogGpFabric::begin() noexcept { processor_ = std::max(processor_, network_.world.now_ns()); }
void LogGpFabric::work(Pico time) noexcept { processor_ += time; }

// The poster's processor pays o, its device sends, `land` happens at the target, the completion is
// there at the same moment: the way back is in L.
void LogGpFabric::post(ReplicaId peer, Token token, const LogGp::Operation& op, Pico flight,
                       Land land) {
  work(op.o);
  device_ = std::max(processor_, device_) + flight;
  LogGpFabric& target = network_[value(peer)];
  network_.world.at(device_ + op.L, [this, &target, peer, token, land = std::move(land)] {
    Waiting w;
    land(target, w.data);
    w.event.kind = FabricEvent::Kind::kCompletion;
    w.event.peer = peer;
    w.event.ok = true;
    w.event.token = token;
    arrive(std::move(w));
  });
}

void LogGpFabric::write(ReplicaId peer, Key, std::uint64_t offset, std::span<const std::byte> bytes,
                        Token token) noexcept {
  const LogGp& c = network_.costs;
  const bool is_inline = bytes.size() <= c.inline_max;
  const auto& op = is_inline ? c.write_inline : c.write;
  Pico flight = op.gap(std::min<std::uint64_t>(bytes.size(), c.mtu));
  if (bytes.size() > c.mtu) {
    flight += static_cast<Pico>(c.G_m * static_cast<double>(bytes.size() - c.mtu));
  }
  post(peer, token, op, flight,
       [offset, copy = std::vector<std::byte>(bytes.begin(), bytes.end())](
           LogGpFabric& target, std::vector<std::byte>&) {
         std::copy(copy.begin(), copy.end(),
                   target.memory_.begin() + static_cast<std::ptrdiff_t>(offset));
         if (std::exchange(target.landed_waits_, true)) return;
         Waiting w;
         w.event.kind = FabricEvent::Kind::kLanded;
         target.arrive(std::move(w));
       });
}

void LogGpFabric::read(ReplicaId peer, std::uint64_t offset, std::uint64_t n,
                       Token token) noexcept {
  const auto& op = network_.costs.read;
  post(peer, token, op, op.gap(n), [offset, n](LogGpFabric& target, std::vector<std::byte>& data) {
    const auto begin = target.memory_.begin() + static_cast<std::ptrdiff_t>(offset);
    data.assign(begin, begin + static_cast<std::ptrdiff_t>(n));
  });
}

void LogGpFabric::read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept {
  const auto& op = network_.costs.read;
  post(peer, token, op, op.gap(sizeof(consensus::CellValue)),
       [cell](LogGpFabric& target, std::vector<std::byte>& data) {
         data.resize(sizeof(consensus::CellValue));
         std::memcpy(data.data(), &target.cells_[cell], data.size());
       });
}

void LogGpFabric::open_log(ReplicaId peer, Key, Token token) noexcept {
  post(peer, token, network_.costs.write_inline, 0, [](LogGpFabric&, std::vector<std::byte>&) {});
}

bool LogGpFabric::send_request(ReplicaId peer, std::span<const std::byte> body) noexcept {
  const auto& op = network_.costs.message;
  work(op.o);
  device_ = std::max(processor_, device_) + op.gap(body.size());
  LogGpFabric& target = network_[value(peer)];
  Waiting w;
  w.event.kind = FabricEvent::Kind::kRequest;
  w.event.peer = self_;
  w.data.assign(body.begin(), body.end());
  network_.world.at(device_ + op.L,
                    [&target, w = std::move(w)]() mutable { target.arrive(std::move(w)); });
  return true;
}

void LogGpFabric::arrive(Waiting w) {
  if (!on_wake) return;  // a replica whose processor takes no part
  waiting_.push_back(std::move(w));
  if (waiting_.size() == 1) wake_at(network_.world.now_ns());
}

void LogGpFabric::wake_at(Pico at) {
  network_.world.at(std::max(at, processor_), [this] {
    if (network_.world.now_ns() < processor_) return wake_at(processor_);
    on_wake();
    if (!waiting_.empty()) wake_at(processor_);
  });
}

std::size_t LogGpFabric::poll(std::span<FabricEvent> out) noexcept {
  begin();
  if (waiting_.empty() || processor_ > network_.world.now_ns()) return 0;
  Waiting w = std::move(waiting_.front());
  waiting_.pop_front();
  const LogGp& c = network_.costs;
  switch (w.event.kind) {
    case FabricEvent::Kind::kCompletion:
      work(c.o_p);
      break;
    case FabricEvent::Kind::kRequest:
      work(c.message.o);
      break;
    case FabricEvent::Kind::kLanded:
      work(c.o_notice);
      landed_waits_ = false;
      break;
    case FabricEvent::Kind::kPeerUp:
    case FabricEvent::Kind::kPeerDown:
      break;
  }
  handed_ = std::move(w.data);
  out[0] = w.event;
  out[0].data = handed_;
  return 1;
}

LogGpNetwork::LogGpNetwork(const LogGp& c, std::uint8_t replicas, std::uint64_t log_bytes)
    : costs(c) {
  for (std::uint8_t i = 0; i < replicas; ++i) {
    fabrics_.push_back(std::make_unique<LogGpFabric>(*this, ReplicaId{i}, log_bytes));
  }
}

bool LogGpNetwork::run_until(const std::function<bool()>& done) {
  while (!done()) {
    if (!world.step()) return false;
  }
  return true;
}

}  // namespace crane::eval
