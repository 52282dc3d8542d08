// SPDX-License-Identifier: Apache-2.0
// The tables as a document: the output of `crane-ctl schema`.
#include <nlohmann/json.hpp>

#include "runtime/control/schema.h"

#include "dmt/base/join.h"

namespace crane::control {
namespace {

using Json = nlohmann::json;

struct ErrorKind {
  const char* name;
  const char* meaning;
};
constexpr ErrorKind kErrors[] = {
    {"too_large", "the message is longer than its channel allows"},
    {"too_deep", "lists and objects are nested too deeply"},
    {"not_json", "the message is not JSON, or not UTF-8"},
    {"not_an_object", "the message is JSON, but not an object"},
    {"version", "the message has another version of this schema"},
    {"unknown_verb", "the channel has no such request"},
    {"unknown_field", "the request has no such field"},
    {"missing_field", "a required field is missing"},
    {"wrong_type", "a field has another type"},
    {"out_of_range", "a field's value is not allowed"},
    {"not_leader", "only the leader does that; send the request again"},
    {"busy", "not possible now; send the request again"},
    {"needed", "without this replica there would be no majority"},
    {"unsupported", "not possible in this group, or not with its options"},
    {"bad_argument", "the group has no such replica, or cannot do that to it"},
    {"failed", "the attempt failed; the message has the cause"},
    {"gone", "the log no longer reaches back that far"},
    {"full", "the disk has no room; nothing was kept"},
    {"stopping", "the group is being stopped"},
};

const char* name_of(Kind kind) {
  return kind == Kind::kFlag     ? "true or false"
         : kind == Kind::kNumber ? "number"
         : kind == Kind::kText   ? "text"
                                 : "list";
}

std::string bounds_of(const Field& f) {
  std::string text = joined(f.words);
  if (!text.empty()) return text;
  if (f.kind == Kind::kNumber) {
    return f.most == kAny ? "from " + std::to_string(f.least)
                          : std::to_string(f.least) + " to " + std::to_string(f.most);
  }
  const bool bounded = f.most != kAny && f.kind != Kind::kFlag;
  const char* what = f.kind == Kind::kText ? " bytes" : " elements";
  return bounded ? "at most " + std::to_string(f.most) + what : "";
}

void add_rows(std::string& text, std::span<const Field> fields, const std::string& verb,
              const std::string& place) {
  for (const Field& f : fields) {
    text += "| " + verb + " | " + place + f.name + " | " + name_of(f.kind) +
            (f.required ? "" : ", optional") + " | " + bounds_of(f) + " | " + f.meaning + " |\n";
    add_rows(text, f.inner, verb, place + f.name + "[].");
  }
}

std::string markdown_of(const ChannelTable& table) {
  std::string text =
      std::string("### ") + table.name + "\n\nFrom " + table.where + "; the verb is `" + table.key +
      "`; at most " + std::to_string(table.longest) + " bytes; " +
      (table.answers ? "each request gets one answer" : "messages get no answer") + ".\n\n" + "| " +
      table.key + " | field | type | bounds | meaning |\n" + "| --- | --- | --- | --- | --- |\n";
  for (const Verb& verb : table.verbs) {
    text += std::string("| ") + verb.name + " | | | | " + verb.meaning + " |\n";
    add_rows(text, verb.fields, verb.name, "");
  }
  return text + "\n";
}

Json json_of(std::span<const Field> fields) {
  Json all = Json::array();
  for (const Field& f : fields) {
    Json one{{"name", f.name},
             {"type", name_of(f.kind)},
             {"required", f.required},
             {"meaning", f.meaning}};
    if (!f.words.empty()) one["one_of"] = std::vector<std::string>(f.words.begin(), f.words.end());
    if (f.kind == Kind::kNumber) one["least"] = f.least;
    if (f.most != kAny && f.kind != Kind::kFlag) one["most"] = f.most;
    if (!f.inner.empty()) one["fields"] = json_of(f.inner);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

std::string schema_markdown() {
  std::string text = "## Messages, version " + std::to_string(kVersion) + "\n\n";
  for (std::size_t i = 0; i < kChannels; ++i)
    text += markdown_of(table_of(static_cast<Channel>(i)));
  text += "## Errors\n\n| error | meaning |\n| --- | --- |\n";
  for (const ErrorKind& e : kErrors) {
    text += std::string("| ") + e.name + " | " + e.meaning + " |\n";
  }
  return text;
}

Json schema_json() {
  Json channels = Json::array();
  for (std::size_t i = 0; i < kChannels; ++i) {
    const ChannelTable& table = table_of(static_cast<Channel>(i));
    Json verbs = Json::array();
    for (const Verb& verb : table.verbs) {
      verbs.push_back(
          {{"name", verb.name}, {"meaning", verb.meaning}, {"fields", json_of(verb.fields)}});
    }
    channels.push_back({{"name", table.name},
                        {"where", table.where},
                        {"verb", table.key},
                        {"answers", table.answers},
                        {"most_bytes", table.longest},
                        {"verbs", std::move(verbs)}});
  }
  Json errors = Json::object();
  for (const ErrorKind& e : kErrors) errors[e.name] = e.meaning;
  return {{"version", kVersion}, {"channels", std::move(channels)}, {"errors", std::move(errors)}};
}

}  // namespace crane::control
