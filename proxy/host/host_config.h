// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a node that runs by itself: from the group's file, the secret, the profile
// and this machine; after all that can be checked beforehand was.
//
// Threads: plain function.

#include <string>

#include "proxy/host/config.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"

namespace crane::node {

// `directories` holds the replica's locks: keep it as long as the node runs.
Outcome host_config(const std::string& path, int replica, setup::GroupDirectories& directories,
                    Config& config);

// Of a node that goes on in its group: whether it begins at a checkpoint.
void choose_begin(Config& config);

// Removes the replica's memory of the log: it takes part in a new group, with an empty log
// and no checkpoint.  Only
// when every host does so: one that forgets alone could let an answered write be lost (C5).
void forget_group(const Config& config);

}  // namespace crane::node
