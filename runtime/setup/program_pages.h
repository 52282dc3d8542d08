// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a program's manual page and shell completions from its table of options.  Every program
// prints them: `crane-run --print-page man`.
//
// Threads: plain functions.

#include <optional>
#include <string>

#include "runtime/setup/command_line.h"

namespace crane::setup {

// man(7), section 1.
std::string man_page(const Program& program);
std::string bash_completion(const Program& program);
std::string zsh_completion(const Program& program);

// `kind`: man, bash or zsh; nullopt for any other.
std::optional<std::string> page_of(const Program& program, const std::string& kind);

}  // namespace crane::setup
