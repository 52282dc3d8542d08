// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/address.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <charconv>

namespace crane::setup {

bool parse_port(const std::string& text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && at == end && port != 0;
}

bool is_ip(const std::string& text) {
  in6_addr ignored;
  return inet_pton(AF_INET, text.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

bool strip_brackets(std::string& host) {
  if (host.size() <= 2 || host.front() != '[' || host.back() != ']') return false;
  host = host.substr(1, host.size() - 2);
  return true;
}

bool parse_address(const std::string& text, VirtualAddress& address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !parse_port(text.substr(colon + 1), address.port)) return false;
  std::string host = text.substr(0, colon);
  address.family = strip_brackets(host) ? AF_INET6 : AF_INET;
  return ::inet_pton(address.family, host.c_str(), address.ip) == 1;
}

std::string address_text(const VirtualAddress& address) {
  char host[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.family, address.ip, host, sizeof host);
  const std::string port = ":" + std::to_string(address.port);
  return address.family == AF_INET6 ? "[" + std::string(host) + "]" + port : host + port;
}

}  // namespace crane::setup
