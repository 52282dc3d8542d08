// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ports of the server clients reach, and at which ports of this machine (--publish).
//
// Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crane::setup {

struct Published {
  std::uint16_t ours = 0, served = 0;
  std::string address = {};  // this machine's (Place::address); empty: where the server listens

  bool operator==(const Published&) const = default;
};
using Ports = std::vector<Published>;

// Adds "8080:80", "80" for 80:80, "192.0.2.7:8080:80", "[2001:db8::7]:8080:80"; "[::]" also means
// IPv4.  Returns nullptr, or the cause of an error; then `ports` is unchanged.
const char* add_publish(const std::string& text, Ports& ports);
// The text in the form that add_publish() reads.
std::string text(const Published& port);

// Where clients reach `port` of the server; nullopt: not at all.  If `ports` is empty, all ports
// are published unchanged.  Otherwise only those in `ports`; only the server itself can use the
// others.
std::optional<Published> published_port(const Ports& ports, std::uint16_t port);

}  // namespace crane::setup
