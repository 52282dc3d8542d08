// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/option_words.h"

#include <CLI/CLI.hpp>

namespace crane::setup {
namespace {

CLI::Option* declare(CLI::App& app, const OptionRow& row, std::uint32_t& value, std::uint32_t) {
  CLI::Option* option = app.add_option(row.word, value);
  const auto& limits = row.limits;
  if (!limits.file_only) option->check(CLI::Range(limits.least_typed, limits.most));
  return option;
}

CLI::Option* declare(CLI::App& app, const OptionRow& row, bool& value, bool initial) {
  return app.add_flag_function(
      row.word, [&value, initial](std::int64_t count) { value = count > 0 ? !initial : initial; });
}

template <typename Choice>
CLI::Option* declare(CLI::App& app, const OptionRow& row, Choice& value, const Choice&) {
  CLI::Option* option = app.add_option_function<std::string>(
      row.word, [&row, &value](const std::string& text) { set_choice(row, text, value); });
  if (!row.limits.choices.empty()) option->check(CLI::IsMember(row.limits.choices));
  return option;
}

}  // namespace

void declare_options(CLI::App& app, NodeOptions& options) {
  const NodeOptions initial;
  for (const OptionRow& row : option_rows()) {
    const auto add = [&](auto field) { return declare(app, row, options.*field, initial.*field); };
    CLI::Option* option = std::visit(add, row.field);
    if (row.needs != nullptr) option->needs(app.get_option(row.needs));
    if (row.help == nullptr) {
      option->group("");
    } else {
      option->description(row.help);
    }
  }
}

}  // namespace crane::setup
