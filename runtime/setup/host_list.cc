// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/host_list.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "runtime/setup/address.h"

namespace crane::setup {
namespace {

constexpr std::size_t kHostsMost = 9;

Outcome wrong(const std::string& word, const std::string& cause) {
  return failure(Status::kUsage, "--hosts", word, cause,
                 "write h1,h2,h3, each as NAME, NAME:PORT, NAME=ADDRESS or NAME=ADDRESS:PORT");
}

// "1.2.3.4", "1.2.3.4:7100", "::1", "[::1]:7100"
bool parse_endpoint(const std::string& text, HostWord& host) {
  if (is_ip(text)) {
    host.address = text;
    return true;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  const std::string port = text.substr(colon + 1);
  if (port.size() > 5 || !parse_port(port, host.port)) return false;
  host.address = text.substr(0, colon);
  strip_brackets(host.address);
  return is_ip(host.address);
}

Outcome parse_host(const std::string& word, HostWord& host) {
  const auto equals = word.find('=');
  host.name = word.substr(0, equals);
  // NAME:PORT.  More than one colon is an IPv6 address.
  const auto colon = word.find(':');
  if (equals == std::string::npos && colon != std::string::npos && colon == word.rfind(':')) {
    const std::string port = word.substr(colon + 1);
    if (port.size() > 5 || !parse_port(port, host.port)) {
      return wrong(word, "the text after ':' is not a port");
    }
    host.name = word.substr(0, colon);
  }
  // A name that begins with '-' would be an option of the remote shell.
  if (host.name.empty() || host.name[0] == '-' ||
      host.name.find_first_of(" \t'\"\\;&|<>$`") != std::string::npos) {
    return wrong(word, "not the name of a host");
  }
  if (equals != std::string::npos && !parse_endpoint(word.substr(equals + 1), host)) {
    return wrong(word, "the text after '=' is not an IP address, with or without a port");
  }
  const std::string plain = host.name.substr(host.name.find('@') + 1);
  if (equals == std::string::npos && is_ip(plain)) host.address = plain;
  return Done{};
}

}  // namespace

Outcome parse_hosts(const std::string& text, std::vector<HostWord>& hosts) {
  std::set<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    HostWord host;
    if (auto p = parse_host(word, host); !p) return p;
    if (!names.insert(host.name).second) return wrong(word, "this host is named twice");
    hosts.push_back(std::move(host));
  }
  if (hosts.size() < 3 || hosts.size() % 2 == 0 || hosts.size() > kHostsMost) {
    return failure(Status::kReplicas, "number of hosts", std::to_string(hosts.size()),
                   "a group needs an odd number of hosts, at least three, so that the others are a "
                   "majority when one is lost",
                   "name 3, 5, 7 or 9 (on one machine: crane-run without --hosts)");
  }
  return Done{};
}

Outcome resolve_hosts(std::vector<HostWord>& hosts) {
  std::set<std::pair<std::string, std::uint16_t>> places;
  for (HostWord& host : hosts) {
    if (host.address.empty()) {
      addrinfo hints{}, *found = nullptr;
      hints.ai_family = AF_INET;
      hints.ai_socktype = SOCK_STREAM;
      const std::string plain = host.name.substr(host.name.find('@') + 1);
      const int failed = getaddrinfo(plain.c_str(), nullptr, &hints, &found);
      char text[INET_ADDRSTRLEN] = "";
      if (failed == 0) {
        const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
        inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
        freeaddrinfo(found);
      }
      host.address = text;
      // Debian gives a machine's own name a loopback address, which the other hosts cannot use.
      if (failed != 0 || host.address.rfind("127.", 0) == 0) {
        return failure(
            Status::kHost, "no usable address of the host", host.name,
            failed != 0 ? gai_strerror(failed) : "its name resolves to " + host.address + " here",
            "write " + host.name +
                "=ADDRESS, the address at which the other hosts "
                "reach it");
      }
    }
    if (!places.emplace(host.address, host.port).second) {
      return wrong(host.name, "another host has the same address, " + host.address);
    }
  }
  return Done{};
}

}  // namespace crane::setup
