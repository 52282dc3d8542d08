// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ports of the server clients reach, and under which of this machine's (--publish).
//
// Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crane::setup {

struct Published {
  std::uint16_t ours = 0, served = 0;
  std::string address = {};  // of this machine (Place::address); empty: where the server listens

  bool operator==(const Published&) const = default;
};
using Ports = std::vector<Published>;

// Adds "8080:80", "80" for 80:80, "192.0.2.7:8080:80", "[2001:db8::7]:8080:80"; "[::]" means IPv4
// as well.  Returns nullptr, or what is wrong with the text; `ports` is unchanged then.
const char* add_publish(const std::string& text, Ports& ports);
// As add_publish() reads it.
std::string text(const Published& port);

// Where clients reach `port` of the server.  Without a list all ports are published as they are;
// with one, only those in it: the server's other ports are for the server alone.
std::optional<Published> published_port(const Ports& ports, std::uint16_t port);

}  // namespace crane::setup
