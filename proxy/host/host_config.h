// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a node that runs without crane-run: made from the group's file, the secret,
// the profile and this machine, after all checks that are possible beforehand.
//
// Threads: plain function.

#include <string>

#include "proxy/host/config.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"

namespace crane::node {

// `directories` holds the replica's locks: keep it while the node runs.
Outcome host_config(const std::string& path, int replica, setup::GroupDirectories& directories,
                    Config& config);

// For a node that continues in its group: chooses whether it begins at a checkpoint.
void choose_starting_point(Config& config);

// Removes the replica's memory of the log: it takes part in a new group, with an empty log and no
// checkpoint.  REQUIRES that every host does so: a single one that forgets could let an answered
// write be lost (C5).
void forget_group(const Config& config);

}  // namespace crane::node
