// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/option_words.h"

namespace crane::setup {
namespace {

Word::Target target_of(const OptionRow&, std::uint32_t& value, std::uint32_t) { return &value; }
Word::Target target_of(const OptionRow&, bool& value, bool initial) {
  return Word::Flag{&value, !initial};
}
template <typename Choice>
Word::Target target_of(const OptionRow& row, Choice& value, const Choice&) {
  return Word::Setter{[&row, &value](const std::string& text) { set_choice(row, text, value); }};
}

}  // namespace

std::vector<Word> option_words(NodeOptions& options) {
  const NodeOptions initial;
  std::vector<Word> words;
  for (const OptionRow& row : option_rows()) {
    const auto target = [&](auto field) { return target_of(row, options.*field, initial.*field); };
    Word word{row.word, std::visit(target, row.field), row.help == nullptr ? "" : row.help};
    word.rules.choices = row.limits.choices;
    if (std::holds_alternative<std::uint32_t NodeOptions::*>(row.field) && !row.limits.file_only) {
      word.rules.bounds.emplace(row.limits.least_typed, row.limits.most);
    }
    if (row.needs != nullptr) word.rules.needs.push_back(row.needs);
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace crane::setup
