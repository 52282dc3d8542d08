// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/encode.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <fmt/format.h>

#include <cstring>

namespace crane::proxy {

VirtualAddress virtual_address(const sockaddr* address, socklen_t size) noexcept {
  VirtualAddress out{};
  out.family = AF_INET;
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    out.port = ntohs(in.sin_port);
    std::memcpy(out.ip, &in.sin_addr, sizeof in.sin_addr);
  } else if (address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    out.port = ntohs(in.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
      std::memcpy(out.ip, in.sin6_addr.s6_addr + 12, 4);
    } else {
      out.family = AF_INET6;
      out.scope = in.sin6_scope_id;
      std::memcpy(out.ip, &in.sin6_addr, sizeof in.sin6_addr);
    }
  }
  return out;
}

std::string text(const VirtualAddress& address) {
  char ip[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(address.family, address.ip, ip, sizeof ip);
  return address.family == AF_INET6 ? fmt::format("[{}]:{}", ip, address.port)
                                    : fmt::format("{}:{}", ip, address.port);
}

ListenPlace listen_place(Pieces pieces) noexcept {
  ListenPlace place{};
  if (!pieces.empty() && pieces[0].size() == sizeof place)
    std::memcpy(&place, pieces[0].data(), sizeof place);
  return place;
}

Place place_of(const ListenPlace& place) {
  constexpr std::uint8_t kOwnAddress[] = {192, 0, 2, 1};  // the address of eth0, as servers see it
  const VirtualAddress& bound = place.bound;
  const bool is_ipv6 = bound.family == AF_INET6;
  const bool is_own = !is_ipv6 && std::memcmp(bound.ip, kOwnAddress, sizeof kOwnAddress) == 0;
  std::string address;
  if (!is_wildcard(bound) && !is_own) {
    char ip[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(bound.family, bound.ip, ip, sizeof ip);
    address = ip;
  } else if (!is_ipv6) {
    address = place::kIpv4;
  } else {
    address = place.only_ipv6 ? place::kIpv6 : place::kBoth;
  }
  if (place.loopback_device) address += place::kLoopback;
  return {bound.port, address};
}

Place place_of(const OutputHeader& header, Pieces pieces) {
  const ListenPlace place = listen_place(pieces);
  if (place.bound.family == 0) return {static_cast<std::uint16_t>(header.conn)};
  return place_of(place);
}

const char* name(EntryType type) noexcept {
  switch (type) {
#define ENTRY(symbol, number, name, origin) \
  case EntryType::symbol:                   \
    return name;
#include "dmt/sequence/entry_types.def"
#undef ENTRY
  }
  return "unknown";
}

}  // namespace crane::proxy
