// SPDX-License-Identifier: Apache-2.0
// Requests of operators and of Crane's programs: any text is refused, or it is a message of its
// channel with fields that every handler can read.

#include "dmt/base/assert.h"
#include "dmt/base/ids.h"
#include "runtime/control/schema.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {
namespace {

using control::Field;
using control::Kind;

// Reads every field as its handler does.
void read(const control::Message& message) {
  for (const Field& field : message.verb().fields) {
    if (field.kind == Kind::kFlag) (void)message.flag(field.name);
    if (field.kind == Kind::kText) (void)message.text(field.name);
    if (field.kind == Kind::kList) {
      CRANE_ASSERT(message.list(field.name).is_array());
    }
    if (field.kind != Kind::kNumber || !message.has(field.name)) continue;
    const std::uint64_t number = message.number(field.name);
    CRANE_ASSERT(number >= field.least && number <= field.most);
    if (field.most == kReplicasMax - 1) (void)message.number<std::uint8_t>(field.name);
    if (field.most == 65535) (void)message.number<std::uint16_t>(field.name);
    if (field.most <= 0x7fffffff) (void)message.number<int>(field.name);
  }
}

// Adds a valid message, and the same with another type in its last field.
void add_seeds(std::vector<std::string>& all, const control::ChannelTable& table,
               const control::Verb& verb) {
  nlohmann::json message{{table.key, verb.name}, {"version", control::kVersion}};
  for (const Field& field : verb.fields) {
    nlohmann::json& value = message[field.name];
    if (field.kind == Kind::kFlag) value = true;
    if (field.kind == Kind::kNumber) value = field.least;
    if (field.kind == Kind::kText) value = field.words.empty() ? "x" : field.words[0];
    if (field.kind == Kind::kList) value = nlohmann::json::array();
  }
  all.push_back(message.dump());
  if (verb.fields.empty()) return;
  message[verb.fields.back().name] = {{"x", -1}};
  all.push_back(message.dump());
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all{R"({"do":"checkpoint","replica":"x"})",
                               R"({"do":"transfer","to":4294967297})",
                               R"({"do":"status","version":2})",
                               R"({"t":3,"port":"x"})",
                               "[1,2",
                               "{\"do\":\"\xff\"}",
                               std::string(64, '['),
                               ""};
  for (std::size_t i = 0; i < control::kChannels; ++i) {
    const control::ChannelTable& table = control::table_of(static_cast<control::Channel>(i));
    for (const control::Verb& verb : table.verbs) add_seeds(all, table, verb);
  }
  return all;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crane;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (std::size_t i = 0; i < control::kChannels; ++i) {
    const control::Parsed parsed = control::parse(static_cast<control::Channel>(i), text);
    if (parsed.message) {
      fuzz::read(*parsed.message);
      CRANE_ASSERT(parsed.message->plain("do").is_object());
    }
    CRANE_ASSERT(parsed.message || !parsed.refusal.message.empty());
  }
  return 0;
}
