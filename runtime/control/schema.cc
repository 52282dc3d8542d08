// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/schema.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dmt/base/ids.h"
#include "dmt/base/join.h"

namespace crane::control {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 8;  // levels of nested brackets
constexpr std::size_t kShown = 40;   // largest number of a value's bytes in a refusal

Refusal wrong(const char* error, const std::string& field, const std::string& message) {
  return {error, field, message};
}

const char* type_of(const Json& value) {
  return value.is_null()              ? "null"
         : value.is_boolean()         ? "a truth value"
         : value.is_number_float()    ? "a number with a fraction"
         : value.is_number_unsigned() ? "a number"
         : value.is_number()          ? "a negative number"
         : value.is_string()          ? "a text"
         : value.is_array()           ? "a list"
                                      : "an object";
}

std::string cited(const Json& value) {
  std::string text = line_of(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return std::string(type_of(value)) + " (" + text + ")";
}

std::string bounds_of(const Field& field) {
  const std::string least = std::to_string(field.least), most = std::to_string(field.most);
  return field.most == kAny ? " from " + least + " on" : " from " + least + " to " + most;
}

std::string list_of(std::span<const char* const> words) { return joined(words); }

std::string expected(const Field& field) {
  switch (field.kind) {
    case Kind::kFlag:
      return "true or false";
    case Kind::kNumber:
      return "a whole number" + bounds_of(field);
    case Kind::kText:
      if (!field.words.empty()) return "one of: " + list_of(field.words);
      return field.most == kAny ? "a text" : "a text of" + bounds_of(field).substr(5) + " bytes";
    case Kind::kList:
      return field.inner.empty() ? "a list of pairs of ports" : "a list of objects";
  }
  return "";
}

bool within(const Field& field, std::uint64_t n) { return n >= field.least && n <= field.most; }

std::optional<Refusal> check_fields(const Json& object, std::span<const Field> fields,
                                    const std::string& place);

bool is_port_pair(const Json& one) {
  return one.is_array() && one.size() == 2 &&
         std::all_of(one.begin(), one.end(), [](const Json& port) {
           return port.is_number_unsigned() && port.get<std::uint64_t>() <= 65535;
         });
}

std::optional<Refusal> check_list(const Json& list, const Field& field, const std::string& name) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = name + "[" + std::to_string(i) + "]";
    if (field.inner.empty()) {
      if (is_port_pair(list[i])) continue;
      return wrong("wrong_type", place,
                   place + ": a pair of ports is expected, this is " + cited(list[i]));
    }
    if (!list[i].is_object()) {
      return wrong("wrong_type", place,
                   place + ": an object is expected, this is " + cited(list[i]));
    }
    if (auto bad = check_fields(list[i], field.inner, place + ".")) return bad;
  }
  return std::nullopt;
}

// Checks the value of one field.  REQUIRES: it is present and not null.
std::optional<Refusal> check_value(const Json& value, const Field& field, const std::string& name) {
  const bool fits = field.kind == Kind::kFlag     ? value.is_boolean()
                    : field.kind == Kind::kNumber ? value.is_number_integer()
                    : field.kind == Kind::kText   ? value.is_string()
                                                  : value.is_array();
  const std::string but = name + ": " + expected(field) + " is expected, this is " + cited(value);
  if (!fits) return wrong("wrong_type", name, but);
  bool in = true;
  if (field.kind == Kind::kNumber) {
    in = value.is_number_unsigned() && within(field, value.get<std::uint64_t>());
  } else if (field.kind == Kind::kText) {
    const auto& text = value.get_ref<const std::string&>();
    in = within(field, text.size()) && text.find('\0') == std::string::npos &&
         (field.words.empty() || std::any_of(field.words.begin(), field.words.end(),
                                             [&](const char* w) { return text == w; }));
  } else if (field.kind == Kind::kList) {
    in = within(field, value.size());
    if (in) return check_list(value, field, name);
  }
  if (!in) return wrong("out_of_range", name, but);
  return std::nullopt;
}

const Field* field_named(std::span<const Field> fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return name == f.name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string names_of(std::span<const Field> fields) {
  return fields.empty() ? "none" : joined(fields, &Field::name);
}

std::optional<Refusal> check_fields(const Json& object, std::span<const Field> fields,
                                    const std::string& place) {
  for (const auto& [name, value] : object.items()) {
    if (field_named(fields, name) != nullptr) continue;
    std::string cut = name.size() > kShown ? name.substr(0, kShown) + "..." : name;
    return wrong("unknown_field", place + cut,
                 place + cut + ": there is no such field; known: " + names_of(fields));
  }
  for (const Field& field : fields) {
    const std::string name = place + field.name;
    const auto found = object.find(field.name);
    const bool there = found != object.end() && !found->is_null();
    if (!there && field.required) {
      return wrong("missing_field", name, name + " is missing: " + expected(field));
    }
    if (!there) continue;
    if (auto bad = check_value(*found, field, name)) return bad;
  }
  return std::nullopt;
}

// Limits the depth, because the parser's stack on the heap grows with it.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kDeepest) return true;
    } else if (!quoted && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

const Verb* verb_named(const ChannelTable& table, std::string_view name) {
  const auto found = std::find_if(table.verbs.begin(), table.verbs.end(),
                                  [&](const Verb& v) { return name == v.name; });
  return found == table.verbs.end() ? nullptr : &*found;
}

std::string verbs_of(const ChannelTable& table) { return joined(table.verbs, &Verb::name); }

// Takes the verb and the version out of the fields.
std::optional<Refusal> take_verb(const ChannelTable& table, Json& values, const Verb*& verb) {
  const auto version = values.find("version");
  if (version != values.end() && !version->is_null()) {
    if (!version->is_number_unsigned() || *version != kVersion) {
      return wrong(
          "version", "version",
          "version: " + std::to_string(kVersion) + " is expected, this is " + cited(*version));
    }
  }
  values.erase("version");
  const auto named = values.find(table.key);
  if (named == values.end()) {
    return wrong("missing_field", table.key,
                 std::string(table.key) + " is missing: one of: " + verbs_of(table));
  }
  if (!named->is_string()) {
    return wrong("wrong_type", table.key,
                 std::string(table.key) + ": one of: " + verbs_of(table) +
                     " is expected, this is " + cited(*named));
  }
  verb = verb_named(table, named->get_ref<const std::string&>());
  if (verb == nullptr) {
    return wrong("unknown_verb", table.key,
                 std::string(table.key) + ": one of: " + verbs_of(table) +
                     " is expected, this is " + cited(*named));
  }
  values.erase(table.key);
  return std::nullopt;
}

void leave_out_unknown(Json& values, std::span<const Field> fields) {
  for (auto at = values.begin(); at != values.end();) {
    at = field_named(fields, at.key()) == nullptr ? values.erase(at) : std::next(at);
  }
}

}  // namespace

Parsed parse(Channel channel, std::string_view text) {
  const ChannelTable& table = table_of(channel);
  const auto refuse = [](Refusal refusal) { return Parsed{std::nullopt, std::move(refusal)}; };
  if (text.size() > table.longest) {
    return refuse(wrong("too_large", "",
                        "a message of at most " + std::to_string(table.longest) +
                            " bytes is expected, this one is longer"));
  }
  if (too_deep(text)) {
    return refuse(
        wrong("too_deep", "",
              "at most " + std::to_string(kDeepest) + " levels of lists and objects are expected"));
  }
  Json values = Json::parse(text, nullptr, false);
  if (values.is_discarded()) {
    return refuse(wrong("not_json", "", "one JSON object in UTF-8 is expected, this is not JSON"));
  }
  if (!values.is_object()) {
    return refuse(
        wrong("not_an_object", "", "one JSON object is expected, this is " + cited(values)));
  }
  const Verb* verb = nullptr;
  if (auto bad = take_verb(table, values, verb)) return refuse(std::move(*bad));
  if (table.grows) leave_out_unknown(values, verb->fields);
  if (auto bad = check_fields(values, verb->fields, "")) return refuse(std::move(*bad));
  return {Message(*verb, std::move(values)), {}};
}

const Field& Message::field(const char* name) const {
  const Field* found = field_named(verb_->fields, name);
  CRANE_ASSERT(found != nullptr);  // CTL-1: the caller may request only fields of the table
  return *found;
}

const Json* Message::find(const char* name) const {
  (void)field(name);
  const auto found = values_.find(name);
  return found == values_.end() || found->is_null() ? nullptr : &*found;
}

const Json* Message::find(const char* name, Kind kind) const {
  CRANE_ASSERT(field(name).kind == kind);  // CTL-1
  return find(name);
}

std::string Message::text(const char* name, const char* otherwise) const {
  const Json* at = find(name, Kind::kText);
  return at == nullptr ? otherwise : at->get<std::string>();
}

bool Message::flag(const char* name, bool otherwise) const {
  const Json* at = find(name, Kind::kFlag);
  return at == nullptr ? otherwise : at->get<bool>();
}

const Json& Message::list(const char* name) const {
  static const Json kNone = Json::array();
  const Json* at = find(name, Kind::kList);
  return at == nullptr ? kNone : *at;
}

Json Message::plain(const char* key) const {
  Json all = Json::object();
  for (const auto& [name, value] : values_.items()) {
    if (!value.is_null()) all[name] = value;
  }
  all[key] = verb_->name;
  return all;
}

Json accepted(const std::string& message) {
  return {{"version", kVersion}, {"ok", true}, {"message", message}};
}

Json refused(const std::string& error, const std::string& message, const std::string& field) {
  return {{"version", kVersion},
          {"ok", false},
          {"error", error},
          {"field", field.empty() ? Json() : Json(field)},
          {"message", message}};
}

Json refused(const Refusal& refusal) {
  return refused(refusal.error, refusal.message, refusal.field);
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

const Json* member_of(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

}  // namespace

std::uint64_t number_in(const Json& json, const char* key, std::uint64_t otherwise) {
  const Json* at = member_of(json, key);
  if (at == nullptr || !at->is_number_integer()) return otherwise;
  const bool negative = !at->is_number_unsigned() && at->get<std::int64_t>() < 0;
  return negative ? otherwise : at->get<std::uint64_t>();
}

std::string text_in(const Json& json, const char* key, const char* otherwise) {
  const Json* at = member_of(json, key);
  return at != nullptr && at->is_string() ? at->get<std::string>() : otherwise;
}

bool flag_in(const Json& json, const char* key, bool otherwise) {
  const Json* at = member_of(json, key);
  return at != nullptr && at->is_boolean() ? at->get<bool>() : otherwise;
}

int replica_in(const Json& json) {
  const std::uint64_t number = number_in(json, "replica", kAny);
  return number < kReplicasMax ? static_cast<int>(number) : -1;
}

const Json& list_in(const Json& json, const char* key) {
  static const Json kNone = Json::array();
  const Json* at = member_of(json, key);
  return at != nullptr && at->is_array() ? *at : kNone;
}

const Json& object_in(const Json& json, const char* key) {
  static const Json kNone = Json::object();
  const Json* at = member_of(json, key);
  return at != nullptr && at->is_object() ? *at : kNone;
}

}  // namespace crane::control
