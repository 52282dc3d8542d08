// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the groups of this machine.  For a running group, /dev/shm/crane.NAME/home is a link to its
// directory (GroupDirectories).  A stopped group whose data last is in crane-run's default
// directory for such groups, or in --dir.
//
// Threads: plain functions.

#include <string>
#include <vector>

namespace crane::launcher {

struct FoundGroup {
  std::string name, dir;  // its own directory is <dir>/<name>
};

// The groups in `dir`, or all groups that this user may see if `dir` is empty; sorted by name.
// `denied`: there may be more.
std::vector<FoundGroup> find_groups(const std::string& dir, bool& denied);

// The directory that contains the group: `dir`, or the place where it is found if `dir` is empty;
// "" if there is no such group.  `denied`: the group may exist, but this user cannot see it.
std::string directory_of(const std::string& dir, const std::string& group, bool& denied);

// Whether this machine has a context of the group (context_file.h) and none of its replicas.
bool is_only_elsewhere(const FoundGroup& group);

// The places that find_groups() searches, for a message.
std::string places_of(const std::string& dir);

}  // namespace crane::launcher
