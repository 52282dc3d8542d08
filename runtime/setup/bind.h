// SPDX-License-Identifier: Apache-2.0
#pragma once
// The words of --bind and [server] binds: DIR, SOURCE:TARGET, and either with ":ro".
//
// Threads: plain functions.

#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

struct Bind {
  std::string source, target;
  bool read_only = false;
  bool operator==(const Bind&) const = default;
};

// A relative source is taken from the working directory.  A target that is not named is the source.
Bind parse_bind(const std::string& word);
// The word that parse_bind() makes the same value of.
std::string text_of(const Bind& bind);

// Several replicas that write to one directory of the machine damage each other's files: refused,
// unless the user says (--bind-shared) that the server copes with it.  `option` names what the word
// was given with.
Outcome check_binds(const std::vector<std::string>& words, int replicas, Status status,
                    const std::string& option);

}  // namespace crane::setup
