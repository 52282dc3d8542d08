// SPDX-License-Identifier: Apache-2.0
// Randomness from the group's agreed seed, and values that a host would give (DESIGN D7, rule 20).
// rand(), random() and drand48() stay libc's: their seeds come from here or from the clock.
#include <cstring>

#include "runtime/real.h"
#include "runtime/turn.h"
#include "runtime/vrandom.h"
#include "runtime/wrappers.h"

namespace crane::wrap {
namespace {

// What every replica claims to run on, whatever it runs on.
constexpr int kProcessors = 2;
constexpr long kMemoryPages = 1 << 20;

int fail(int error) noexcept {
  errno = error;
  return -1;
}

std::uint32_t random_word() noexcept {
  std::uint32_t word;
  virtual_random(&word, sizeof word);
  return word;
}

}  // namespace

ssize_t getrandom(void* buffer, size_t n, unsigned flags) {
  if ((flags & ~(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE)) != 0) return fail(EINVAL);
  virtual_random(buffer, n);
  return static_cast<ssize_t>(n);
}

int getentropy(void* buffer, size_t n) {
  if (n > 256) return fail(EIO);
  virtual_random(buffer, n);
  return 0;
}

std::uint32_t arc4random() { return random_word(); }
void arc4random_buf(void* buffer, size_t n) { virtual_random(buffer, n); }

std::uint32_t arc4random_uniform(std::uint32_t bound) {
  if (bound < 2) return 0;
  // Below this remainder the words would favour small results.
  const std::uint32_t least = (0u - bound) % bound;
  for (;;) {
    const std::uint32_t word = random_word();
    if (word >= least) return word % bound;
  }
}

// --- the machine  --------------------------------------------------------------------------------

long sysconf(int name) {
  switch (name) {
    case _SC_NPROCESSORS_CONF:
    case _SC_NPROCESSORS_ONLN:
      return kProcessors;
    case _SC_PHYS_PAGES:
    case _SC_AVPHYS_PAGES:
      return kMemoryPages;
    default:
      return real::sysconf(name);
  }
}

int get_nprocs() { return kProcessors; }
int get_nprocs_conf() { return kProcessors; }

int sched_getaffinity(pid_t, size_t n, cpu_set_t* s) {
  if (n < sizeof(unsigned long)) return fail(EINVAL);
  std::memset(s, 0, n);
  for (int i = 0; i < kProcessors; ++i) CPU_SET_S(i, n, s);
  return 0;
}
int sched_setaffinity(pid_t, size_t, const cpu_set_t*) { return 0; }
int sched_getcpu() { return 0; }

int getloadavg(double* values, int n) {
  const int count = n < 3 ? n : 3;
  for (int i = 0; i < count; ++i) values[i] = 0.0;
  return count;
}

}  // namespace crane::wrap
