// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options that determine how the nodes of a group behave.  crane-run's command line, group.toml
// and the node's configuration hold them; they are the rows of option_table.def.  To add an option,
// write a row there and use the field.
//
// Threads: plain values and functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dmt/layout.h"

namespace crane::setup {

struct NodeOptions {
#define OPTION(type, name, initial, ...) type name = initial;
#include "runtime/setup/option_table.def"
#undef OPTION
};

// A group of one replica with its log in memory cannot recover.  It takes no checkpoints, because
// its clients would wait for them.
inline bool cannot_recover(std::size_t replicas, const NodeOptions& options) {
  return replicas == 1 && options.durability == "memory";
}

struct OptionRow {
  enum class Section { kGroup, kServer, kHttp };
  using Field = std::variant<std::uint32_t NodeOptions::*, bool NodeOptions::*,
                             std::string NodeOptions::*, dmt::Admission NodeOptions::*>;
  struct Limits {
    std::uint32_t most = 0;         // the largest number
    std::uint32_t least_typed = 0;  // the least number on the command line; elsewhere it is 0
    bool file_only = false;         // the limit applies only to group.toml
    std::vector<std::string> choices = {};
  };

  const char* key;  // in the node's configuration
  Field field;
  const char* word;  // on the command line
  Section section;
  Limits limits;
  const char* needs;  // the word of a required other option, or nullptr
  const char* help;   // nullptr: hidden

  // The key in group.toml; [http] has its keys without "http_".
  const char* file_key() const;
  // Whether the node's configuration accepts this number.
  bool fits(std::uint32_t number) const { return limits.file_only || number <= limits.most; }
};

const std::vector<OptionRow>& option_rows();

// Converts a choice to its text and back.  set_choice() returns false if `text` is none of the
// row's choices.
std::string choice_text(const OptionRow& row, const std::string& value);
std::string choice_text(const OptionRow& row, dmt::Admission value);
bool set_choice(const OptionRow& row, const std::string& text, std::string& value);
bool set_choice(const OptionRow& row, const std::string& text, dmt::Admission& value);

}  // namespace crane::setup
