// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of protobuf that CRIU's messages need (criu.h): fields that are numbers or bytes.
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
  std::string_view bytes;  // content of a field with a length
};

// Removes the next field from the front of `text`; none: it is incomplete, or of another kind.
std::optional<Field> take_field(std::string_view& text);
// The last field with that number, if any.
std::optional<Field> find_field(std::string_view text, std::uint64_t number);

void put_number(std::string& text, std::uint64_t number, std::uint64_t value);
void put_bytes(std::string& text, std::uint64_t number, std::string_view bytes);

}  // namespace crane::checkpoint
