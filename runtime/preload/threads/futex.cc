// SPDX-License-Identifier: Apache-2.0
// futex(2) as operations of the schedule: what std::atomic's waiting, InnoDB and runtimes of other
// languages synchronise with (rule 12).
//
// What must hold here:
//  * The word is looked at while holding the turn: in serial mode nobody changes it meanwhile.
//  * Waiters of one word queue first come, first served, also over a requeue; a wake-up with bits
//    passes those by whose bits it does not share.
#include <linux/futex.h>

#include "runtime/preload/core/blocking.h"
#include "runtime/preload/trap/by_number.h"

namespace crane {
namespace {

constexpr std::uint32_t kAnyBit = FUTEX_BITSET_MATCH_ANY;

std::uint64_t object_of_word(long address, long operation) noexcept {
  const bool is_private = (operation & FUTEX_PRIVATE_FLAG) != 0;
  return object_of(reinterpret_cast<const void*>(address), !is_private);
}

std::uint32_t* word_at(long address) noexcept { return reinterpret_cast<std::uint32_t*>(address); }

std::uint32_t load(long address) noexcept {
  return __atomic_load_n(word_at(address), __ATOMIC_SEQ_CST);
}

bool is_misaligned(long address) noexcept { return address % 4 != 0; }

// -EINVAL, or 0 and the deadline.  FUTEX_WAIT's time is relative.
long deadline_of(const Turn& turn, const long* a, std::int64_t& deadline) noexcept {
  const auto* time = reinterpret_cast<const struct timespec*>(a[3]);
  if (time == nullptr) return 0;
  if (!is_positive(*time)) return -EINVAL;
  const bool is_absolute = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  const bool is_wall = (a[1] & FUTEX_CLOCK_REALTIME) != 0;
  deadline = is_absolute ? deadline_at(turn.w, is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC, *time)
                         : deadline_after(turn.w, to_ns(*time));
  return 0;
}

long wait(const long* a, std::uint32_t bits) noexcept {
  if (bits == 0 || is_misaligned(a[0])) return -EINVAL;
  Turn turn(Op::syscall);
  std::int64_t deadline = dmt::kNoDeadline;
  if (const long error = deadline_of(turn, a, deadline); error != 0) return error;
  for (;;) {
    if (load(a[0]) != static_cast<std::uint32_t>(a[2])) {
      turn.yield();  // the caller looks again: let the others make progress
      turn.result(EAGAIN);
      return -EAGAIN;
    }
    turn.w.slots[self.slot].wait_bits = bits;
    switch (turn.wait(object_of_word(a[0], a[1]), deadline)) {
      case dmt::WakeReason::kSignalled:
        return 0;
      case dmt::WakeReason::kTimeout:
        turn.result(ETIMEDOUT);
        return -ETIMEDOUT;
      case dmt::WakeReason::kInterrupted:
        if (!turn.interrupted(kRestarts)) return -EINTR;
        break;
    }
  }
}

long answer(Turn& turn, std::uint32_t woken, std::uint32_t moved = 0) noexcept {
  turn.result(static_cast<std::uint64_t>(woken) + moved);
  if (woken > 0) let_others_go(turn);
  return static_cast<long>(woken) + moved;
}

long wake(const long* a, std::uint32_t bits) noexcept {
  if (bits == 0 || is_misaligned(a[0])) return -EINVAL;
  Turn turn(Op::syscall);
  const std::uint64_t object = object_of_word(a[0], a[1]);
  return answer(turn, dmt::signal_bits(turn.w, object, static_cast<std::uint32_t>(a[2]), bits));
}

// a[2] are woken, a[3] more wait for the other word from now on.
long requeue(const long* a, bool compares) noexcept {
  if (is_misaligned(a[0]) || is_misaligned(a[4])) return -EINVAL;
  if (static_cast<int>(a[2]) < 0 || static_cast<int>(a[3]) < 0) return -EINVAL;
  Turn turn(Op::syscall);
  if (compares && load(a[0]) != static_cast<std::uint32_t>(a[5])) {
    turn.yield();
    turn.result(EAGAIN);
    return -EAGAIN;
  }
  const std::uint64_t from = object_of_word(a[0], a[1]), to = object_of_word(a[4], a[1]);
  const std::uint32_t woken = dmt::signal(turn.w, from, static_cast<std::uint32_t>(a[2]));
  const std::uint32_t moved = dmt::requeue(turn.w, from, to, static_cast<std::uint32_t>(a[3]));
  // FUTEX_REQUEUE tells the woken ones only.
  return compares ? answer(turn, woken, moved) : answer(turn, woken);
}

// The operand and what is compared with it have so many, with a sign.
std::uint32_t signed_12_bits(std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value << 20) >> 20);
}

// What FUTEX_WAKE_OP does to the second word; `known` false: no such operation.
std::uint32_t changed(std::uint32_t old, std::uint32_t encoded, bool& known) noexcept {
  std::uint32_t operand = signed_12_bits(encoded >> 12);
  if ((encoded >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) operand = 1u << (operand & 31);
  switch (encoded >> 28 & 7) {
    case FUTEX_OP_SET:
      return operand;
    case FUTEX_OP_ADD:
      return old + operand;
    case FUTEX_OP_OR:
      return old | operand;
    case FUTEX_OP_ANDN:
      return old & ~operand;
    case FUTEX_OP_XOR:
      return old ^ operand;
    default:
      known = false;
      return old;
  }
}

bool compares(std::uint32_t old, std::uint32_t encoded, bool& known) noexcept {
  const auto left = static_cast<std::int32_t>(old);
  const auto right = static_cast<std::int32_t>(signed_12_bits(encoded));
  switch (encoded >> 24 & 15) {
    case FUTEX_OP_CMP_EQ:
      return left == right;
    case FUTEX_OP_CMP_NE:
      return left != right;
    case FUTEX_OP_CMP_LT:
      return left < right;
    case FUTEX_OP_CMP_LE:
      return left <= right;
    case FUTEX_OP_CMP_GT:
      return left > right;
    case FUTEX_OP_CMP_GE:
      return left >= right;
    default:
      known = false;
      return false;
  }
}

// Changes the second word, wakes waiters of the first, and of the second if its old value says so.
long wake_and_change(const long* a) noexcept {
  if (is_misaligned(a[0]) || is_misaligned(a[4])) return -EINVAL;
  const auto encoded = static_cast<std::uint32_t>(a[5]);
  Turn turn(Op::syscall);
  bool known = true;
  std::uint32_t old = load(a[4]);
  (void)compares(old, encoded, known);
  (void)changed(old, encoded, known);
  if (!known) return -ENOSYS;
  while (!__atomic_compare_exchange_n(word_at(a[4]), &old, changed(old, encoded, known), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  std::uint32_t woken =
      dmt::signal(turn.w, object_of_word(a[0], a[1]), static_cast<std::uint32_t>(a[2]));
  if (compares(old, encoded, known)) {
    woken += dmt::signal(turn.w, object_of_word(a[4], a[1]), static_cast<std::uint32_t>(a[3]));
  }
  return answer(turn, woken);
}

}  // namespace

long futex_by_number(const long* a) noexcept {
  switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
      return wait(a, kAnyBit);
    case FUTEX_WAIT_BITSET:
      return wait(a, static_cast<std::uint32_t>(a[5]));
    case FUTEX_WAKE:
      return wake(a, kAnyBit);
    case FUTEX_WAKE_BITSET:
      return wake(a, static_cast<std::uint32_t>(a[5]));
    case FUTEX_REQUEUE:
      return requeue(a, false);
    case FUTEX_CMP_REQUEUE:
      return requeue(a, true);
    case FUTEX_WAKE_OP:
      return wake_and_change(a);
    default:  // priority inheritance: its owner is a matter of the kernel's
      return -ENOSYS;
  }
}

}  // namespace crane
