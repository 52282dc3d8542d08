// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a server listens: its own port, and an address as ss(8) shows it: "127.0.0.1", "::1",
// "0.0.0.0" (IPv4), "::" (IPv6), "*" (both).  The suffix "%lo" restricts it to clients of that
// interface.
//
// Threads: plain values.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace crane {

struct Place {
  std::uint16_t port = 0;
  std::string address;  // empty: any address at which the server listens on that port

  Place() = default;
  Place(std::uint16_t number, std::string where = {}) : port(number), address(std::move(where)) {}
  auto operator<=>(const Place&) const = default;
};

namespace place {
inline constexpr std::string_view kBoth = "*", kIpv4 = "0.0.0.0", kIpv6 = "::", kLoopback = "%lo";

inline std::string_view without_device(std::string_view address) noexcept {
  return address.substr(0, address.find('%'));
}
inline bool is_ipv6(std::string_view address) noexcept {
  return address.find(':') != std::string_view::npos;
}
inline bool is_wildcard(std::string_view address) noexcept {
  return address == kBoth || address == kIpv4 || address == kIpv6;
}
// Only clients of this host can reach it.
inline bool is_loopback(std::string_view address) noexcept {
  return address.ends_with(kLoopback) || address.starts_with("127.") || address == "::1";
}

// A listener at `wide` accepts all clients of `narrow`.
inline bool covers(std::string_view wide, std::string_view narrow) noexcept {
  if (wide.empty() || wide == narrow) return true;
  if (!is_wildcard(wide)) return false;
  if (wide == kBoth) return true;
  return narrow != kBoth && is_ipv6(wide) == is_ipv6(narrow);
}
// The kernel gives the port to only one of the two.
inline bool overlap(std::string_view a, std::string_view b) noexcept {
  const std::string_view one = without_device(a), other = without_device(b);
  return covers(one, other) || covers(other, one);
}

// "port 80", "port 80 (IPv6 only)", "port 80 of 127.0.0.1 only".
inline std::string text(std::uint16_t port, std::string_view address) {
  const std::string number = "port " + std::to_string(port);
  if (address.empty() || address == kBoth) return number;
  if (is_wildcard(address)) return number + (is_ipv6(address) ? " (IPv6 only)" : " (IPv4 only)");
  return number + " of " + std::string(address) + " only";
}
inline std::string text(const Place& place) { return text(place.port, place.address); }
}  // namespace place

}  // namespace crane
