// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine's files that a group reads: one state of them for all its replicas on this machine,
// from the group's beginning until crane-ctl upgrade takes a newer one.  So installing a package
// meanwhile changes the machine, but neither a running server's files nor a recovering one's.
//
// A state has two parts.  /usr and /opt (and /bin, /lib and the like if they are directories) are a
// tree of hard links (link_tree.h).  /etc is a copy, because people and programs write its files in
// place.  The server reads the rest (/var, /home, /srv, ..) from the machine, or it is given with
// --data.  The states are in a store of this machine, which groups share and only root can enter:
//
//   <place>/usr-N/{usr,opt}   <place>/usr-N.list    its directories, and their times
//   <place>/etc-N/etc         <place>/etc-N.list    a digest
//   <place>/users/<crc>       a link to the record of a group
//
// A part is current while none of its directories has gained or lost a name on the machine.  So a
// start costs a look at each directory if there is a state, and the time of linking if there is
// none.  The next start of a group removes states that are neither current nor in a group's record.
//
// A group's record is a text file: line N contains the state of the group's generation N of files.
//
// Threads: plain functions, which may block for as long as the disk does.  Processes: a lock of the
// store admits one at a time.
// INVARIANT FILES-2  All replicas of a group on one machine have one state of its files at each
//                    entry of the log.
// INVARIANT FILES-3  A state in the record of a group is not removed while the record exists.
// INVARIANT FILES-4  A part is used only with its list, which it gets last and loses first.  So the
//                    parts that killed processes leave have no list, and are never used.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// The state of a group for which no state can be kept: it reads the machine's current files.
inline constexpr char kLiveFiles[] = "live";

// The directories of a state that this machine has: "/usr", "/etc", ..
std::vector<std::string> parts_of_state(const std::string& machine = "/");

struct GroupFiles {
  std::string state;                // as in the record; kLiveFiles
  std::vector<std::string> layers;  // directories that replace the machine's
  std::size_t made_names = 0;       // in the part that was made now; 0: it existed
  bool newest = false;              // it was compared with the machine in this call
  bool lost = false;                // the recorded state is gone: this is the newest one
  std::string why_live;             // the reason of kLiveFiles
};

// The store's directory for the machine below `machine`, on the file system of its /usr.
// kUnsupported: there can be none; the sentence contains why.
Result<std::string> place_of_files(const std::string& machine = "/");

// Returns the state of `generation` in `record`.  If the record has no such line, adds one with the
// newest state, or with kLiveFiles if no state can be made.  `machine` is "/" except in tests.
// Errors: those of the record's disk.
Result<GroupFiles> ensure_files(const std::string& record, std::size_t generation,
                                const std::string& machine = "/");
// Returns the files of a generation, without changes on disk. kNotFound: the record does not have
// it.
Result<GroupFiles> recorded_files(const std::string& record, std::size_t generation,
                                  const std::string& machine = "/");
// Adds the newest state as one more generation of `record`, for an upgrade.  If it is the state of
// generation `now`, returns that one instead.  A generation never changes, so a replica that
// replays the log finds at each upgrade the same files as the others.
struct NextFiles {
  std::size_t generation = 0;
  GroupFiles files;
};
Result<NextFiles> next_files(const std::string& record, std::size_t now,
                             const std::string& machine = "/");
// Names that only one of two states has, or that are different files in them; at most `most` of
// each.
struct ChangedFiles {
  std::vector<std::string> changed, added, removed;
  std::size_t all = 0;  // number of all three
};
ChangedFiles compare_files(const GroupFiles& before, const GroupFiles& after, std::size_t most);
// Whether this state still matches the machine's files.
bool is_current(const GroupFiles& files, const std::string& machine = "/");
// Regular files of the state that were written in place after it was made: at most `most`.
std::vector<std::string> written_in_place(const GroupFiles& files, std::size_t most);

// The path on this machine of a server's file; follows symbolic links as the server does.
std::string located(const GroupFiles& files, const std::string& path);

}  // namespace crane::checkpoint
