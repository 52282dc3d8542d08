// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/addresses.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/preload/ground/user_memory.h"

namespace crane::addresses {
namespace {

constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool unmap(VirtualAddress& a) noexcept {
  if (a.family != AF_INET6 || std::memcmp(a.ip, kMapped, sizeof kMapped) != 0) return false;
  std::memmove(a.ip, a.ip + 12, 4);
  std::memset(a.ip + 4, 0, 12);
  a.family = AF_INET;
  a.scope = 0;
  return true;
}

void map_to_ipv6(VirtualAddress& a) noexcept {
  if (a.family != AF_INET) return;
  std::memmove(a.ip + 12, a.ip, 4);
  std::memcpy(a.ip, kMapped, sizeof kMapped);
  a.family = AF_INET6;
}

int from_sockaddr(const struct sockaddr* address, socklen_t size, VirtualAddress& out,
                  int wanted) noexcept {
  out = {};
  if (address == nullptr || size < sizeof(sa_family_t)) return -EINVAL;
  if (!is_readable(address, size)) return -EFAULT;
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    out.family = AF_INET;
    out.port = ntohs(in->sin_port);
    std::memcpy(out.ip, &in->sin_addr, 4);
    return 0;
  }
  if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    out.family = AF_INET6;
    out.port = ntohs(in->sin6_port);
    out.scope = in->sin6_scope_id;
    std::memcpy(out.ip, &in->sin6_addr, 16);
    return 0;
  }
  const bool known = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (known && wanted != 0 && address->sa_family != wanted) return -EAFNOSUPPORT;
  return known ? -EINVAL : -EAFNOSUPPORT;
}

void to_sockaddr(const VirtualAddress& address, struct sockaddr* out, socklen_t* size) noexcept {
  if (out == nullptr || size == nullptr) return;
  union {
    sockaddr_in v4;
    sockaddr_in6 v6;
  } full;
  std::memset(&full, 0, sizeof full);
  socklen_t length = sizeof full.v4;
  if (address.family == AF_INET6) {
    full.v6.sin6_family = AF_INET6;
    full.v6.sin6_port = htons(address.port);
    full.v6.sin6_scope_id = address.scope;
    std::memcpy(&full.v6.sin6_addr, address.ip, 16);
    length = sizeof full.v6;
  } else {
    full.v4.sin_family = AF_INET;
    full.v4.sin_port = htons(address.port);
    std::memcpy(&full.v4.sin_addr, address.ip, 4);
  }
  std::memcpy(out, &full, std::min(*size, length));
  *size = length;
}

}  // namespace crane::addresses
