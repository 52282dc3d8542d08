// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places where tests kill a process (dmt/base/fault_point.h), and the hooks that do it.
//
// Threads: set the hook before other threads run.

#include <array>
#include <string>

#include "dmt/base/fault_point.h"

namespace crane::checkpoint {

// All names of fault points; tests try each.  Points of the checkpoint files:
inline constexpr std::array kFaultPoints = {
    "begin.made",        // the staging directory exists, not yet locked
    "publish.packing",   // before each part
    "publish.part",      // in the middle of a part: some of its bytes are written
    "publish.packed",    // all parts are on disk, no manifest
    "publish.manifest",  // the manifest is written
    "publish.renamed",   // published; the directory is not yet synced
    "publish.cleaning",  // published; the raw parts still exist
    "verify.checked",    // all parts are correct, the mark is not yet written
    "verify.mark",       // the mark is written, not yet renamed
    "unpack.part",       // before each part
    "unpack.unpacked",   // all is unpacked, under a temporary name
    "remove.renamed",    // not listed any more; all of its files exist
    "remove.removing",   // some of its files exist
    "ship.manifest",     // the other directory has the manifest
    "ship.bytes",        // after each piece of bytes
    "ship.verified",     // all has arrived and is verified, under a temporary name
    "ship.renamed",      // published there
};
// Points of a running replica, in its node and in its server's supervisor.
inline constexpr std::array kReplicaFaultPoints = {
    "take.preparing",   // node: the request to start CRIU is sent
    "take.held",        // node: before it stops giving the server entries of the log
    "take.resting",     // node: the server is quiescent; nothing is recorded
    "take.asked",       // node: the request to dump is sent
    "take.dumped",      // node: the dump is complete, the log is still held
    "take.released",    // node: the log continues, nothing is packed
    "dump.begun",       // supervisor: before it starts CRIU
    "dump.preparing",   // supervisor: CRIU has started
    "dump.running",     // supervisor: CRIU works, and dies with the supervisor
    "dump.done",        // supervisor: CRIU has ended, the node has no report
    "return.unpacked",  // node: its checkpoint is unpacked
    "return.asked",     // node: the request to restore is sent
    "return.running",   // node: the server runs, but has none of the log yet
    "restore.mounted",  // supervisor: the server's files are in place
    "restore.running",  // supervisor: CRIU runs, and dies with the supervisor
    "restore.done",     // supervisor: CRIU has ended, the node has no report
};

// A point at which a test waits: a server may end before its supervisor has seen it.
inline constexpr const char* kLaunched = "start.launched";

// Points of a node that ends its server and starts a new one on its files.
inline constexpr std::array kRestartFaultPoints = {
    "restart.noted",    // the server has ended for the log, but not for the kernel
    "restart.kept",     // it has ended, its files are kept; nothing is reset yet
    "restart.renewed",  // the segment is reset; no server runs, the log is held
    "restart.running",  // the new server runs, the files are not published
};

// Points of the log on disk, in a node: entries that checkpoints cover leave its store.
inline constexpr std::array kStoreFaultPoints = {
    "truncate.holds",     // before the node announces a checkpoint to the group
    "truncate.told",      // consensus knows the checkpoint
    "truncate.covered",   // the entry that announces it was handed out
    "truncate.cut",       // store's thread: a segment is closed, nothing is dropped
    "truncate.dropping",  // the store records its later beginning; all files exist
    "truncate.dropped",   // one of the files is removed
};

// Points of a checkpoint's transfer between hosts; the receiver also passes those of "ship".
inline constexpr std::array kTransferFaultPoints = {
    "send.asked",      // sender: a request came, no answer was sent
    "send.manifest",   // sender: the manifest is sent
    "send.piece",      // sender: after each piece of bytes
    "fetch.answered",  // receiver: it knows the others' checkpoints
    "fetch.agreed",    // receiver: the manifest fits, nothing is written
};

// Points of making a state of the machine's files (machine_files.h).
inline constexpr std::array kStateFaultPoints = {
    "state.linking",   // a directory of the tree exists, others do not
    "state.linked",    // the whole tree exists, without its list
    "state.list",      // the list is written, not yet renamed
    "state.listed",    // the state is complete, and in no record
    "state.again",     // the state was complete, but the machine has changed: it is made again
    "state.used",      // the group is registered as its user, without a record
    "state.noted",     // the record exists, unused states are not removed
    "state.renamed",   // an unused state has lost its name
    "state.removing",  // the process that removes it has begun
};

using crane::fault_hook;
using crane::fault_point;
using crane::FaultHook;

// For unit tests: sets a hook that kills this process when it passes a point for the n-th time.
// `spec` is "name" or "name:n", with a name from above.  False: `spec` is invalid.
bool die_at(const char* spec);

// For scenarios: sets a hook, in this process and its children.  If `directory` contains a file
// with the name of a point, the hook removes the file and kills the process that passes the point.
void die_at_marked_points(const std::string& directory);

}  // namespace crane::checkpoint
