// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/outbound.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <charconv>
#include <sstream>

namespace crane::setup {
namespace {

bool parse_port(const std::string& text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && at == end && port != 0;
}

bool parse_address(const std::string& text, VirtualAddress& address) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !parse_port(text.substr(colon + 1), address.port)) return false;
  std::string host = text.substr(0, colon);
  const bool six = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (six) host = host.substr(1, host.size() - 2);
  address.family = six ? AF_INET6 : AF_INET;
  return ::inet_pton(address.family, host.c_str(), address.ip) == 1;
}

}  // namespace

std::optional<Outbound> parse_outbound(const std::string& text) {
  if (text == "any") return Outbound{true};
  Outbound outbound;
  if (text == "none") return outbound;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    VirtualAddress address{};
    if (!parse_address(word, address)) return std::nullopt;
    outbound.only.push_back(address);
  }
  if (outbound.only.empty()) return std::nullopt;
  return outbound;
}

Outcome check_outbound(const std::string& text) {
  if (parse_outbound(text)) return Done{};
  return failure(Status::kUsage, "--outbound", text, "not addresses with ports",
                 "write it as any, none, or 10.0.0.1:80,[2001:db8::1]:80");
}

}  // namespace crane::setup
