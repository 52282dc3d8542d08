// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/resp.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

namespace crane::linear {
namespace {

constexpr std::int64_t kBytesMax = 1 << 20;

// Takes the line at `at`, without its end, and moves `at` past it.
Parsed take_line(std::string_view bytes, std::size_t& at, std::string_view& line) {
  const std::size_t end = bytes.find("\r\n", at);
  if (end == std::string_view::npos) return bytes.size() - at > 4096 ? Parsed::kBad : Parsed::kMore;
  line = bytes.substr(at, end - at);
  at = end + 2;
  return line.empty() ? Parsed::kBad : Parsed::kReply;
}

bool number(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Parsed take_text(std::string_view bytes, std::size_t& at, std::string_view head, Reply& reply) {
  std::int64_t size = 0;
  if (!number(head.substr(1), size) || size < -1 || size > kBytesMax) return Parsed::kBad;
  reply.kind = size < 0 ? Reply::Kind::kAbsent : Reply::Kind::kText;
  if (size < 0) return Parsed::kReply;
  const auto length = static_cast<std::size_t>(size);
  if (bytes.size() - at < length + 2) return Parsed::kMore;
  if (bytes.substr(at + length, 2) != "\r\n") return Parsed::kBad;
  reply.text = bytes.substr(at, length);
  at += length + 2;
  return Parsed::kReply;
}

Parsed take_items(std::string_view bytes, std::size_t& at, std::string_view head, Reply& reply) {
  std::int64_t count = 0;
  if (!number(head.substr(1), count) || count < 0 || count > kBytesMax) return Parsed::kBad;
  reply.kind = Reply::Kind::kItems;
  reply.items.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    std::string_view line;
    Reply item;
    Parsed parsed = take_line(bytes, at, line);
    if (parsed == Parsed::kReply) {
      parsed = line[0] == '$' ? take_text(bytes, at, line, item) : Parsed::kBad;
    }
    if (parsed != Parsed::kReply) return parsed;
    if (item.kind != Reply::Kind::kText) return Parsed::kBad;
    reply.items.push_back(std::move(item.text));
  }
  return Parsed::kReply;
}

}  // namespace

Parsed parse_reply(std::string_view bytes, Reply& reply, std::size_t& used) {
  std::size_t at = 0;
  std::string_view line;
  Parsed parsed = take_line(bytes, at, line);
  if (parsed != Parsed::kReply) return parsed;
  switch (line[0]) {
    case '+':
    case '-':
      reply.kind = line[0] == '+' ? Reply::Kind::kStatus : Reply::Kind::kError;
      reply.text = line.substr(1);
      break;
    case ':':
      reply.kind = Reply::Kind::kInteger;
      if (!number(line.substr(1), reply.integer)) parsed = Parsed::kBad;
      break;
    case '$':
      parsed = take_text(bytes, at, line, reply);
      break;
    case '*':
      parsed = take_items(bytes, at, line, reply);
      break;
    default:
      parsed = Parsed::kBad;
  }
  used = at;
  return parsed;
}

void write_command(std::string& to, const std::vector<std::string_view>& words) {
  auto out = std::back_inserter(to);
  fmt::format_to(out, "*{}\r\n", words.size());
  for (const std::string_view word : words) {
    fmt::format_to(out, "${}\r\n{}\r\n", word.size(), word);
  }
}

}  // namespace crane::linear
