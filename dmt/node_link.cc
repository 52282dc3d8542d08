// SPDX-License-Identifier: Apache-2.0
#include "dmt/node_link.h"

#include <atomic>
#include <ctime>

#include "dmt/base/futex.h"
#include "dmt/base/log.h"
#include "dmt/base/memory_fence.h"
#include "dmt/base/raw.h"
#include "dmt/sequence/ring.h"

namespace crane::dmt {
namespace {

// The pause while the node makes room in the output ring.
constexpr long kRingFullPauseNs = 50'000;

std::atomic<Doorbell> doorbell{nullptr};

std::atomic<FenceHandler> fence_handler{nullptr};

std::byte* base(Layout& w) noexcept { return reinterpret_cast<std::byte*>(&w); }

[[noreturn]] void fence_as(Layout& w, std::uint32_t kind, const char* why) noexcept {
  { Message() << "replica fenced: " << why; }
  w.scheduler.fenced.store(kind, std::memory_order_seq_cst);
  ring_doorbell(w);
  stop_here(w);
}

}  // namespace

void set_doorbell(Doorbell ring) noexcept { doorbell.store(ring, std::memory_order_release); }

void ring_doorbell(Layout& w) noexcept {
  memory_fence();
  if (w.scheduler.node_asleep.load(std::memory_order_relaxed) == 0) return;
  if (w.scheduler.node_asleep.exchange(0, std::memory_order_acq_rel) == 0) return;
  if (const Doorbell ring = doorbell.load(std::memory_order_acquire)) ring();
}

std::span<std::byte> reserve_output(Layout& w, std::uint32_t bytes) noexcept {
  Ring ring(w.header.output, base(w));
  for (;;) {
    const std::span<std::byte> room = ring.reserve(bytes);
    if (!room.empty()) return room;
    // D12: the node never waits for a client or a server thread, so this ends; it does not affect
    // the schedule.
    if (w.scheduler.fenced.load(std::memory_order_relaxed) != 0) stop_here(w);
    // The node reads the ring: if it waited for itself, it would wait for ever.
    if (has_turn(w, kNodeSlot)) fence(w, "the output ring is full while the node admits");
    ring_doorbell(w);
    const timespec pause{0, kRingFullPauseNs};
    (void)raw_syscall(SYS_nanosleep, &pause, nullptr);
  }
}

void commit_quietly(Layout& w, std::uint32_t bytes) noexcept {
  Ring(w.header.output, base(w)).commit(bytes);
}

void commit_output(Layout& w, std::uint32_t bytes) noexcept {
  commit_quietly(w, bytes);
  if (w.scheduler.output_pending == 0) w.scheduler.output_pending = 1;
}

void set_fence_handler(FenceHandler handler) noexcept { fence_handler.store(handler); }

void stop_here(Layout& w) noexcept {
  if (const FenceHandler handler = fence_handler.load()) handler();
  for (;;) futex_wait(&w.scheduler.fenced, w.scheduler.fenced.load());
}

void fence(Layout& w, const char* why) noexcept { fence_as(w, kFencedWrong, why); }
void fence_refused(Layout& w, const char* why) noexcept { fence_as(w, kFencedRefused, why); }

}  // namespace crane::dmt
