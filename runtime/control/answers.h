// SPDX-License-Identifier: Apache-2.0
#pragma once
// The JSON documents of Crane's programs: one table for each document, as schema.h has one for each
// request.  `crane-ctl schema status` prints them; tests/e2e/control.py compares them field by
// field with the answers of a running group.
//
// INVARIANT ANS-1  A document has the fields of its table and no others; each required one is
//        present and has its type, or is null if the table allows that.
// INVARIANT ANS-2  An unknown or missing value is null, never -1 or 0.  Log indexes begin at 1, so
//        0 means that there is no entry yet.
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
  kObjects,  // a list of objects with the fields of `inner`
  kCounts,   // an object: name to number, or to null
  kTexts,    // a list of texts
  kPairs,    // a list of pairs of ports
};

enum class Presence : std::uint8_t {
  kAlways,
  kOrNull,     // present, and null if unknown
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
// Describes the first difference between a document and its table; empty: none (ANS-1).
std::string differs(const nlohmann::json& value, std::span<const AnswerField> fields);

}  // namespace crane::control
