// SPDX-License-Identifier: Apache-2.0
// The tables of answers as a document, and the comparison of a document with its table.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/control/answers.h"
#include "runtime/control/schema.h"

namespace crane::control {
namespace {

using Json = nlohmann::json;

const char* name_of(Holds holds) {
  switch (holds) {
    case Holds::kFlag:
      return "true or false";
    case Holds::kNumber:
      return "number";
    case Holds::kText:
      return "text";
    case Holds::kObject:
      return "object";
    case Holds::kObjects:
      return "list of objects";
    case Holds::kCounts:
      return "object of numbers";
    case Holds::kTexts:
      return "list of texts";
    case Holds::kPairs:
      return "list of pairs of numbers";
  }
  return "?";
}

const char* name_of(Presence presence) {
  return presence == Presence::kAlways   ? "always"
         : presence == Presence::kOrNull ? "or null"
                                         : "sometimes";
}

void add_rows(std::string& text, std::span<const AnswerField> fields, const std::string& place) {
  for (const AnswerField& f : fields) {
    text += "| " + place + f.name + " | " + name_of(f.holds) + " | " + name_of(f.presence) + " | " +
            f.meaning + " |\n";
    add_rows(text, f.inner, place + f.name + (f.holds == Holds::kObjects ? "[]." : "."));
  }
}

Json json_of(std::span<const AnswerField> fields) {
  Json all = Json::array();
  for (const AnswerField& f : fields) {
    Json one{{"name", f.name},
             {"type", name_of(f.holds)},
             {"presence", name_of(f.presence)},
             {"meaning", f.meaning}};
    if (!f.inner.empty()) one["fields"] = json_of(f.inner);
    all.push_back(std::move(one));
  }
  return all;
}

Json schema_of(std::span<const AnswerField> fields);

Json schema_of(Holds holds, std::span<const AnswerField> inner) {
  const Json count{{"type", "integer"}, {"minimum", 0}};
  switch (holds) {
    case Holds::kFlag:
      return {{"type", "boolean"}};
    case Holds::kNumber:
      return count;
    case Holds::kText:
      return {{"type", "string"}};
    case Holds::kObject:
      return schema_of(inner);
    case Holds::kObjects:
      return {{"type", "array"}, {"items", schema_of(inner)}};
    case Holds::kCounts:
      return {{"type", "object"},
              {"additionalProperties", {{"type", {"integer", "null"}}, {"minimum", 0}}}};
    case Holds::kTexts:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    case Holds::kPairs:
      return {{"type", "array"},
              {"items", {{"type", "array"}, {"items", count}, {"minItems", 2}, {"maxItems", 2}}}};
  }
  return {};
}

Json schema_of(std::span<const AnswerField> fields) {
  Json properties = Json::object(), required = Json::array();
  for (const AnswerField& f : fields) {
    Json one = schema_of(f.holds, f.inner);
    if (f.presence != Presence::kAlways) one = {{"anyOf", {one, {{"type", "null"}}}}};
    if (*f.meaning != '\0') one["description"] = f.meaning;
    properties[f.name] = std::move(one);
    if (f.presence != Presence::kSometimes) required.push_back(f.name);
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

bool is_count(const Json& value) { return value.is_number_integer() && value >= 0; }

template <typename Each>
std::string each_differs(const Json& list, const std::string& name, Each each) {
  if (!list.is_array()) return name + " is not a list";
  for (const Json& one : list) {
    if (const std::string why = each(one); !why.empty()) return name + "[]: " + why;
  }
  return "";
}

std::string value_differs(const Json& value, const AnswerField& field) {
  const std::string name = field.name;
  const auto fits = [&](bool good) {
    return good ? std::string()
                : name + " is not of type " + name_of(field.holds) + ": " + line_of(value);
  };
  switch (field.holds) {
    case Holds::kFlag:
      return fits(value.is_boolean());
    case Holds::kNumber:
      return fits(is_count(value));
    case Holds::kText:
      return fits(value.is_string());
    case Holds::kObject:
      if (const std::string why = differs(value, field.inner); !why.empty())
        return name + ": " + why;
      return "";
    case Holds::kObjects:
      return each_differs(value, name, [&](const Json& o) { return differs(o, field.inner); });
    case Holds::kCounts:
      return fits(value.is_object() && std::all_of(value.begin(), value.end(), [](const Json& n) {
                    return n.is_null() || is_count(n);
                  }));
    case Holds::kTexts:
      return each_differs(value, name, [&](const Json& o) { return fits(o.is_string()); });
    case Holds::kPairs:
      return each_differs(value, name, [&](const Json& o) {
        return fits(o.is_array() && o.size() == 2 && std::all_of(o.begin(), o.end(), is_count));
      });
  }
  return "";
}

}  // namespace

std::string answers_markdown() {
  std::string text = "## Answers, version " + std::to_string(kVersion) + "\n";
  for (const Document& d : documents()) {
    text += std::string("\n### Answer: ") + d.name + "\n\nIn " + d.where +
            ".\n\n| field | type | there | meaning |\n| --- | --- | --- | --- |\n";
    add_rows(text, d.fields, "");
  }
  return text;
}

Json answers_json() {
  Json all = Json::array();
  for (const Document& d : documents()) {
    all.push_back({{"name", d.name}, {"where", d.where}, {"fields", json_of(d.fields)}});
  }
  return {{"version", kVersion}, {"documents", std::move(all)}};
}

Json answers_schema() {
  Json definitions = Json::object();
  for (const Document& d : documents()) {
    Json one = schema_of(d.fields);
    one["description"] = d.where;
    definitions[d.name] = std::move(one);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "What Crane's programs answer, version " + std::to_string(kVersion)},
          {"$defs", std::move(definitions)}};
}

std::string differs(const Json& value, std::span<const AnswerField> fields) {
  if (!value.is_object()) return "not an object: " + line_of(value);
  for (const auto& [name, there] : value.items()) {
    if (std::none_of(fields.begin(), fields.end(),
                     [&key = name](const AnswerField& f) { return key == f.name; })) {
      return name + " is in no table";
    }
  }
  for (const AnswerField& field : fields) {
    const auto found = value.find(field.name);
    if (found == value.end()) {
      if (field.presence == Presence::kSometimes) continue;
      return std::string(field.name) + " is missing";
    }
    if (found->is_null() && field.presence != Presence::kAlways) continue;
    if (const std::string why = value_differs(*found, field); !why.empty()) return why;
  }
  return "";
}

}  // namespace crane::control
