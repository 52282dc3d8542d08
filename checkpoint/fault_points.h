// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named places where a test kills the process, to see what is found afterwards.  In production no
// hook is set, and a place costs one load.
//
// Threads: the hook is set before others run.

#include <array>

namespace crane::checkpoint {

// Every name that fault_point() is called with; tests walk through them all.
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

using FaultHook = void (*)(const char* name);
extern FaultHook fault_hook;  // null: none

inline void fault_point(const char* name) {
  if (fault_hook != nullptr) fault_hook(name);
}

// For stories: a hook that kills this process at the n-th time the place is passed, if `spec` is
// "name" or "name:n" with a name from above.  False: it is neither.
bool die_at(const char* spec);

}  // namespace crane::checkpoint
