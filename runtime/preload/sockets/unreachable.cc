// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/unreachable.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "runtime/preload/self/thread.h"

namespace crane::unreachable {
namespace {

constexpr std::size_t kNamedMax = 128;
struct Named {
  std::atomic<std::uint64_t> keys[kNamedMax];  // 0: free
  std::atomic<bool> full;
};
Named* named = nullptr;

std::uint64_t key_of(What what, const VirtualAddress& a) noexcept {
  std::uint64_t key = 0xcbf29ce484222325;
  const auto mix = [&key](std::uint64_t byte) { key = (key ^ byte) * 0x100000001b3; };
  mix(static_cast<std::uint64_t>(what));
  mix(a.family);
  mix(a.port);
  for (const std::uint8_t byte : a.ip) mix(byte);
  return key | 1;
}

void put_address(Message& m, const VirtualAddress& a) noexcept {
  if (a.family == AF_INET) {
    for (int i = 0; i < 4; ++i) m << (i > 0 ? "." : "") << unsigned{a.ip[i]};
  } else {
    constexpr char kDigits[] = "0123456789abcdef";
    m << "[";
    for (int i = 0; i < 16; ++i) {
      const char both[] = {kDigits[a.ip[i] >> 4], kDigits[a.ip[i] & 15], '\0'};
      m << (i > 0 && i % 2 == 0 ? ":" : "") << both;
    }
    m << "]";
  }
  m << ":" << unsigned{a.port};
}

void log_unreachable(What what, const VirtualAddress& a) noexcept {
  Message m;
  switch (what) {
    case What::kDatagram:
      m << "datagrams to ";
      put_address(m, a);
      m << " go nowhere: UDP reaches this server's own sockets only";
      return;
    case What::kPort:
      m << "no client reaches the UDP socket at ";
      put_address(m, a);
      m << ": UDP reaches this server's own sockets only";
      return;
  }
}

void count(What what) noexcept {
  dmt::Unsupported& u = without_turn().unsupported;
  std::atomic<std::uint64_t>& counter = what == What::kDatagram ? u.datagrams : u.udp_ports;
  counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void prepare() noexcept {
  const long at = raw_syscall(SYS_mmap, nullptr, sizeof(Named), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at > 0) named = reinterpret_cast<Named*>(at);
}

void name(What what, const VirtualAddress& address) noexcept {
  count(what);
  if (named == nullptr) return;
  const std::uint64_t key = key_of(what, address);
  for (std::atomic<std::uint64_t>& place : named->keys) {
    std::uint64_t seen = place.load(std::memory_order_relaxed);
    if (seen == 0 && place.compare_exchange_strong(seen, key))
      return log_unreachable(what, address);
    if (seen == key) return;
  }
  if (named->full.exchange(true)) return;
  Message() << "datagrams to further addresses go nowhere: these are not listed";
}

}  // namespace crane::unreachable
