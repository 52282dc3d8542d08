// SPDX-License-Identifier: Apache-2.0
#pragma once
// An IPv4 address and the length of its network prefix, as in 192.0.2.9/24.
//
// Threads: pure.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace crane {

// Marks an address that Crane added (IFA_PROTO, Linux 5.18); the kernel uses 1 to 3.
inline constexpr std::uint8_t kAddedByCrane = 0xc7;

struct Ipv4Prefix {
  std::string address;       // 192.0.2.9
  std::uint32_t number = 0;  // the same, network order
  unsigned bits = 0;         // 1 to 32
};

inline std::optional<Ipv4Prefix> parse_ipv4_prefix(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  Ipv4Prefix parsed{text.substr(0, slash)};
  in_addr number{};
  const char* const end = text.data() + text.size();
  if (::inet_pton(AF_INET, parsed.address.c_str(), &number) != 1 ||
      std::from_chars(text.data() + slash + 1, end, parsed.bits).ptr != end || parsed.bits == 0 ||
      parsed.bits > 32) {
    return std::nullopt;
  }
  parsed.number = number.s_addr;
  return parsed;
}

}  // namespace crane
