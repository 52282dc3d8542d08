// SPDX-License-Identifier: Apache-2.0
#pragma once
// fabric/sim for scale: one-sided operations on a virtual clock that cost what LogGP says
// (DARE 2.3), so that the strategies and the real protocol core run, unchanged, on machines that
// only their papers describe.
//
// The model, DARE's own assumptions: posting an operation of s bytes costs the poster's processor
// `o`; it lands, and its completion is there, L + (s-1) G later (acknowledgements are part of L;
// a target's processor does nothing); taking a completion out of the queue costs `o_p`.  G of the
// inline kind up to inline_max bytes, else G and behind the first MTU G_m.  Writes of one replica
// leave its device one after the other, each taking (s-1) G.  A processor does one thing at a time;
// noticing bytes in the own memory costs `o_notice`, storing an entry `o_store`.
//
// The clock of a replica's processor may be ahead of the world's while it works; what it posts
// leaves at its own time, and it takes the next event when the world has caught up.
//
// No faults here (the simulator has those): keys are always live, no replica dies.
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "consensus/fabric/fabric.h"
#include "consensus/sim/world.h"

namespace crane::eval {

// Picoseconds, so that sums of hundredths of a microsecond stay exact.
using Pico = std::uint64_t;
inline constexpr Pico kMicro = 1'000'000;
constexpr Pico us(double v) noexcept { return static_cast<Pico>(v * 1e6 + 0.5); }

struct LogGp {
  struct Operation {
    Pico o = 0;
    Pico L = 0;
    double G = 0;  // ps per byte
    // Returns the time that the wire adds for s bytes, without o.
    Pico gap(std::uint64_t s) const noexcept {
      return s > 0 ? static_cast<Pico>(G * static_cast<double>(s - 1)) : 0;
    }
  };
  Operation read;
  Operation write;
  Operation write_inline;
  Operation message;  // requests; unreliable datagrams in DARE
  double G_m = 0;     // ps per byte behind the first MTU
  std::uint64_t mtu = 4096;
  std::uint64_t inline_max = 256;
  Pico o_p = 0;
  Pico o_notice = 0;
  Pico o_store = 0;
};

class LogGpNetwork;

class LogGpFabric final : public consensus::Fabric {
 public:
  LogGpFabric(LogGpNetwork& network, ReplicaId self, std::uint64_t log_bytes);

  std::span<std::byte> log_memory() noexcept override { return memory_; }
  bool survived() const noexcept override { return false; }
  void set_cell(std::uint8_t cell, const consensus::CellValue& v) noexcept override;
  consensus::CellValue own_cell(std::uint8_t cell) const noexcept override { return cells_[cell]; }
  Result<consensus::Key> permit_writes(ReplicaId peer) noexcept override;
  void revoke_writes(ReplicaId) noexcept override {}
  consensus::Key permitted(ReplicaId) const noexcept override { return consensus::Key{1}; }
  void open_log(ReplicaId peer, consensus::Key key, consensus::Token token) noexcept override;
  void close_log(ReplicaId) noexcept override {}
  void write(ReplicaId peer, consensus::Key key, std::uint64_t offset,
             std::span<const std::byte> bytes, consensus::Token token) noexcept override;
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n,
            consensus::Token token) noexcept override;
  void read_cell(ReplicaId peer, std::uint8_t cell, consensus::Token token) noexcept override;
  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override;
  // Returns at most one event, and only events that have arrived by the processor's own time.
  std::size_t poll(std::span<consensus::FabricEvent> out) noexcept override;
  int event_fd() const noexcept override { return -1; }
  bool prepare_to_sleep() noexcept override { return waiting_.empty(); }
  void wake_self() noexcept override {}
  void ring_doorbell(ReplicaId) noexcept override {}
  bool connected(ReplicaId) const noexcept override { return true; }

  // Runs on this replica's processor when events wait: polls and reacts.  Called by the world.
  // Empty: the processor takes no part.
  std::function<void()> on_wake;
  // The processor's time: everything it did until now is done.
  Pico processor() const noexcept { return processor_; }
  // The processor works.
  void work(Pico time) noexcept;
  // The processor starts something new now, i.e. when it is free.
  void begin() noexcept;
  // Runs on_wake when the processor is free, not earlier than `at`.
  void wake_at(Pico at);

 private:
  struct Waiting {
    consensus::FabricEvent event;
    std::vector<std::byte> data;
  };
  using Land = std::function<void(LogGpFabric& target, std::vector<std::byte>& data)>;
  void post(ReplicaId peer, consensus::Token token, const LogGp::Operation& op, Pico flight,
            Land land);
  void arrive(Waiting w);

  LogGpNetwork& network_;
  const ReplicaId self_;
  std::vector<std::byte> memory_;
  consensus::CellValue cells_[consensus::kCellsMax];
  std::deque<Waiting> waiting_;
  bool landed_waits_ = false;
  std::vector<std::byte> handed_;  // of the last poll()
  Pico processor_ = 0;
  Pico device_ = 0;  // the last byte left
  Pico wake_planned_ = 0;
};

class LogGpNetwork {
 public:
  LogGpNetwork(const LogGp& costs, std::uint8_t replicas, std::uint64_t log_bytes);
  LogGpFabric& operator[](std::uint8_t id) { return *fabrics_[id]; }
  // Runs the world until `done` or nothing is left; false: nothing is left.
  bool run_until(const std::function<bool()>& done);

  const LogGp costs;
  consensus::sim::World world{1};  // counts picoseconds here

 private:
  std::vector<std::unique_ptr<LogGpFabric>> fabrics_;
};

}  // namespace crane::eval
