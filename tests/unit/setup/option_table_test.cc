// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/option_table.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/setup/group_file.h"
#include "runtime/setup/node_fields.h"
#include "runtime/setup/option_words.h"

using namespace crane::setup;
using crane::Outcome;
using nlohmann::json;
using Section = OptionRow::Section;

namespace {

// An option's value in each form.
struct Typed {
  std::string word;  // the argument after the option; a flag has none
  std::string toml;
  json value;
};

Typed typed(const std::string& text) { return {text, "\"" + text + "\"", text}; }
Typed typed(std::uint32_t number) {
  return {std::to_string(number), std::to_string(number), number};
}
Typed typed(bool flag) { return {"", flag ? "true" : "false", flag}; }

// Returns a value other than the default.
Typed another(const OptionRow& row) {
  const NodeOptions initial;
  if (std::holds_alternative<bool NodeOptions::*>(row.field)) {
    return typed(!(initial.*std::get<bool NodeOptions::*>(row.field)));
  }
  if (std::holds_alternative<std::uint32_t NodeOptions::*>(row.field)) {
    return typed(initial.*std::get<std::uint32_t NodeOptions::*>(row.field) + 1);
  }
  if (row.word == std::string("--outbound")) return typed(std::string("none"));
  if (row.word == std::string("--resolver")) return typed(std::string("10.0.0.1:53"));
  return typed(row.limits.choices.empty() ? "/another" : row.limits.choices[1]);
}

bool from_words(const OptionRow& row, const Typed& value, NodeOptions& options) {
  std::vector<const char*> words{"test"};
  if (row.needs != nullptr) words.push_back(row.needs);
  words.push_back(row.word);
  if (!value.word.empty()) words.push_back(value.word.c_str());
  const Program program{{"test", "", option_words(options)}, "", ""};
  CommandLine line(program);
  return line.parse(static_cast<int>(words.size()), words.data()) == CommandLine::Parsed::kRun;
}

// The key of [http] that the row requires beside it; empty: none.
std::string companion(const OptionRow& row) {
  const std::string key = row.key;
  return key == "http_certificate" ? "http_key" : key == "http_key" ? "http_certificate" : "";
}

std::string file_with(const OptionRow& row, const std::string& text) {
  std::string group = "[group]\nname = \"a\"\nsecret_file = \"/s\"\n";
  std::string server = "[server]\ncommand = [\"x\"]\n";
  std::string http = "[http]\nlisten = \"9100\"\n";
  if (!companion(row).empty()) http += companion(row).substr(5) + " = \"/its\"\n";
  std::string& own = row.section == Section::kGroup  ? group
                     : row.section == Section::kHttp ? http
                                                     : server;
  own += row.file_key() + (" = " + text) + "\n";
  if (row.needs != nullptr) group += "restart_checkpoints = true\n";
  return group + "[[replica]]\naddress = \"127.0.0.1\"\nport = 1\n" + server + http;
}

Outcome from_toml(const OptionRow& row, const Typed& value, NodeOptions& options) {
  GroupFile file;
  Outcome p = parse_group_file(file_with(row, value.toml), "g.toml", file);
  options = file;
  return p;
}

const char* from_json(const OptionRow& row, const Typed& value, NodeOptions& options) {
  json all{{row.key, value.value}};
  if (row.needs != nullptr) all["restart_checkpoints"] = true;
  return read_options(all, options);
}

// The keys of the fields that differ from the defaults, except those that another option needs.
std::set<std::string> changed(const OptionRow& changed_row, const NodeOptions& options) {
  const NodeOptions initial;
  std::set<std::string> keys;
  for (const OptionRow& row : option_rows()) {
    const auto differs = [&](auto field) { return options.*field != initial.*field; };
    const bool needed = changed_row.needs != nullptr && std::string(changed_row.needs) == row.word;
    const bool beside = companion(changed_row) == row.key;
    if (std::visit(differs, row.field) && !needed && !beside) keys.insert(row.key);
  }
  return keys;
}

}  // namespace

TEST_CASE("option table: each form sets every row, and nothing else", "[setup]") {
  REQUIRE(option_rows().size() >= 15);
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.key);
    const Typed value = another(row);
    const std::set<std::string> alone{row.key};
    NodeOptions words, toml, read;
    CHECK(from_words(row, value, words));
    CHECK(changed(row, words) == alone);
    const Outcome p = from_toml(row, value, toml);
    INFO((p.ok() ? "" : p.error().text));
    CHECK(p.ok());
    CHECK(changed(row, toml) == alone);
    CHECK(from_json(row, value, read) == nullptr);
    CHECK(changed(row, read) == alone);
    // All forms set the same value.
    const auto same = [&](auto field) {
      return words.*field == toml.*field && words.*field == read.*field;
    };
    CHECK(std::visit(same, row.field));
  }
}

TEST_CASE("option table: a number has the same limits in each form", "[setup]") {
  for (const OptionRow& row : option_rows()) {
    if (!std::holds_alternative<std::uint32_t NodeOptions::*>(row.field)) continue;
    CAPTURE(row.key);
    NodeOptions ignored;
    const Typed least = typed(std::uint32_t{0}), most = typed(row.limits.most);
    const Typed beyond = typed(row.limits.most + 1);
    CHECK(from_words(row, least, ignored) == (row.limits.least_typed == 0));
    CHECK(from_toml(row, least, ignored).ok());
    CHECK(from_json(row, least, ignored) == nullptr);
    CHECK(from_words(row, most, ignored));
    CHECK(from_toml(row, most, ignored).ok());
    CHECK(from_json(row, most, ignored) == nullptr);
    CHECK(from_words(row, beyond, ignored) == row.limits.file_only);
    const Outcome p = from_toml(row, beyond, ignored);
    CHECK(status_of(p) == Status::kGroupFile);
    CHECK(p.error().text.find(std::string(" ") + row.key + " is not a number in range; use 0 to " +
                              std::to_string(row.limits.most)) != std::string::npos);
    const char* wrong = from_json(row, beyond, ignored);
    CHECK((wrong == nullptr) == row.limits.file_only);
    if (wrong != nullptr) CHECK(std::string(wrong) == row.key);
  }
}

TEST_CASE("option table: a choice has the same texts in each form", "[setup]") {
  for (const OptionRow& row : option_rows()) {
    NodeOptions ignored;
    for (const auto& text : row.limits.choices) {
      CAPTURE(row.key, text);
      CHECK(from_words(row, typed(text), ignored));
      CHECK(from_toml(row, typed(text), ignored).ok());
      CHECK(from_json(row, typed(text), ignored) == nullptr);
    }
    if (row.limits.choices.empty()) continue;
    CAPTURE(row.key);
    CHECK_FALSE(from_words(row, typed(std::string("other")), ignored));
    CHECK(from_toml(row, typed(std::string("other")), ignored)
              .error()
              .text.find(row.limits.choices[1]) != std::string::npos);
    CHECK(std::string(from_json(row, typed(std::string("other")), ignored)) == row.key);
  }
}

TEST_CASE("option table: written options are read back", "[setup]") {
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.key);
    GroupFile file, again;
    REQUIRE(parse_group_file(file_with(row, another(row).toml), "g.toml", file).ok());
    REQUIRE(parse_group_file(to_toml(file), "again", again).ok());
    json written;
    write_options(file, written);
    CHECK(written.size() == option_rows().size());
    NodeOptions read;
    REQUIRE(read_options(written, read) == nullptr);
    for (const OptionRow& each : option_rows()) {
      CAPTURE(each.key);
      const auto same = [&](auto field) {
        return file.*field == again.*field && file.*field == read.*field;
      };
      CHECK(std::visit(same, each.field));
    }
  }
}
