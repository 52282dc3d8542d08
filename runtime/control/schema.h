// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every message that one of Crane's programs receives from another program or from an operator: one
// table for each channel, and one parser for all tables.
//
// INVARIANT CTL-1  A message that parse() accepts has exactly the fields of its verb: each required
//        one, none that the table does not list, each of its type and within its bounds.
// INVARIANT CTL-2  parse() never throws and never ends the program, for any bytes.
//
// To add a request or a field, add a row in requests.cc.  The parser, `crane-ctl schema`, the
// fuzzer and the test that sends malformed messages read the table.
//
// Threads: pure functions over constant tables.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dmt/base/assert.h"

namespace crane::control {

inline constexpr std::uint64_t kVersion = 1;
inline constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

enum class Kind : std::uint8_t { kFlag, kNumber, kText, kList };

// A field that is not required may also be null, which means the same as a missing field.
struct Field {
  const char* name;
  Kind kind;
  bool required;
  const char* meaning;
  std::uint64_t least = 0, most = kAny;     // bounds of a number, a text's bytes, a list's length
  std::span<const char* const> words = {};  // the allowed texts; empty: any
  std::span<const Field> inner = {};        // a list's objects; empty: a list of pairs of ports
};

struct Verb {
  const char* name;
  std::span<const Field> fields;
  const char* meaning;
};

// The receiver and the sender of the messages.
enum class Channel : std::uint8_t {
  kNode,        // an operator, at a node's control.sock
  kAgent,       // an operator, at the socket of a host agent or of crane-run
  kRunToAgent,  // crane-run, on a host agent's standard input
  kRunToNode,   // crane-run, on the socket that it shares with a node
  kNodeToRun,   // a node, on that socket
};
inline constexpr std::size_t kChannels = 5;

struct ChannelTable {
  Channel channel;
  const char* name;
  const char* where;
  const char* key;      // the verb's key: "do" in requests, "t" in messages
  bool answers;         // each message gets one answer
  bool grows;           // the sender may be of a later build: the parser drops unknown fields
  std::size_t longest;  // largest number of bytes in a message
  std::span<const Verb> verbs;
};
const ChannelTable& table_of(Channel channel);

// Why a message is refused.
struct Refusal {
  const char* error = "";  // the kind, one of kErrors in print.cc
  std::string field;       // the field's name; empty: no particular field
  std::string message;     // what was expected and what was found
};

// A message that the table allows (CTL-1).
class Message {
 public:
  Message(const Verb& verb, nlohmann::json values) : verb_(&verb), values_(std::move(values)) {}

  const Verb& verb() const { return *verb_; }
  bool is(std::string_view name) const { return name == verb_->name; }
  bool has(const char* name) const { return find(name) != nullptr; }
  template <typename T = std::uint64_t>
  T number(const char* name, T otherwise = {}) const {
    const nlohmann::json* at = find(name, Kind::kNumber);
    if (at == nullptr) return otherwise;
    const auto n = at->get<std::uint64_t>();
    CRANE_ASSERT(n <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()));  // CTL-1
    return static_cast<T>(n);
  }
  std::string text(const char* name, const char* otherwise = "") const;
  bool flag(const char* name, bool otherwise = false) const;
  const nlohmann::json& list(const char* name) const;
  // All present fields, and the verb under `key`.
  nlohmann::json plain(const char* key) const;

 private:
  const Field& field(const char* name) const;
  const nlohmann::json* find(const char* name) const;
  const nlohmann::json* find(const char* name, Kind kind) const;

  const Verb* verb_;
  nlohmann::json values_;
};

struct Parsed {
  std::optional<Message> message;
  Refusal refusal;  // if there is no message
};
Parsed parse(Channel channel, std::string_view text);

// --- answers

// {"version":1,"ok":true,"message":TEXT}; the caller may add fields.
nlohmann::json accepted(const std::string& message);
// {"version":1,"ok":false,"error":KIND,"field":NAME or null,"message":TEXT}
nlohmann::json refused(const std::string& error, const std::string& message,
                       const std::string& field = "");
nlohmann::json refused(const Refusal& refusal);
// The JSON as one line; invalid UTF-8 is replaced.
std::string line_of(const nlohmann::json& json);

// --- the table, for people and programs (print.cc)
std::string schema_markdown();
nlohmann::json schema_json();

// --- reading untrusted JSON
// The number or text under `key`; `otherwise` if it is missing or has another type.
std::uint64_t number_in(const nlohmann::json& json, const char* key, std::uint64_t otherwise = 0);
std::string text_in(const nlohmann::json& json, const char* key, const char* otherwise = "");
bool flag_in(const nlohmann::json& json, const char* key, bool otherwise = false);
int replica_in(const nlohmann::json& json);  // under "replica"; -1: none
// The list or object under `key`; an empty one if there is none.
const nlohmann::json& list_in(const nlohmann::json& json, const char* key);
const nlohmann::json& object_in(const nlohmann::json& json, const char* key);

}  // namespace crane::control
