// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program that starts the nodes of a group on this machine: crane-run, which started all of
// them here; the agent of crane-run --hosts, which started one; or none that can be asked.
//
// Threads: plain functions.

#include <string>

#include "runtime/launcher/ctl/ctl.h"

namespace crane::launcher {

enum class Starter { kCraneRun, kAgent, kNone };

Starter starter_of(const Request& request, const std::string& group, int replica);
// Whether one of its replica directories lies on this machine.
bool is_here(const Request& request, const std::string& group, int replica);
// What the agent says; its answer has `node`: it has one, which may not listen yet.
RequestResult ask_agent(const Request& request, const std::string& group, int replica,
                        const nlohmann::json& what);
// The same for the group's crane-run.
RequestResult ask_crane_run(const Request& request, const std::string& group,
                            const nlohmann::json& what);
// What crane-run started and none supervises now.
bool is_unsupervised(const std::string& dir, const std::string& group);
// How somebody brings the replica back, for people.
std::string way_back(Starter starter, int replica);

}  // namespace crane::launcher
