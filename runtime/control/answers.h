// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Crane's programs tell others in JSON: one table for each document, as schema.h has one for
// each request.  `crane-ctl schema status` prints them; tests/e2e/control.py compares them with
// what a living group answers, field by field.
//
// INVARIANT ANS-1  A document has the fields of its table and no others; each required one is
//        there, and is of its type, or null where the table allows that.
// INVARIANT ANS-2  What is unknown or not there is null, never -1 or 0.  The indexes of log entries
//        are from 1 on: there 0 says that there is no entry yet.
//
// Threads: pure functions over constant tables.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace crane::control {

enum class Holds : std::uint8_t {
  kFlag,
  kNumber,
  kText,
  kObject,   // with the fields of `inner`
  kObjects,  // a list of such
  kCounts,   // an object: name to number, or to null
  kTexts,    // a list of texts
  kPairs,    // a list of pairs of ports
};

enum class Presence : std::uint8_t {
  kAlways,
  kOrNull,     // there, and null where it is unknown
  kSometimes,  // may be missing
};

struct AnswerField {
  const char* name;
  Holds holds;
  Presence presence;
  const char* meaning;
  std::span<const AnswerField> inner = {};
};

struct Document {
  const char* name;
  const char* where;
  std::span<const AnswerField> fields;
};
std::span<const Document> documents();

std::string answers_markdown();
nlohmann::json answers_json();
// The same tables as a JSON Schema (draft 2020-12), with a definition for each document.
nlohmann::json answers_schema();
// The first difference between a document and its table; empty: none (ANS-1).
std::string differs(const nlohmann::json& value, std::span<const AnswerField> fields);

}  // namespace crane::control
