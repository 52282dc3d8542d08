// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of --bind and [server] binds: DIR, SOURCE:TARGET, and either with ":ro".
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

// A relative source is relative to the working directory.  Without a target, the source is the
// target.
Bind parse_bind(const std::string& word);
// The inverse of parse_bind().
std::string text_of(const Bind& bind);

// Refuses a directory of the machine to which several replicas would write, because they damage
// each other's files.  With --bind-shared the user takes responsibility, so the caller does not
// check these.  `option` is the option whose arguments `words` are.
Outcome check_binds(const std::vector<std::string>& words, int replicas, Status status,
                    const std::string& option);
// Refuses (kDirectory) a source that this machine does not have.
Outcome check_bind_sources(const std::vector<std::string>& words, const std::string& option);

}  // namespace crane::setup
