// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/protobuf.h"

namespace crane::checkpoint {
namespace {

constexpr unsigned kNumber = 0, kBytes = 2;  // kinds of fields

std::optional<std::uint64_t> take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

void put_varint(std::string& text, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>((value & 0x7f) | 0x80);
  text += static_cast<char>(value);
}

}  // namespace

std::optional<Field> take_field(std::string_view& text) {
  const auto key = take_varint(text);
  if (!key) return std::nullopt;
  const auto value = take_varint(text);
  const auto kind = *key & 7;
  if (!value || (kind != kNumber && kind != kBytes)) return std::nullopt;
  Field field{*key >> 3, *value, {}};
  if (kind == kBytes) {
    if (*value > text.size()) return std::nullopt;
    field.bytes = text.substr(0, *value);
    text.remove_prefix(*value);
  }
  return field;
}

std::optional<Field> find_field(std::string_view text, std::uint64_t number) {
  std::optional<Field> found;
  while (const auto field = take_field(text)) {
    if (field->number == number) found = field;
  }
  return found;
}

void put_number(std::string& text, std::uint64_t number, std::uint64_t value) {
  put_varint(text, number << 3 | kNumber);
  put_varint(text, value);
}

void put_bytes(std::string& text, std::uint64_t number, std::string_view bytes) {
  put_varint(text, number << 3 | kBytes);
  put_varint(text, bytes.size());
  text += bytes;
}

}  // namespace crane::checkpoint
