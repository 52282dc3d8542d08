// SPDX-License-Identifier: Apache-2.0
// One schema for all messages: what it accepts, what it refuses, and that it is documented (CTL-1,
// CTL-2).
#include "runtime/control/schema.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "dmt/base/crc.h"
#include "runtime/control/answers.h"

using namespace crane::control;
using Json = nlohmann::json;

namespace {

std::string error_of(Channel channel, const std::string& text) {
  const Parsed parsed = parse(channel, text);
  return parsed.message ? "" : parsed.refusal.error;
}

// Returns a value that the field accepts.
Json good(const Field& field) {
  switch (field.kind) {
    case Kind::kFlag:
      return true;
    case Kind::kNumber:
      return field.most;
    case Kind::kText:
      return field.words.empty() ? "x" : field.words.back();
    case Kind::kList:
      break;
  }
  Json one = Json::array({80, 8080});
  if (!field.inner.empty()) {
    one = Json::object();
    for (const Field& inner : field.inner) one[inner.name] = good(inner);
  }
  return Json::array({one, one});
}

Json whole(const ChannelTable& table, const Verb& verb) {
  Json message{{table.key, verb.name}, {"version", kVersion}};
  for (const Field& field : verb.fields) message[field.name] = good(field);
  return message;
}

template <typename Each>
void for_each_verb(Each each) {
  for (std::size_t i = 0; i < kChannels; ++i) {
    const ChannelTable& table = table_of(static_cast<Channel>(i));
    for (const Verb& verb : table.verbs) each(table, verb);
  }
}

}  // namespace

TEST_CASE("schema: each message is accepted with all fields and with the required ones only",
          "[control]") {
  for_each_verb([](const ChannelTable& table, const Verb& verb) {
    INFO(table.name << " " << verb.name);
    Json message = whole(table, verb);
    CHECK(error_of(table.channel, message.dump()).empty());
    message.erase("version");
    for (const Field& field : verb.fields) {
      if (!field.required) message[field.name] = nullptr;
    }
    CHECK(error_of(table.channel, message.dump()).empty());
    for (const Field& field : verb.fields) {
      if (!field.required) message.erase(field.name);
    }
    CHECK(error_of(table.channel, message.dump()).empty());
  });
}

TEST_CASE("schema: each field of each message is checked: presence, type, bounds", "[control]") {
  for_each_verb([](const ChannelTable& table, const Verb& verb) {
    for (const Field& field : verb.fields) {
      INFO(table.name << " " << verb.name << " " << field.name);
      const Json message = whole(table, verb);
      const auto with = [&](const Json& value) {
        Json other = message;
        other[field.name] = value;
        const Parsed parsed = parse(table.channel, other.dump());
        if (parsed.message) return std::string();
        CHECK(parsed.refusal.field.find(field.name) == 0);
        CHECK(parsed.refusal.message.find(field.name) == 0);
        return std::string(parsed.refusal.error);
      };
      if (field.required) {
        Json without = message;
        without.erase(field.name);
        CHECK(error_of(table.channel, without.dump()) == "missing_field");
        CHECK(with(nullptr) == "missing_field");
      }
      for (const Json& value : {Json(true), Json(7), Json(1.5), Json("7"), Json::array({1}),
                                Json::object({{"a", 1}})}) {
        const bool same = (value.is_boolean() && field.kind == Kind::kFlag) ||
                          (value.is_number_integer() && field.kind == Kind::kNumber) ||
                          (value.is_string() && field.kind == Kind::kText);
        if (!same) CHECK(with(value) == "wrong_type");
      }
      if (field.kind == Kind::kNumber) {
        CHECK(with(-1) == "out_of_range");
        if (field.most != kAny) CHECK(with(field.most + 1) == "out_of_range");
        if (field.most != kAny) CHECK(with(4294967297 + field.most) == "out_of_range");
        if (field.least > 0) CHECK(with(field.least - 1) == "out_of_range");
        if (field.most != kAny) CHECK(with(1e300) == "wrong_type");
      }
      if (field.kind == Kind::kText) {
        CHECK(with(std::string("a\0b", 3)) == "out_of_range");
        if (!field.words.empty()) CHECK(with("no such word") == "out_of_range");
        if (field.words.empty() && field.most != kAny) {
          CHECK(with(std::string(field.most + 1, 'x')) == "out_of_range");
        }
      }
    }
  });
}

TEST_CASE("schema: text that is no message of the channel has its own kind of error", "[control]") {
  for (std::size_t i = 0; i < kChannels; ++i) {
    const ChannelTable& table = table_of(static_cast<Channel>(i));
    const std::string key = table.key, verb = table.verbs[0].name;
    INFO(table.name);
    const auto error = [&](const std::string& text) { return error_of(table.channel, text); };
    CHECK(error("") == "not_json");
    CHECK(error("{\"" + key) == "not_json");
    CHECK(error("{\"" + key + "\":\"\xff\xfe\"}") == "not_json");
    CHECK(error("[1]") == "not_an_object");
    CHECK(error("null") == "not_an_object");
    CHECK(error("{}") == "missing_field");
    CHECK(error("{\"" + key + "\":7}") == "wrong_type");
    CHECK(error("{\"" + key + "\":\"nothing\"}") == "unknown_verb");
    CHECK(error("{\"" + key + "\":\"" + verb + "\",\"nothing\":1}") ==
          (table.grows ? error("{\"" + key + "\":\"" + verb + "\"}") : "unknown_field"));
    CHECK(error("{\"" + key + "\":\"" + verb + "\",\"version\":2}") == "version");
    CHECK(error("{\"" + key + "\":\"" + verb + "\",\"version\":\"1\"}") == "version");
    CHECK(error(std::string(table.longest + 1, ' ')) == "too_large");
    const std::string deep(2000, '[');
    CHECK(error(deep) == "too_deep");
    CHECK(error("{\"" + key + "\":\"" + std::string(100, '[') + "\"}") == "unknown_verb");
  }
}

TEST_CASE("schema: a refusal contains the field, the expected value and the actual one",
          "[control]") {
  const auto why = [](const char* text) { return parse(Channel::kNode, text).refusal.message; };
  CHECK(why(R"({"do":"checkpoint","replica":"x"})") ==
        R"(replica: a whole number from 0 to 126 is expected, this is a text ("x"))");
  CHECK(why(R"({"do":"checkpoint","tier":7})") ==
        "tier: one of: criu, restart is expected, this is a number (7)");
  CHECK(why(R"({"do":"transfer","to":4294967297})") ==
        "to: a whole number from 0 to 126 is expected, this is a number (4294967297)");
  CHECK(why(R"({"do":"stauts"})").find("do: one of: status, transfer,") == 0);
  const Json answer = refused(parse(Channel::kNode, R"({"do":"signal"})").refusal);
  CHECK(answer["ok"] == false);
  CHECK(answer["version"] == 1);
  CHECK(answer["error"] == "missing_field");
  CHECK(answer["field"] == "signo");
}

TEST_CASE("schema: an accepted message is passed on without nulls, with its verb", "[control]") {
  const Parsed parsed =
      parse(Channel::kNode, R"({"do":"checkpoint","replica":null,"tier":"criu"})");
  REQUIRE(parsed.message);
  CHECK(parsed.message->plain("do") == Json{{"do", "checkpoint"}, {"tier", "criu"}});
}

// The digests are CRC32C of the JSON Schema of each answer.  Programs of users read these fields:
// after a change of answers.cc that is meant, note it in CHANGELOG.md and change the digest here.
TEST_CASE("schema: names, types, presence and meanings of the answers' fields are the known ones",
          "[control]") {
  const std::map<std::string, std::uint32_t> known{{"node", 0x392d97c1},    {"group", 0x175e23f8},
                                                   {"members", 0x4dda6878}, {"events", 0xda7851c3},
                                                   {"doctor", 0x405f1032},  {"state", 0x92a9c4f9}};
  const Json schema = answers_schema();
  std::map<std::string, std::uint32_t> found;
  for (const auto& [name, answer] : schema["$defs"].items()) {
    const std::string text = answer.dump();
    found[name] = crane::crc32c(text.data(), text.size());
    UNSCOPED_INFO(fmt::format("{{\"{}\", 0x{:08x}}}", name, found[name]));
  }
  CHECK(found == known);
}

TEST_CASE("schema: the list of answers has a row for each field, inner ones included",
          "[control]") {
  const std::string text = answers_markdown();
  for (const char* part :
       {"## Answers, version 1\n\n### Answer: node\n\nIn a node's answer to status, and ",
        "| version | number | always | of this schema |\n",
        "| members[].readiness.progress.left_ms | number | or null | until none is left; null: ",
        "| checkpoint.phases_us | object of numbers | always | microseconds of each phase |\n",
        "\n### Answer: state\n"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("schema: messages of other processes are read without trust", "[control]") {
  const Json json{{"n", 7}, {"m", -7}, {"t", "x"}, {"f", true}, {"l", {1}}, {"z", nullptr}};
  CHECK(number_in(json, "n") == 7);
  CHECK(number_in(json, "m", 3) == 3);
  CHECK(number_in(json, "z", 3) == 3);
  CHECK(number_in(json, "t", 3) == 3);
  CHECK(number_in(7, "t", 3) == 3);
  CHECK(text_in(json, "t") == "x");
  CHECK(text_in(json, "n", "y") == "y");
  CHECK(flag_in(json, "f"));
  CHECK_FALSE(flag_in(json, "z"));
  CHECK(list_in(json, "l").size() == 1);
  CHECK(list_in(json, "t").empty());
  CHECK(object_in(json, "l").empty());
  CHECK(replica_in({{"replica", 300}}) == -1);
}

TEST_CASE("answers: each wrong field makes a document differ from its table", "[control]") {
  static constexpr AnswerField kInner[] = {{"n", Holds::kNumber, Presence::kOrNull, ""}};
  static constexpr AnswerField kFields[] = {
      {"a", Holds::kText, Presence::kAlways, ""},
      {"b", Holds::kObjects, Presence::kSometimes, "", kInner},
      {"c", Holds::kCounts, Presence::kSometimes, ""}};
  const auto why = [](const Json& json) { return differs(json, kFields); };
  CHECK(why({{"a", "x"}, {"b", Json::array({{{"n", 1}}, {{"n", nullptr}}})}}).empty());
  CHECK(why({{"a", "x"}, {"c", {{"any", 7}}}}).empty());
  CHECK(why(7) == "not an object: 7");
  CHECK(why({{"a", "x"}, {"d", 1}}) == "d is in no table");
  CHECK(why(Json::object()) == "a is missing");
  CHECK(why({{"a", nullptr}}) == "a is not of type text: null");
  CHECK(why({{"a", "x"}, {"b", Json::array({{{"n", -1}}})}}) == "b[]: n is not of type number: -1");
  CHECK(why({{"a", "x"}, {"c", {{"any", "7"}}}}) ==
        "c is not of type object of numbers: {\"any\":\"7\"}");
}
