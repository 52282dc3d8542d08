// SPDX-License-Identifier: Apache-2.0
#pragma once
// The context of a group of several hosts, for crane-ctl on a machine that may have none of its
// replicas: the group's file and its secret.  crane-run --hosts keeps both while its group runs, in
// a directory that only its user may enter:
//
//   DIR/.contexts/NAME.toml     GROUP_FILE.md; secret_file is the other file
//   DIR/.contexts/NAME.secret
//
// No group has the name of that directory (setup::good_group_name).
//
// Threads: plain functions.

#include <string>
#include <vector>

#include "runtime/setup/group_file.h"
#include "runtime/setup/messages.h"

namespace crane::launcher {

// The path of the group's file, whether or not it exists.  `dir`: as in --dir of crane-ctl.
std::string context_path(const std::string& dir, const std::string& group);
bool has_context(const std::string& dir, const std::string& group);
// The groups with a context in `dir`.  `denied`: this user may not look.
std::vector<std::string> contexts_in(const std::string& dir, bool& denied);

// Writes both files, in place of older ones.  Errors: kDirectory, kSecret.
Outcome write_context(const std::string& dir, setup::GroupFile file, const std::string& secret);
// Removes both files, and the directories that are then empty.  Without them it does nothing.
void remove_context(const std::string& dir, const std::string& group);

}  // namespace crane::launcher
