// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/publish.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "dmt/base/place.h"
#include "runtime/setup/address.h"

namespace crane::setup {
namespace {

// Removes "ADDRESS:" from the front of OURS:SERVERS.  Returns false if that is not an address.
bool take_address(std::string& text, std::string& address) {
  const auto last = text.rfind(':');
  const auto before = last == std::string::npos || last == 0 ? last : text.rfind(':', last - 1);
  if (before == std::string::npos || before == 0) return before != 0;  // no address in the text
  std::string where = text.substr(0, before);
  std::array<unsigned char, sizeof(in6_addr)> number{};
  char canonical[INET6_ADDRSTRLEN];
  const int family = strip_brackets(where) ? AF_INET6 : AF_INET;
  if (inet_pton(family, where.c_str(), number.data()) != 1) return false;
  inet_ntop(family, number.data(), canonical, sizeof canonical);
  address = canonical == place::kIpv6 ? std::string(place::kBoth) : canonical;
  text.erase(0, before + 1);
  return true;
}

}  // namespace

const char* add_publish(const std::string& text, Ports& ports) {
  std::string numbers = text;
  Published port;
  if (!take_address(numbers, port.address)) return "not an IP address before the two ports";
  const auto colon = numbers.find(':');
  if (!parse_port(numbers.substr(0, colon), port.ours) ||
      !parse_port(colon == std::string::npos ? numbers : numbers.substr(colon + 1), port.served))
    return "not a pair of ports";
  for (const Published& other : ports) {
    if (other.served == port.served) return "this port of the server is published already";
    if (other.ours == port.ours)
      return "this port of the machine is used for another port of the server";
  }
  ports.push_back(std::move(port));
  return nullptr;
}

std::string text(const Published& port) {
  const std::string numbers = std::to_string(port.ours) + ":" + std::to_string(port.served);
  if (port.address.empty()) return numbers;
  const std::string address =
      port.address == place::kBoth ? std::string(place::kIpv6) : port.address;
  return (place::is_ipv6(address) ? "[" + address + "]" : address) + ":" + numbers;
}

std::optional<Published> published_port(const Ports& ports, std::uint16_t port) {
  if (ports.empty()) return Published{port, port};
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const Published& p) { return p.served == port; });
  if (found == ports.end()) return std::nullopt;
  return *found;
}

}  // namespace crane::setup
