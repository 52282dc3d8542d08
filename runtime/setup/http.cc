// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/http.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

#include "runtime/setup/address.h"
#include "runtime/setup/preflight.h"

namespace crane::setup {
namespace {

constexpr int kPortMost = 65535;

bool is_any(const VirtualAddress& address) {
  return std::all_of(std::begin(address.ip), std::end(address.ip),
                     [](auto byte) { return byte == 0; });
}

}  // namespace

std::optional<VirtualAddress> parse_http(const std::string& text) {
  VirtualAddress address{};
  if (parse_address(text, address) || parse_address("127.0.0.1:" + text, address)) return address;
  return std::nullopt;
}

Outcome check_http(const std::string& text, int replicas) {
  if (text.empty()) return Done{};
  const auto address = parse_http(text);
  if (!address) {
    return failure(Status::kUsage, "--http", text, "neither a port nor an address with a port",
                   "write it as 9100, 10.0.0.1:9100 or [2001:db8::1]:9100");
  }
  if (address->port + replicas - 1 <= kPortMost) return Done{};
  return failure(Status::kUsage, "--http", text,
                 "replica i answers at this port + i, and there are " + std::to_string(replicas),
                 "use a lower port");
}

Outcome check_http_ports(const std::string& text, int replicas) {
  for (int i = 0; !text.empty() && i < replicas; ++i) {
    const std::string place = http_of_replica(text, i);
    if (check_port(parse_http(place)->port)) continue;
    return failure(Status::kPortTaken, "replica " + std::to_string(i) + " cannot answer HTTP",
                   place, "the port is taken",
                   "stop its owner, or choose another port with --http");
  }
  return Done{};
}

std::string http_of_replica(const std::string& text, int number) {
  auto address = parse_http(text);
  if (!address) return "";
  address->port = static_cast<std::uint16_t>(address->port + number);
  return address_text(*address);
}

std::string http_listen_of(const GroupFile& file, const HostReplica& replica) {
  return http_of_replica(replica.http.empty() ? file.http : replica.http, 0);
}

std::vector<std::string> http_pages_of(const GroupFile& file) {
  std::vector<std::string> all;
  for (const HostReplica& replica : file.replicas) {
    std::string page = http_listen_of(file, replica);
    VirtualAddress address{}, reached{};
    if (!page.empty() && parse_address(page, address) && is_any(address)) {
      const bool six = replica.clients.find(':') != std::string::npos;
      const std::string host = six ? "[" + replica.clients + "]" : replica.clients;
      if (parse_address(host + ":" + std::to_string(address.port), reached)) {
        page = address_text(reached);
      }
    }
    all.push_back(std::move(page));
  }
  return all;
}

}  // namespace crane::setup
