// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of redis' protocol (RESP2) that the load client uses.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crane::linear {

struct Reply {
  enum class Kind : std::uint8_t { kStatus, kError, kInteger, kAbsent, kText, kItems };
  Kind kind{};
  std::int64_t integer = 0;
  std::string text;                // of status, error, text
  std::vector<std::string> items;  // texts of an array
};

enum class Parsed : std::uint8_t { kReply, kMore, kBad };

// Takes one reply from the beginning of `bytes` and sets `used` to its length.
Parsed parse_reply(std::string_view bytes, Reply& reply, std::size_t& used);

// Appends a command.
void write_command(std::string& to, const std::vector<std::string_view>& words);

}  // namespace crane::linear
