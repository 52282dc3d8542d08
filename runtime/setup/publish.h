// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ports of the server clients reach, and under which of this machine's (--publish).
//
// Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace crane::setup {

using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;  // ours, the server's

// Adds "8080:80", or "80" for 80:80.  Returns nullptr, or what is wrong with the text; `ports` is
// unchanged then.
const char* add_publish(const std::string& text, Ports& ports);

// This machine's port for `port` of the server.  Without a list all ports are published as they
// are; with one, only those in it: the server's other ports are for the server alone.
std::optional<std::uint16_t> published_port(const Ports& ports, std::uint16_t port);

}  // namespace crane::setup
