// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/http.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "dmt/base/place.h"
#include "runtime/setup/address.h"
#include "runtime/setup/preflight.h"

namespace crane::setup {
namespace {

constexpr int kPortMost = 65535;

bool is_any(const VirtualAddress& address) {
  return std::all_of(std::begin(address.ip), std::end(address.ip),
                     [](auto byte) { return byte == 0; });
}

// "-p", "--port", "admin_port", "--listen", but not "--report".
bool is_about_ports(const std::string& option) {
  std::string part;
  for (const char c : option + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      part += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (part == "port" || part == "listen") return true;
    part.clear();
  }
  return option == "-p";
}

// The port of "ADDRESS:PORT", also after "--listen=" and "tcp://"; 0: the word is none.
std::uint16_t port_of_address(const std::string& word) {
  const auto begin = word.find_last_of("=/");
  const std::string text = begin == std::string::npos ? word : word.substr(begin + 1);
  VirtualAddress address{};
  return parse_address(text, address) ? address.port : std::uint16_t{0};
}

}  // namespace

std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  (void)strip_brackets(host);
  return host;
}

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

std::vector<NamedPort> named_ports(const std::vector<std::string>& command) {
  std::vector<NamedPort> all;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const auto equals = word.find('=');
    std::uint16_t port = 0;
    if (is_about_ports(command[i - 1]) && i > 1 && parse_port(word, port)) {
      all.push_back({port, command[i - 1] + " " + word});
    } else if (equals != std::string::npos && is_about_ports(word.substr(0, equals)) &&
               parse_port(word.substr(equals + 1), port)) {
      all.push_back({port, word});
    } else if (word.starts_with("-p") && parse_port(word.substr(2), port)) {
      all.push_back({port, word});
    } else if (port = port_of_address(word); port != 0) {
      all.push_back({port, word});
    }
  }
  return all;
}

Outcome check_http_apart(const std::string& text, int replicas, const Ports& publish,
                         const std::vector<std::string>& command) {
  const auto wrong = [](const std::string& address, int replica, const std::string& other) {
    return failure(Status::kUsage, "--http", address,
                   "replica " + std::to_string(replica) +
                       " answers HTTP there, and clients reach " + other + " at the same port",
                   "choose another port with --http");
  };
  for (int i = 0; !text.empty() && i < replicas; ++i) {
    const std::string address = http_of_replica(text, i);
    const VirtualAddress http = *parse_http(address);
    for (const Published& port : publish) {
      const bool apart = port.ours != http.port || !place::overlap(host_of(address), port.address);
      if (apart) continue;
      return wrong(address, i, "--publish " + crane::setup::text(port));
    }
    if (!publish.empty()) continue;  // its other ports are not ports of this machine
    for (const NamedPort& port : named_ports(command)) {
      if (port.port == http.port) return wrong(address, i, "the server (" + port.word + ")");
    }
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
