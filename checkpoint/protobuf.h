// SPDX-License-Identifier: Apache-2.0
#pragma once
// Just enough of protobuf for what CRIU says and is told (criu.h): fields that are numbers or
// bytes.
//
// Threads: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crane::checkpoint {

struct Field {
  std::uint64_t number;
  std::uint64_t value;     // a number, or the length of `bytes`
  std::string_view bytes;  // of a field with a length
};

// The next field, which is taken off the front of `text`; none: there is no whole one, or one of
// another kind.
std::optional<Field> take_field(std::string_view& text);
// The value of the last field of that number; none: there is none.
std::optional<Field> find_field(std::string_view text, std::uint64_t number);

void put_number(std::string& text, std::uint64_t number, std::uint64_t value);
void put_bytes(std::string& text, std::uint64_t number, std::string_view bytes);

}  // namespace crane::checkpoint
