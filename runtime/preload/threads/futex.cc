// SPDX-License-Identifier: Apache-2.0
// futex(2) as operations of the schedule: std::atomic's waits, InnoDB and runtimes of other
// languages synchronise with it (rule 12).
//
// Rules:
// * The word is read while holding the turn: in serial mode no other thread changes it meanwhile.
// * Waiters of one word queue first come, first served, also over a requeue. A wake-up with bits
//   skips waiters that share none of its bits.
// * A thread that waits for several words (futex_waitv) is in a list of its process. It is woken
//   after the threads that wait for one word. The list is read and changed at turns.
#include <linux/futex.h>

#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/threads/futex.h"
#include "runtime/preload/turn/blocking.h"

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

// Returns -EINVAL, or 0 and the deadline. FUTEX_WAIT's time is relative.
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

// --- several words -------------------------------------------------------------------------------

constexpr int kNotWoken = -1;

// An entry in the frame of the waiting call. It is in the list only while the thread sleeps,
// because a handler may leave the call by a jump.
struct WordsWait {
  WordsWait* next;
  std::uint16_t slot, process;
  std::uint32_t count;
  int woken;  // index of the word, or kNotWoken
  std::uint64_t objects[FUTEX_WAITV_MAX];
};
constinit WordsWait* words_waits = nullptr;  // in the order of arrival

void add_to_list(WordsWait& wait) noexcept {
  WordsWait** end = &words_waits;
  while (*end != nullptr) end = &(*end)->next;
  wait.next = nullptr;
  *end = &wait;
}

void remove_from_list(const WordsWait& wait) noexcept {
  for (WordsWait** link = &words_waits; *link != nullptr; link = &(*link)->next) {
    if (*link != &wait) continue;
    *link = wait.next;
    return;
  }
}

int index_of(const WordsWait& wait, std::uint64_t object) noexcept {
  for (std::uint32_t i = 0; i < wait.count; ++i) {
    if (wait.objects[i] == object) return static_cast<int>(i);
  }
  return kNotWoken;
}

// After a fork the list contains threads of the parent, which this process must not wake.
std::uint32_t wake_of_several(Turn& turn, std::uint64_t object, std::uint32_t count) noexcept {
  std::uint32_t woken = 0;
  for (WordsWait** link = &words_waits; *link != nullptr && woken < count;) {
    WordsWait& wait = **link;
    const bool is_ours = wait.process == self.process;
    const int index = is_ours ? index_of(wait, object) : kNotWoken;
    if (is_ours && index == kNotWoken) {
      link = &wait.next;
      continue;
    }
    *link = wait.next;
    if (!is_ours) continue;
    wait.woken = index;
    dmt::wake(turn.w, Slot{wait.slot}, dmt::WakeReason::kSignalled);
    ++woken;
  }
  return woken;
}

std::uint32_t wake_waiters(Turn& turn, std::uint64_t object, std::uint32_t count,
                           std::uint32_t bits = kAnyBit) noexcept {
  const std::uint32_t woken = dmt::signal_bits(turn.w, object, count, bits);
  return woken + wake_of_several(turn, object, count - woken);
}

long check_word(const struct futex_waitv& word) noexcept {
  constexpr std::uint32_t kFlags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  if ((word.flags & ~kFlags) != 0 || word.__reserved != 0 || (word.flags & FUTEX_32) == 0) {
    return -EINVAL;
  }
  // Its waker may be another process, which cannot see the list.
  if ((word.flags & FUTEX_PRIVATE_FLAG) == 0) return -ENOSYS;
  if (word.uaddr % 4 != 0) return -EINVAL;
  return is_readable(reinterpret_cast<const void*>(word.uaddr), 4) ? 0 : -EFAULT;
}

long check_words(const long* a) noexcept {
  const auto* words = reinterpret_cast<const struct futex_waitv*>(a[0]);
  const auto count = static_cast<std::uint32_t>(a[1]);
  if (a[2] != 0 || words == nullptr || count == 0 || count > FUTEX_WAITV_MAX) return -EINVAL;
  if (a[3] != 0 && a[4] != CLOCK_REALTIME && a[4] != CLOCK_MONOTONIC) return -EINVAL;
  const auto* time = reinterpret_cast<const struct timespec*>(a[3]);
  if (time != nullptr && !is_readable(time, sizeof *time)) return -EFAULT;
  if (time != nullptr && !is_positive(*time)) return -EINVAL;
  if (!is_readable(words, count * sizeof *words)) return -EFAULT;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const long error = check_word(words[i]); error != 0) return error;
  }
  return 0;
}

bool have_values(const struct futex_waitv* words, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (load(static_cast<long>(words[i].uaddr)) != static_cast<std::uint32_t>(words[i].val)) {
      return false;
    }
  }
  return true;
}

long wait_for_words(Turn& turn, WordsWait& wait, const struct futex_waitv* words,
                    std::int64_t deadline) noexcept {
  for (;;) {
    if (!have_values(words, wait.count)) {
      turn.yield();
      return -EAGAIN;
    }
    add_to_list(wait);
    const dmt::WakeReason why = turn.wait(0, deadline);
    if (wait.woken != kNotWoken) return wait.woken;
    remove_from_list(wait);
    if (why == dmt::WakeReason::kTimeout) return -ETIMEDOUT;
    if (why == dmt::WakeReason::kInterrupted && !turn.interrupted(kRestarts)) return -EINTR;
  }
}

// --- one word ------------------------------------------------------------------------------------

long wait(const long* a, std::uint32_t bits) noexcept {
  if (bits == 0 || is_misaligned(a[0])) return -EINVAL;
  Turn turn(Op::syscall);
  std::int64_t deadline = dmt::kNoDeadline;
  if (const long error = deadline_of(turn, a, deadline); error != 0) return error;
  for (;;) {
    if (load(a[0]) != static_cast<std::uint32_t>(a[2])) {
      turn.yield();  // the caller reads again: other threads run first
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
  if (woken > 0) yield_to_others(turn);
  return static_cast<long>(woken) + moved;
}

long wake(const long* a, std::uint32_t bits) noexcept {
  if (bits == 0 || is_misaligned(a[0])) return -EINVAL;
  Turn turn(Op::syscall);
  const std::uint64_t object = object_of_word(a[0], a[1]);
  return answer(turn, wake_waiters(turn, object, static_cast<std::uint32_t>(a[2]), bits));
}

// Wakes a[2] waiters and moves a[3] more to the other word.
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
  const std::uint32_t woken = wake_waiters(turn, from, static_cast<std::uint32_t>(a[2]));
  const std::uint32_t moved = dmt::requeue(turn.w, from, to, static_cast<std::uint32_t>(a[3]));
  // FUTEX_REQUEUE returns only the number of woken threads.
  return compares ? answer(turn, woken, moved) : answer(turn, woken);
}

// The operand and the comparison value have 12 bits with a sign.
std::uint32_t signed_12_bits(std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value << 20) >> 20);
}

// Returns the second word after FUTEX_WAKE_OP; `known` false: the operation does not exist.
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

// Changes the second word and wakes waiters of the first; also of the second if its old value
// matches.
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
      wake_waiters(turn, object_of_word(a[0], a[1]), static_cast<std::uint32_t>(a[2]));
  if (compares(old, encoded, known)) {
    woken += wake_waiters(turn, object_of_word(a[4], a[1]), static_cast<std::uint32_t>(a[3]));
  }
  return answer(turn, woken);
}

}  // namespace

long futex_words_by_number(const long* a) noexcept {
  if (const long error = check_words(a); error != 0) return error;
  const auto* words = reinterpret_cast<const struct futex_waitv*>(a[0]);
  const auto* time = reinterpret_cast<const struct timespec*>(a[3]);
  Turn turn(Op::syscall);
  const Scratch<WordsWait> memory;
  WordsWait& wait = memory[0];
  wait = {nullptr,      static_cast<std::uint16_t>(self.slot),
          self.process, static_cast<std::uint32_t>(a[1]),
          kNotWoken,    {}};
  for (std::uint32_t i = 0; i < wait.count; ++i) {
    wait.objects[i] = object_of_word(static_cast<long>(words[i].uaddr), FUTEX_PRIVATE_FLAG);
  }
  const std::int64_t deadline =
      time == nullptr ? dmt::kNoDeadline : deadline_at(turn.w, static_cast<clockid_t>(a[4]), *time);
  const long result = wait_for_words(turn, wait, words, deadline);
  turn.result(result);
  return result;
}

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
    default:  // priority inheritance: the kernel tracks the owner
      return -ENOSYS;
  }
}

}  // namespace crane
