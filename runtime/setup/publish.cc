// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/publish.h"

#include <algorithm>

#include "runtime/setup/port.h"

namespace crane::setup {
const char* add_publish(const std::string& text, Ports& ports) {
  const auto colon = text.find(':');
  std::uint16_t ours = 0, theirs = 0;
  if (!parse_port(text.substr(0, colon), ours)) return "not a pair of ports";
  if (!parse_port(colon == std::string::npos ? text : text.substr(colon + 1), theirs))
    return "not a pair of ports";
  for (const auto& [other, served] : ports) {
    if (served == theirs) return "this port of the server is published already";
    if (other == ours) return "this port of the machine is given to another port of the server";
  }
  ports.emplace_back(ours, theirs);
  return nullptr;
}

std::optional<std::uint16_t> published_port(const Ports& ports, std::uint16_t port) {
  if (ports.empty()) return port;
  const auto found =
      std::find_if(ports.begin(), ports.end(), [&](const auto& p) { return p.second == port; });
  if (found == ports.end()) return std::nullopt;
  return found->first;
}

}  // namespace crane::setup
