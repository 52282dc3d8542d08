// SPDX-License-Identifier: Apache-2.0
#pragma once
// What outlives the processes of a group that crane-run runs on this machine: the identity of its
// log on disk (--durability disk), and the content of its server's directories (--data).
//
//   <dir>/<name>/group.json      identity, and what the group was started with
//               /base/           the content that a new server begins with (checkpoint/base.h)
//               /store/, /member-<i>    logs on disk (consensus/store)
//               /restored       the group was made of a backup (consensus/member_mark.h)
//               /r<i>/upper      what replica i's server writes while it runs,
//               /r<i>/left       and the same when it has ended
//               /r<i>/position   how far it had come with that (checkpoint/position.h)
//               /r<i>/checkpoints
//
// With durability disk the log, and the checkpoints, say what became of the base: it stays as it is
// (LAST-1), and what a server left is of no value.  With durability memory the log ends with the
// group: at the next start what the replica that had come furthest has left becomes the base.
//
// Threads: one.
// INVARIANT LAST-1  The base of a group whose log is on disk is never replaced.
// INVARIANT LAST-2  What a server left is removed only when the base that was made of it is whole.

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
  Lasting(const Options& options, const setup::GroupDirectories& directories)
      : options_(options), directories_(directories) {}

  // After the group's directories were made and locked, before the first node starts.  Statuses:
  // kUsage, kDirectory, kDiskFull.
  Outcome open();

  const std::string& log_id() const { return log_id_; }
  const std::string& secret() const { return secret_; }
  // Whether the server's files are what the next start begins with.
  bool keeps_files() const { return !options_.data.empty() && !options_.on_disk(); }

 private:
  // What a replica's server left.
  struct Left {
    int replica;
    std::string root;  // of its files
    checkpoint::Position position;
    std::uint64_t digest = 0;
  };

  Outcome read();
  Outcome check_known() const;
  void take_surroundings() const;
  Outcome check_directories() const;
  Outcome await_servers() const;
  Outcome take_over();
  Outcome begin_with(const std::optional<Left>& best);
  std::vector<Left> find_left() const;
  std::optional<Left> choose(std::vector<Left> all) const;
  void say_whose(const Left& best, const std::vector<Left>& all) const;
  void say_what_changed() const;
  void remove_left() const;
  bool has_any(const std::string& name) const;
  Outcome write();

  std::string path(const std::string& name) const { return directories_.dir() + "/" + name; }
  std::string base() const { return path("base"); }

  const Options& options_;
  const setup::GroupDirectories& directories_;
  std::optional<KnownGroup> known_;
  std::vector<std::uint64_t> machines_;
  std::string log_id_, secret_;
};

// Of --data: absolute and without links; refused where a server cannot have lasting files.
Outcome resolve_data(std::vector<std::string>& directories, bool container);

}  // namespace crane::launcher
