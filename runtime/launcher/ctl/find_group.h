// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the groups of this machine are.  One that runs says so itself: /dev/shm/crane.NAME/home is
// a link to its directory (GroupDirectories).  One that was stopped and lasts is where crane-run
// keeps such groups by itself, or where --dir says.
//
// Threads: plain functions.

#include <string>
#include <vector>

namespace crane::launcher {

struct FoundGroup {
  std::string name, dir;  // its own directory is <dir>/<name>
};

// Those in `dir`, or, if that is empty, all that this user may see, by name; `denied`: there may be
// more.
std::vector<FoundGroup> find_groups(const std::string& dir, bool& denied);

// The directory that holds the group, `dir` or, if that is empty, wherever it is; "" if there is
// none.  `denied`: it may be there, this user cannot see it.
std::string directory_of(const std::string& dir, const std::string& group, bool& denied);

// Where find_groups() looks, for a message.
std::string places_of(const std::string& dir);

}  // namespace crane::launcher
