// SPDX-License-Identifier: Apache-2.0
#pragma once
// The agent `crane-run --host-agent`, which crane-run starts on each host of a group through the
// remote shell.  It writes the node's files below the state directory, starts crane-node, reports
// its state, stops it, and removes the files.
//
// Protocol: one JSON object per line.  The secret is sent only this way.
//   agent -> run  {"t":"hello","protocol":2,"versions":"wire 1, .."}   dmt/base/versions.h
//                 {"t":"ready","program":"...","files":[..]} of the server (program_files.h)
//                 {"t":"problem","status":n,"text":"..."}     100 and above, as crane-run's
//                 {"t":"status","role":"leader","view":n,"server":true,"ports":[[80,8080]]}
//                 {"t":"line","text":"..."}                   output of the node
//                 {"t":"drained","why":""}   an operator drained it (why: it did not recover)
//                 {"t":"resumed"}            an operator resumed it
//                 {"t":"ended","wait":n,"server_exit":n,"server_end":"exited","refused":"...",
//                     "said":"...","log":"..."}   its last line, and the path of its log
//                 {"t":"stopped","groups":n}
//   run -> agent  {"t":"group","file":TOML,"secret":"...","replica":n}  after a valid `hello`
//                 {"t":"start"}  when all hosts are ready
//                 {"t":"stop"}   {"t":"kill"}
//                 {"t":"end","name":"...","dir":"..."}   stops the group's agents of this host
//
// SIGTERM to the agent ends only this host's replica: the node gets SIGTERM, too, and hands the
// lead over.  SIGINT (crane-run --stop) and `stop` end the whole group.
//
// INVARIANT AGENT-1  A started node ends only on request, or when its server or the node itself
//     ends it.  An agent that loses its connection continues silently, so that neither the network
//     to crane-run nor crane-run's machine is a single point of failure.  An agent that has not
//     started its node ends.
// INVARIANT AGENT-2  The node ends (SIGTERM) when its agent ends, whatever the cause.
// INVARIANT AGENT-3  The remote shell starts a parent process of the agent.  The parent ends with
//     the agent's status, or when the connection is lost, so that no remote shell waits for a group
//     that it has lost.
// INVARIANT AGENT-4  A replica that an operator drained has no node until an operator resumes it,
//     or its group is started again (agent_socket.h).

namespace crane::launcher {

inline constexpr int kAgentProtocol = 2;

// Returns the exit status: 0, or that of the problem that it reported.
int run_host_agent();

}  // namespace crane::launcher
