// SPDX-License-Identifier: Apache-2.0
#pragma once
// crane-run's other half: `crane-run --host-agent`, started on each host of a group through the
// remote shell.  It writes what the node needs below the state directory, starts crane-node, tells
// what becomes of it, stops it and removes what it made.
//
// One JSON object per line; the secret travels only there.
//   agent -> run  {"t":"hello","protocol":2,"versions":"wire 1, .."}   dmt/base/versions.h
//                 {"t":"ready","program":"...","files":[..]} of the server (program_files.h)
//                 {"t":"problem","status":n,"text":"..."}     100 and above, as crane-run's
//                 {"t":"status","role":"leader","view":n,"server":true,"ports":[[80,8080]]}
//                 {"t":"line","text":"..."}                   the node said
//                 {"t":"drained","why":""}   an operator ended it (why: it did not recover)
//                 {"t":"resumed"}            and brings it back
//                 {"t":"ended","wait":n,"server_exit":n,"server_end":"exited","refused":"...",
//                     "said":"...","log":"..."}
//                 {"t":"stopped","groups":n}
//   run -> agent  {"t":"group","file":TOML,"secret":"...","replica":n}  once `hello` was right
//                 {"t":"start"}  when all hosts are ready
//                 {"t":"stop"}   {"t":"kill"}
//                 {"t":"end","name":"...","dir":"..."}   stops the group's agents of this host
//
// SIGTERM of the agent ends this host's part alone: the node gets SIGTERM, too, and hands the lead
// over.  SIGINT (crane-run --stop) is the end of the whole group, as `stop` is.
//
// INVARIANT AGENT-1  what was started ends only when it is told to (or by itself): an agent whose
//     connection is lost goes on in silence, so that neither the network to crane-run nor the
//     machine of crane-run is a point where the whole group fails.  Nothing goes on that was not
//     started.
// INVARIANT AGENT-2  the node ends (SIGTERM) when its agent does, however that dies.
// INVARIANT AGENT-3  what the remote shell started is a process before the agent, which ends as the
//     agent does, or when the connection is lost: no remote shell waits for a group that it has
//     nothing to do with.
// INVARIANT AGENT-4  a replica that an operator drained has no node until an operator brings it
//     back, or its group is started again (agent_socket.h).

namespace crane::launcher {

inline constexpr int kAgentProtocol = 2;

// Returns the process' exit status: 0, or that of the problem it reported.
int run_host_agent();

}  // namespace crane::launcher
