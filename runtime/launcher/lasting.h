// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data of a group on this machine that outlive its processes: the identity of its log on disk
// (--durability disk), and the content of its server's directories (--data).
//
//   <dir>/<name>/group.json      identity, and the parameters of the group's start
//               /base/           the content that a new server begins with (checkpoint/base.h)
//               /store/, /member-<i>    logs on disk (consensus/store)
//               /restored       the group was restored from a backup (consensus/member_mark.h)
//               /r<i>/upper      files that replica i's server writes while it runs
//               /r<i>/left       the same files after the server has ended
//               /r<i>/position   the log position of these files (checkpoint/position.h)
//               /r<i>/checkpoints
//
// With durability disk, the log and the checkpoints contain all changes since the base.  The base
// never changes (LAST-1), and files that a server left are not needed.  With durability memory, the
// log ends with the group: at the next start, the files of the replica that was furthest ahead
// become the base.
//
// Threads: one.
// INVARIANT LAST-1  The base of a group whose log is on disk is never replaced.
// INVARIANT LAST-2  Files that a server left are removed only when the base made from them is
//                   complete.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/position.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/options.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {

class Lasting {
 public:
  explicit Lasting(const Options& options) : options_(options) {}

  // Checks that this start can continue with the data of the previous one.  Errors like open().
  // Without the group's lock this is a first look, which spares the logs of the previous run.
  Outcome check();
  // Prepares the lasting data for a start.  Fails with kUsage, kDirectory, kDiskFull, kGroupExists,
  // kOtherCommand.
  // REQUIRES: the group's directories exist and are locked; no node runs.
  Outcome open();

  const std::string& log_id() const { return log_id_; }
  const std::string& secret() const { return secret_; }
  // Whether the next start begins with the server's files.
  bool keeps_files() const { return !options_.data.empty() && !options_.on_disk(); }

 private:
  // The files that a replica's server left.
  struct Left {
    int replica;
    std::string root;  // directory of the files
    checkpoint::Position position;
    std::uint64_t digest = 0;
  };

  Outcome read();
  Outcome check_command() const;
  Outcome check_directories() const;
  Outcome await_servers() const;
  Outcome take_over();
  Outcome begin_with(const std::optional<Left>& best);
  std::vector<Left> find_left() const;
  std::optional<Left> choose(std::vector<Left> all) const;
  void report_source(const Left& best, const std::vector<Left>& all) const;
  void log_changes() const;
  void remove_left() const;
  bool has_any(const std::string& name) const;
  Outcome write();

  std::string path(const std::string& name) const { return home() + "/" + name; }
  // The directory of the group, also before it exists.
  std::string home() const { return setup::directory_of(options_.place()); }
  std::string base() const { return path("base"); }

  const Options& options_;
  std::optional<KnownGroup> known_;
  std::vector<std::uint64_t> machines_;
  std::string log_id_, secret_;
};

// Makes the directories of --data absolute and resolves links.  Fails with kUsage where a server
// cannot have lasting files.
Outcome resolve_data(std::vector<std::string>& directories, bool container);

}  // namespace crane::launcher
