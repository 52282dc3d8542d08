// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program that starts the nodes of a group on this machine: crane-run, which starts all of
// them; the agent of crane-run --hosts, which starts one; or none that crane-ctl can reach.
// kElsewhere: the replica is on another host, and only its node can be asked.
//
// Threads: plain functions.

#include <string>

#include "runtime/launcher/ctl/ctl.h"

namespace crane::launcher {

enum class Starter { kCraneRun, kAgent, kNone, kElsewhere };

Starter starter_of(const Request& request, const std::string& group, int replica);
// Whether requests can be sent to the replica's node.
bool is_reached(const Request& request, const std::string& group, int replica);
// Whether the directory of this replica is on this machine.
bool is_here(const Request& request, const std::string& group, int replica);
// Sends a request to the agent.  `node` in its answer: it has a node, which may not listen yet.
RequestResult ask_agent(const Request& request, const std::string& group, int replica,
                        const nlohmann::json& what);
// Sends a request to the group's crane-run.
RequestResult ask_crane_run(const Request& request, const std::string& group,
                            const nlohmann::json& what);
// Whether a crane-run restarts lost replicas.  kPresent: also if no crane-run started the group.
// kStopped: it is there, but a signal has stopped it (SIGSTOP, Ctrl-Z).
enum class Supervision { kPresent, kGone, kStopped };
Supervision supervision_of(const std::string& dir, const std::string& group);
// A sentence that explains how to bring the replica back.
std::string resume_hint(Starter starter, int replica);

}  // namespace crane::launcher
