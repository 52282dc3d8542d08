// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/node_fields.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace crane::setup {
namespace {

using Json = nlohmann::json;

// --- the options: converted by their rows --------------------------------------------------------

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

// --- the other fields ----------------------------------------------------------------------------

template <typename T>
Json json_of(const T& value) {
  return value;
}
Json json_of(const dmt::Mode& mode) { return mode == dmt::Mode::kParallel ? "parallel" : "serial"; }
Json json_of(const Secret& secret) {  // an empty text: the secret is not known yet
  std::string hex;
  if (secret == Secret{}) return hex;
  for (const std::uint64_t word : secret) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    hex += digits;
  }
  return hex;
}
Json json_of(const std::vector<Bind>& binds) {
  Json all = Json::array();
  for (const Bind& bind : binds) {
    all.push_back(
        {{"source", bind.source}, {"target", bind.target}, {"read_only", bind.read_only}});
  }
  return all;
}
Json json_of(const std::vector<SoftBarrier>& soft_barriers) {
  Json all = Json::array();
  for (const SoftBarrier& one : soft_barriers) {
    all.push_back({{"point", text_of(one)}, {"origin", one.origin}});
  }
  return all;
}

// Returns false for an invalid value.
template <typename T>
bool read(const Json& json, T& value) {
  value = json.get<T>();
  return true;
}
bool read(const Json& json, dmt::Mode& mode) { return mode_of(json.get<std::string>(), mode); }
bool read(const Json& json, Secret& secret) {
  const auto hex = json.get<std::string>();
  return hex.empty() || secret_of(hex, secret);
}
bool read(const Json& json, std::vector<Bind>& binds) {
  binds.clear();
  for (const Json& one : json) {
    binds.push_back({one.at("source").get<std::string>(), one.at("target").get<std::string>(),
                     one.value("read_only", false)});
  }
  return true;
}
bool read(const Json& json, std::vector<SoftBarrier>& soft_barriers) {
  soft_barriers.clear();
  for (const Json& one : json) {
    SoftBarrier& read = soft_barriers.emplace_back();
    if (!parse_soft_barrier(one.at("point").get<std::string>(), read)) return false;
    read.origin = one.value("origin", "");
  }
  return soft_barriers.size() <= dmt::kSoftBarrierPointsMax;
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

void write_fields(const NodeFields& fields, Fields which, Json& json) {
  write_options(fields, json, which == Fields::kKept);
#define FIELD(type, name, key, initial, kept) \
  if (which == Fields::kAll || (kept)) json[key] = json_of(fields.name);
#include "runtime/setup/node_fields.def"
#undef FIELD
}

const char* read_fields(const Json& json, NodeFields& fields) {
  if (const char* wrong = read_options(json, fields); wrong != nullptr) return wrong;
  const auto take = [&json](const char* key, auto& value) {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() || read(*found, value);
  };
#define FIELD(type, name, key, initial, kept) \
  if (!take(key, fields.name)) return key;
#include "runtime/setup/node_fields.def"
#undef FIELD
  return nullptr;
}

bool mode_of(const std::string& name, dmt::Mode& mode) {
  mode = name == "parallel" ? dmt::Mode::kParallel : dmt::Mode::kSerial;
  return name == "parallel" || name == "serial";
}

bool secret_of(const std::string& hex, Secret& secret) {
  if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    return false;
  }
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = std::stoull(hex.substr(i * 16, 16), nullptr, 16);
  }
  return true;
}

}  // namespace crane::setup
