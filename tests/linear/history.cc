// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/history.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

namespace crane::linear {
namespace {

constexpr std::array<const char*, 3> kModels{"register", "counter", "list"};
constexpr std::array<const char*, 5> kActions{"set", "get", "incr", "push", "range"};
constexpr std::size_t kWords = 7;

template <typename T>
bool number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool split(std::string_view line, std::array<std::string_view, kWords>& words) {
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::size_t end = line.find(' ');
    if ((end == std::string_view::npos) != (i + 1 == kWords)) return false;
    words[i] = line.substr(0, end);
    if (words[i].empty()) return false;
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
  }
  return true;
}

bool read_items(std::string_view text, std::vector<std::int64_t>& items) {
  items.clear();
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    std::int64_t item = 0;
    if (!number(text.substr(0, end), item)) return false;
    items.push_back(item);
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
    if (text.empty()) return false;
  }
  return true;
}

bool read_result(std::string_view text, Operation& op) {
  switch (op.action) {
    case Action::kSet:
      return text == "ok";
    case Action::kRange:
      return read_items(text, op.items);
    case Action::kGet:
      op.result = kNil;
      return text == "nil" || number(text, op.result);
    case Action::kIncr:
    case Action::kPush:
      return number(text, op.result);
  }
  return false;
}

std::optional<Model> model_of(std::string_view key) {
  switch (key.front()) {
    case 'r':
      return Model::kRegister;
    case 'c':
      return Model::kCounter;
    case 'l':
      return Model::kList;
    default:
      return std::nullopt;
  }
}

bool fits(Model model, Action action) {
  switch (model) {
    case Model::kRegister:
      return action == Action::kSet || action == Action::kGet;
    case Model::kCounter:
      return action == Action::kIncr || action == Action::kGet;
    case Model::kList:
      return action == Action::kPush || action == Action::kRange;
  }
  return false;
}

}  // namespace

const char* name(Model model) noexcept { return kModels[static_cast<std::size_t>(model)]; }
const char* name(Action action) noexcept { return kActions[static_cast<std::size_t>(action)]; }

void write_line(std::string& to, std::string_view key, const Operation& op) {
  auto out = std::back_inserter(to);
  fmt::format_to(out, "{} {} {} {} {} ", op.client, key, name(op.action), op.argument,
                 op.called_ns);
  if (op.open()) {
    to += op.refused ? "- error\n" : fmt::format("- ?{}\n", op.given_up_ns);
    return;
  }
  fmt::format_to(out, "{} ", op.returned_ns);
  if (op.action == Action::kSet) {
    to += "ok\n";
  } else if (op.action == Action::kRange) {
    fmt::format_to(out, "[{}]\n", fmt::join(op.items, ","));
  } else if (op.result == kNil) {
    to += "nil\n";
  } else {
    fmt::format_to(out, "{}\n", op.result);
  }
}

bool read_line(std::string_view line, std::string& key, Model& model, Operation& op) {
  std::array<std::string_view, kWords> words;
  if (!split(line, words)) return false;
  op = Operation{};
  key = words[1];
  const auto kind = model_of(key);
  std::size_t action = 0;
  while (action < kActions.size() && words[2] != kActions[action]) ++action;
  if (!kind || action == kActions.size()) return false;
  model = *kind;
  op.action = static_cast<Action>(action);
  if (!fits(model, op.action) || !number(words[0], op.client) || !number(words[3], op.argument) ||
      !number(words[4], op.called_ns)) {
    return false;
  }
  if (words[5] == "-") {
    op.refused = words[6] == "error";
    return op.refused || (words[6][0] == '?' && number(words[6].substr(1), op.given_up_ns));
  }
  return number(words[5], op.returned_ns) && op.returned_ns >= op.called_ns && !op.open() &&
         read_result(words[6], op);
}

bool History::add(std::string_view line) {
  std::string key;
  Model model{};
  Operation op;
  if (!read_line(line, key, model, op)) return false;
  const auto [place, fresh] = places_.try_emplace(key, keys_.size());
  if (fresh) keys_.push_back({key, model, {}});
  keys_[place->second].operations.push_back(std::move(op));
  return true;
}

Outcome History::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error{Code::kSystem, errno, "cannot read the history"};
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (!add(line)) return Error{Code::kBadArgument, number, "this line is no operation"};
  }
  return Done{};
}

}  // namespace crane::linear
