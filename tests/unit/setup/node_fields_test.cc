// SPDX-License-Identifier: Apache-2.0
// GOAL    A node reads the same values that crane-run wrote.
// METHOD  Each row of the table is changed, written and read.
// CHECKS  All fields, those that a recording keeps, invalid values.
#include "runtime/setup/node_fields.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace crane;
using namespace crane::setup;

namespace {

void change(bool& value) { value = !value; }
void change(std::string& value) { value += "/x"; }
void change(std::vector<std::string>& value) { value = {"a", "b"}; }
void change(std::vector<int>& value) { value = {3, 1}; }
void change(dmt::Mode& value) { value = dmt::Mode::kParallel; }
void change(Secret& value) { value = {1, 2, 3, 255}; }
void change(std::vector<Bind>& value) { value = {{"/a", "/b", true}}; }
void change(std::vector<SoftBarrier>& value) { value = {{"f", 8, 5000, "--soft-barrier"}}; }
template <typename Number>
void change(Number& value) {
  value = static_cast<Number>(value + 7);
}

template <typename T>
bool same(const T& a, const T& b) {
  return a == b;
}
bool same(const std::vector<SoftBarrier>& a, const std::vector<SoftBarrier>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return text_of(x) == text_of(y) && x.origin == y.origin;
         });
}

NodeFields changed() {
  NodeFields fields;
#define FIELD(type, name, key, initial, kept) change(fields.name);
#include "runtime/setup/node_fields.def"
#undef FIELD
  return fields;
}

}  // namespace

TEST_CASE("each field reaches the node", "[node_fields]") {
  const NodeFields fields = changed();
  nlohmann::json json;
  write_fields(fields, Fields::kAll, json);
  NodeFields read_back;
  REQUIRE(read_fields(json, read_back) == nullptr);
#define FIELD(type, name, key, initial, kept) \
  {                                           \
    CAPTURE(key);                             \
    CHECK(json.contains(key));                \
    CHECK(same(read_back.name, fields.name)); \
  }
#include "runtime/setup/node_fields.def"
#undef FIELD
}

TEST_CASE("a recording keeps the fields that its replay needs, but no secret", "[node_fields]") {
  const NodeFields fields = changed();
  nlohmann::json json;
  write_fields(fields, Fields::kKept, json);
  NodeFields read_back;
  REQUIRE(read_fields(json, read_back) == nullptr);
  const NodeFields initial;
#define FIELD(type, name, key, initial_, kept)                        \
  {                                                                   \
    CAPTURE(key);                                                     \
    CHECK(same(read_back.name, (kept) ? fields.name : initial.name)); \
  }
#include "runtime/setup/node_fields.def"
#undef FIELD
  CHECK_FALSE(json.contains("secret"));
}

TEST_CASE("an invalid value is reported with its field", "[node_fields]") {
  NodeFields read_back;
  const auto wrong = [&read_back](const char* text) {
    const char* key = read_fields(nlohmann::json::parse(text), read_back);
    return std::string(key == nullptr ? "" : key);
  };
  CHECK(wrong(R"({"mode": "sideways"})") == "mode");
  CHECK(wrong(R"({"secret": "00ff"})") == "secret");
  CHECK(wrong(R"({"line_ups": [{"point": "f:0:5000"}]})") == "line_ups");
  CHECK(wrong(R"({"group": null, "later": 1})").empty());
}
