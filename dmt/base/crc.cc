// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/crc.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <atomic>
#include <cstring>

namespace crane {
namespace {

constexpr std::uint64_t kPolynomial64 = 0xC96C5795D7870F42;  // ECMA-182, bit-reversed
constexpr std::uint32_t kPolynomial32 = 0x82F63B78;          // Castagnoli, bit-reversed

template <typename Word>
constexpr std::array<Word, 256> make_table(Word polynomial) {
  std::array<Word, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    Word crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr auto kTable64 = make_table<std::uint64_t>(kPolynomial64);
constexpr auto kTable32 = make_table<std::uint32_t>(kPolynomial32);

std::uint32_t crc32c_table(const unsigned char* p, std::size_t n, std::uint32_t crc) noexcept {
  for (; n > 0; --n, ++p) crc = (crc >> 8) ^ kTable32[(crc ^ *p) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(const unsigned char* p, std::size_t n,
                                                             std::uint32_t start) noexcept {
  std::uint64_t crc = start;
  for (; n >= 8; n -= 8, p += 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto low = static_cast<std::uint32_t>(crc);
  for (; n > 0; --n, ++p) low = __builtin_ia32_crc32qi(low, *p);
  return low;
}

// Queried once, at the first sum.  __builtin_cpu_supports queries six times at the start of every
// program, and each query takes microseconds in a virtual machine.
bool has_crc32() noexcept {
  enum : int { kUnknown, kNo, kYes };
  static constinit std::atomic<int> known{kUnknown};
  int answer = known.load(std::memory_order_relaxed);
  if (answer == kUnknown) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __cpuid(1, a, b, c, d);
    answer = (c & bit_SSE4_2) != 0 ? kYes : kNo;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
}
#endif

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
#if defined(__x86_64__)
  if (has_crc32()) return ~crc32c_sse42(p, size, crc);
#endif
  return ~crc32c_table(p, size, crc);
}

std::uint64_t crc64(const void* data, std::size_t size, std::uint64_t crc) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size > 0; --size, ++p) crc = (crc >> 8) ^ kTable64[(crc ^ *p) & 0xff];
  return ~crc;
}

}  // namespace crane
