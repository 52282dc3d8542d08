// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/turn/vrandom.h"

#include <cstdint>
#include <cstring>

#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr unsigned rotate(unsigned x, int n) noexcept { return (x << n) | (x >> (32 - n)); }

void quarter(unsigned& a, unsigned& b, unsigned& c, unsigned& d) noexcept {
  a += b;
  d = rotate(d ^ a, 16);
  c += d;
  b = rotate(b ^ c, 12);
  a += b;
  d = rotate(d ^ a, 8);
  c += d;
  b = rotate(b ^ c, 7);
}

// Writes all but the nonce, with 0 as the block number.
void put_key(std::uint32_t* s) noexcept {
  static constexpr std::uint32_t kConstants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  std::memcpy(s, kConstants, sizeof kConstants);
  std::memcpy(s + 4, without_turn().scheduler.seed, sizeof without_turn().scheduler.seed);
  s[12] = 0;
}

void start_stream() noexcept {
  const dmt::SlotRecord& slot = without_turn().slots[self.slot];
  std::uint32_t* s = self.random_state;
  put_key(s);
  s[13] = self.slot;
  s[14] = slot.generation;
  // Own turns so far: after exec the same slot continues with another stream.
  s[15] = static_cast<std::uint32_t>(slot.operations);
  self.random_used = sizeof self.random_bytes;
  self.random_ready = true;
}

}  // namespace

void chacha20_block(const unsigned (&input)[16], unsigned char (&out)[64]) noexcept {
  unsigned x[16];
  std::memcpy(x, input, sizeof x);
  for (int round = 0; round < 10; ++round) {
    quarter(x[0], x[4], x[8], x[12]);
    quarter(x[1], x[5], x[9], x[13]);
    quarter(x[2], x[6], x[10], x[14]);
    quarter(x[3], x[7], x[11], x[15]);
    quarter(x[0], x[5], x[10], x[15]);
    quarter(x[1], x[6], x[11], x[12]);
    quarter(x[2], x[7], x[8], x[13]);
    quarter(x[3], x[4], x[9], x[14]);
  }
  for (int i = 0; i < 16; ++i) x[i] += input[i];
  std::memcpy(out, x, sizeof x);
}

void virtual_random(void* buffer, std::size_t size) noexcept {
  if (!self.random_ready) start_stream();
  auto* out = static_cast<unsigned char*>(buffer);
  while (size > 0) {
    if (self.random_used == sizeof self.random_bytes) {
      chacha20_block(self.random_state, self.random_bytes);
      if (++self.random_state[12] == 0) ++self.random_state[15];
      self.random_used = 0;
    }
    std::size_t n = sizeof self.random_bytes - self.random_used;
    if (n > size) n = size;
    std::memcpy(out, self.random_bytes + self.random_used, n);
    // Bytes that were returned are erased.
    std::memset(self.random_bytes + self.random_used, 0, n);
    self.random_used += static_cast<std::uint32_t>(n);
    out += n;
    size -= n;
  }
}

void agreed_bytes(unsigned char (&out)[16]) noexcept {
  unsigned input[16];
  unsigned char block[64];
  put_key(input);
  input[13] = input[14] = input[15] = dmt::kNone;  // a nonce that no thread's stream has
  chacha20_block(input, block);
  std::memcpy(out, block, sizeof out);
}

void restart_random() noexcept { self.random_ready = false; }

}  // namespace crane
