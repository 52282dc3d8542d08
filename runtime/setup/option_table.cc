// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/option_table.h"

#include <algorithm>
#include <string_view>

#include "dmt/base/assert.h"
#include "dmt/tuning.h"

namespace crane::setup {
namespace {

using Limits = OptionRow::Limits;

// The words of option_table.def.
Limits numbers(std::uint32_t most) { return {.most = most}; }
Limits from_one(std::uint32_t most) { return {.most = most, .least_typed = 1}; }
Limits numbers_in_file(std::uint32_t most) { return {.most = most, .file_only = true}; }
Limits choices(std::vector<std::string> texts) { return {.choices = std::move(texts)}; }

// The index of `text` in the row's list, or -1.  The list is empty if any text is allowed.
int place_of(const OptionRow& row, const std::string& text) {
  const auto& all = row.limits.choices;
  const auto found = std::find(all.begin(), all.end(), text);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

}  // namespace

const char* OptionRow::file_key() const {
  constexpr std::string_view kPrefix = "http_";
  return section == Section::kHttp ? key + kPrefix.size() : key;
}

const std::vector<OptionRow>& option_rows() {
#define NUMBERS(most) numbers(most)
#define FROM_ONE(most) from_one(most)
#define NUMBERS_IN_FILE(most) numbers_in_file(most)
#define CHOICES(...) choices({__VA_ARGS__})
#define ANY \
  {}
#define OPTION(type, name, initial, word, section, limits, needs, help) \
  {#name, &NodeOptions::name, word, OptionRow::Section::section, limits, needs, help},
  static const std::vector<OptionRow> rows{
#include "runtime/setup/option_table.def"
  };
#undef OPTION
#undef ANY
#undef CHOICES
#undef NUMBERS_IN_FILE
#undef FROM_ONE
#undef NUMBERS
  return rows;
}

std::string choice_text(const OptionRow&, const std::string& value) { return value; }

std::string choice_text(const OptionRow& row, dmt::Admission value) {
  const std::size_t at = static_cast<std::size_t>(value) - 1;
  CRANE_ASSERT(at < row.limits.choices.size());
  return row.limits.choices[at];
}

bool set_choice(const OptionRow& row, const std::string& text, std::string& value) {
  if (!row.limits.choices.empty() && place_of(row, text) < 0) return false;
  value = text;
  return true;
}

bool set_choice(const OptionRow& row, const std::string& text, dmt::Admission& value) {
  const int place = place_of(row, text);
  if (place >= 0) value = static_cast<dmt::Admission>(place + 1);
  return place >= 0;
}

}  // namespace crane::setup
