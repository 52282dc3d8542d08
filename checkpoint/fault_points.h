// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places where tests kill a process (dmt/base/fault_point.h), and how.
//
// Threads: the hook is set before others run.

#include <array>
#include <string>

#include "dmt/base/fault_point.h"

namespace crane::checkpoint {

// Every name that fault_point() is called with; tests walk through them all.  Those of the files:
inline constexpr std::array kFaultPoints = {
    "begin.made",        // the staging directory is there, not yet locked
    "publish.packing",   // before each part
    "publish.part",      // in the middle of one: some of its bytes are written
    "publish.packed",    // all parts are on disk, no manifest
    "publish.manifest",  // the manifest is there
    "publish.renamed",   // published; the directory is not yet synced
    "publish.cleaning",  // published; the raw parts are still there
    "verify.checked",    // all is well, the mark is not yet written
    "verify.mark",       // the mark is written, not yet in its place
    "unpack.part",       // before each part
    "unpack.unpacked",   // all is there, under the wrong name
    "remove.renamed",    // out of the list, all of its files still there
    "remove.removing",   // some of them
    "ship.manifest",     // the other directory has the manifest
    "ship.bytes",        // after each piece of bytes
    "ship.verified",     // all is there and verified, under the wrong name
    "ship.renamed",      // published there
};
// And those of a running replica, in its node and in its server's supervisor.
inline constexpr std::array kReplicaFaultPoints = {
    "take.preparing",   // node: the supervisor is to start CRIU
    "take.held",        // node: the log is to be held
    "take.resting",     // node: quiescent; nothing was noted
    "take.asked",       // node: the dump is to be made
    "take.dumped",      // node: the dump is there, the log is still held
    "take.released",    // node: the log goes on, nothing is packed
    "dump.begun",       // supervisor: CRIU is to be started
    "dump.preparing",   // supervisor: it was started
    "dump.running",     // supervisor: it works, and is killed with us
    "dump.done",        // supervisor: it has ended, the node does not know
    "return.unpacked",  // node: what it recovers from is unpacked
    "return.asked",     // node: the supervisor is to bring the server back
    "return.running",   // node: the server runs, and has none of the log yet
    "restore.mounted",  // supervisor: its files are in place
    "restore.running",  // supervisor: CRIU runs, and is killed with us
    "restore.done",     // supervisor: CRIU has ended, the node does not know
};

// And one at which a test waits: a server may end before its supervisor has seen it.
inline constexpr const char* kLaunched = "start.launched";

// And those of a node that ends its server and starts another one on its files.
inline constexpr std::array kRestartFaultPoints = {
    "restart.noted",    // it is over for the log, and not for the kernel
    "restart.kept",     // it has ended, its files are kept; nothing is as new yet
    "restart.renewed",  // the segment is as new; no server runs, the log is held
    "restart.running",  // another one runs, the files are not published
};

// And those of the log on disk, in a node: what checkpoints cover leaves its store.
inline constexpr std::array kStoreFaultPoints = {
    "truncate.holds",     // the group is to be told of a checkpoint
    "truncate.told",      // consensus knows it
    "truncate.covered",   // the entry that says so was handed out
    "truncate.cut",       // store's thread: a segment was closed, nothing is dropped
    "truncate.dropping",  // the store says that it begins later, its files are there
    "truncate.dropped",   // one of them is gone
};

// And those of a checkpoint that travels between hosts; what arrives passes those of "ship", too.
inline constexpr std::array kTransferFaultPoints = {
    "send.asked",      // sender: somebody asks, nothing is said
    "send.manifest",   // sender: its manifest is on the way
    "send.piece",      // sender: after each piece of bytes
    "fetch.answered",  // receiver: it knows what the others have
    "fetch.agreed",    // receiver: the manifest is what it wants, nothing is written
};

// And those of a state of the machine's files that is made (machine_files.h).
inline constexpr std::array kStateFaultPoints = {
    "state.linking",   // a directory of the tree is there, others are not
    "state.linked",    // the whole tree, without its list
    "state.list",      // the list is written, not yet in its place
    "state.listed",    // it is whole, and in no record
    "state.again",     // it was whole, and is to be made again: the machine has changed meanwhile
    "state.used",      // the group is known as its user, without a record
    "state.noted",     // the record is there, what is not used is not removed
    "state.renamed",   // one that is not used has lost its name
    "state.removing",  // the process that removes one has begun
};

using crane::fault_hook;
using crane::fault_point;
using crane::FaultHook;

// For unit tests: a hook that kills this process at the n-th time the place is passed, if `spec` is
// "name" or "name:n" with a name from above.  False: it is neither.
bool die_at(const char* spec);

// For scenarios: a hook, in this process and its children, that kills whoever passes a place of
// which `directory` holds a file of that name, and removes the file.
void die_where_told(const std::string& directory);

}  // namespace crane::checkpoint
