// SPDX-License-Identifier: Apache-2.0
// Randomness from the group's agreed seed (DESIGN D7).
// rand(), random() and drand48() stay libc's: their seeds come from these functions or the clock.
#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/turn.h"
#include "runtime/preload/turn/vrandom.h"

namespace crane::wrap {
namespace {

std::uint32_t random_word() noexcept {
  std::uint32_t word;
  virtual_random(&word, sizeof word);
  return word;
}

}  // namespace

ssize_t getrandom(void* buffer, size_t n, unsigned flags) {
  constexpr unsigned kBoth = GRND_RANDOM | GRND_INSECURE;
  if ((flags & ~(GRND_NONBLOCK | kBoth)) != 0 || (flags & kBoth) == kBoth) return fail(EINVAL);
  if (!is_writable(buffer, n)) return fail(EFAULT);
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
  // Words below this remainder would favour small results.
  const std::uint32_t least = (0u - bound) % bound;
  for (;;) {
    const std::uint32_t word = random_word();
    if (word >= least) return word % bound;
  }
}

// std::random_device uses RDSEED or RDRAND if the processor has it, and these cannot be disabled.
unsigned _ZNSt13random_device9_M_getvalEv(void*) {
  unsigned word = 0;
  if (InsideCrane::inside()) {
    raw_syscall(SYS_getrandom, &word, sizeof word, 0);
    return word;
  }
  return random_word();
}

// libcrypto's entropy input: mod_ssl passes 128 bytes of uninitialised stack. The generator already
// has virtual randomness, and more entropy cannot improve it.
void RAND_seed(const void*, int) {}
void RAND_add(const void*, int, double) {}

}  // namespace crane::wrap
