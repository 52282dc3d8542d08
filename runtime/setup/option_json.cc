// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/option_json.h"

#include <nlohmann/json.hpp>

namespace crane::setup {
namespace {

using Json = nlohmann::json;

Json json_of(const OptionRow&, std::uint32_t value) { return value; }
Json json_of(const OptionRow&, bool value) { return value; }
template <typename Choice>
Json json_of(const OptionRow& row, const Choice& value) {
  return choice_text(row, value);
}

bool read(const OptionRow& row, const Json& json, std::uint32_t& value) {
  value = json.get<std::uint32_t>();
  return row.fits(value);
}
bool read(const OptionRow&, const Json& json, bool& value) {
  value = json.get<bool>();
  return true;
}
template <typename Choice>
bool read(const OptionRow& row, const Json& json, Choice& value) {
  return set_choice(row, json.get<std::string>(), value);
}

}  // namespace

void write_options(const NodeOptions& options, Json& json, bool server_only) {
  for (const OptionRow& row : option_rows()) {
    if (server_only && row.section != OptionRow::Section::kServer) continue;
    std::visit([&](auto field) { json[row.key] = json_of(row, options.*field); }, row.field);
  }
}

const char* read_options(const Json& json, NodeOptions& options) {
  for (const OptionRow& row : option_rows()) {
    const auto found = json.find(row.key);
    if (found == json.end() || found->is_null()) continue;
    const auto take = [&](auto field) { return read(row, *found, options.*field); };
    if (!std::visit(take, row.field)) return row.key;
  }
  return nullptr;
}

}  // namespace crane::setup
