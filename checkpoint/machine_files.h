// SPDX-License-Identifier: Apache-2.0
#pragma once
// The machine's files that a group reads: one state of them for all its replicas on this machine,
// from the group's beginning until crane-ctl upgrade takes a newer one.  A package that is
// installed meanwhile changes the machine, and not what a server, or the one that recovers, finds.
//
// A state has two parts.  /usr and /opt (and /bin, /lib and the like where they are directories)
// are a tree of hard links (link_tree.h); /etc, which people and programs write in place, is a
// copy. The rest (/var, /home, /srv, ..) is read as it is, or given with --data.  States lie in a
// store of this machine that groups share, and that only root can enter:
//
//   <place>/usr-N/{usr,opt}   <place>/usr-N.list    the directories of it, and their times
//   <place>/etc-N/etc         <place>/etc-N.list    a digest
//   <place>/users/<crc>       a link to the record of a group
//
// A part is current as long as no directory of it has got or lost a name on the machine, so a start
// costs a look at each directory where a state is there, and the time of linking where it is not.
// The next start of a group removes a state that is neither current nor in a group's record.
//
// A group's record is a file of lines: line N names the state that its generation N of files is.
//
// Threads: plain functions, which may block for as long as the disk does.  Processes: a lock of the
// store lets one in at a time.
// INVARIANT FILES-2  All replicas of a group on one machine have one state of its files at each
//                    entry of the log.
// So is what a process that was killed has left: a part without its list, which is never used.
// INVARIANT FILES-3  A state in the record of a group is not removed while the record is there.
// INVARIANT FILES-4  A part is used only with its list, which it gets last and loses first.

#include <cstdint>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

// What a group reads where states cannot be kept: the files as they are.
inline constexpr char kLiveFiles[] = "live";

// The directories that a state has, of those that this machine has: "/usr", "/etc", ..
std::vector<std::string> parts_of_state(const std::string& machine = "/");

struct GroupFiles {
  std::string state;                // of its record; kLiveFiles
  std::vector<std::string> layers;  // each a directory whose own stand for those of the machine
  std::size_t made_names = 0;       // of the part that was made for it; 0: it was there
  bool newest = false;              // it was compared with the machine just now
  bool lost = false;                // the state in the record is gone: this is the newest
  std::string why_live;             // kLiveFiles: why
};

// Where states of the machine below `machine` lie, on the file system of its /usr.  kUnsupported:
// nowhere, and why.
Result<std::string> place_of_files(const std::string& machine = "/");

// The state of `generation` in `record`, which is made with the newest state where it has no such
// line, or with kLiveFiles where none can be made; `machine` is "/" but in tests.  Errors: those of
// the record's disk.
Result<GroupFiles> hold_files(const std::string& record, std::size_t generation,
                              const std::string& machine = "/");
// The same without making anything: kNotFound where the record has no such line.
Result<GroupFiles> held_files(const std::string& record, std::size_t generation,
                              const std::string& machine = "/");
// The newest state as one more generation of `record`, for an upgrade; none is made where it is
// that of generation `now`, which is given then.  Generations are not used twice: a replica that
// runs the log again finds at each upgrade what the others found.
struct NextFiles {
  std::size_t generation = 0;
  GroupFiles files;
};
Result<NextFiles> next_files(const std::string& record, std::size_t now,
                             const std::string& machine = "/");
// Names that two states do not share, or that are other files in them; at most `most` of each.
struct ChangedFiles {
  std::vector<std::string> changed, added, removed;
  std::size_t all = 0;  // of the three together
};
ChangedFiles compare_files(const GroupFiles& before, const GroupFiles& after, std::size_t most);
// Whether the machine's files are still those of this state.
bool is_current(const GroupFiles& files, const std::string& machine = "/");
// Regular files of the state that were written in place after it was made: at most `most`.
std::vector<std::string> written_in_place(const GroupFiles& files, std::size_t most);

// Where a file of the server's lies on this machine, links followed as the server follows them.
std::string located(const GroupFiles& files, const std::string& path);

}  // namespace crane::checkpoint
