// SPDX-License-Identifier: Apache-2.0
#pragma once
// The common parts of `crane-ctl data` and `crane-ctl backup`: the header of an archive, the
// checkpoint that the archive is made from, and the directory of a new group.
//
// Threads: one.  Every function may block as long as the disk does.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/archive.h"
#include "checkpoint/content.h"
#include "checkpoint/image.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/setup/progress_line.h"

namespace crane::launcher {

// The name of the archive's first member, which also identifies the format.
inline constexpr char kExportHead[] = "crane-export.json", kBackupHead[] = "crane-backup.json";

struct About {
  std::string group;
  std::uint64_t view = 0, index = 0;  // the checkpoint's place in the log
  int replica = -1;                   // the replica that took the checkpoint
  std::int64_t time = 0;              // time of the checkpoint, seconds since 1970
  std::string tier;                   // criu, restart
  std::vector<std::string> data;      // the server's lasting directories, sorted
  std::string durability;             // memory, disk; backups only
  std::string program, crane, libcrane, kernel;
  std::string command;  // backups only: crane-run's command line
  // Backups only: index of the last log entry in the archive (0: it has no log), and the versions
  // that the entries need (dmt/base/versions.h).
  std::uint64_t last = 0;
  std::map<std::string, std::uint32_t> versions;
  bool has_log() const { return last != 0; }
  std::string digest;  // of the rest of the archive (ContentDigest)
};
About about_of(const checkpoint::Listed& listed, std::vector<std::string> data);
std::string text_of(const About& about, const char* head);
// Parses a header.  Its names are safe to use as paths: none leads out of its directory.  Fails
// with kDamaged or kWrongVersion; `path` appears in the message.
Result<About> parse_about(const std::string& text, const char* head, const std::string& path);

// A command line of crane-run, as command_text() writes it, with `--dir DIR` in place of its own
// --dir; `dir` empty: without --dir.
std::string with_dir(const std::string& command, const std::string& dir);

// Reads the header of an archive.  Fails with kBadArgument if this is no such archive.
Result<About> read_about(checkpoint::ArchiveReader& reader, const char* head,
                         const std::string& path);

// Prints an error and returns crane-ctl's exit status for it.
int print_error(const Error& error);

// A checkpoint that a replica of this machine has taken; it cannot be removed while `held` is open.
struct Source {
  std::string group;
  std::string place;  // directory that holds the checkpoint
  checkpoint::Listed listed;
  checkpoint::Descriptor held;
  bool read_back = false;         // all of it was read and is undamaged
  std::vector<std::string> data;  // the group's lasting directories
};
// Requests a checkpoint of the chosen group and waits until it is published.  Returns 0, or the
// exit status after a message.  Prints progress on standard error: standard output may be the
// archive.
enum class Data { kNeeded, kIfAny };
int take_source(const Request& request, Source& source, Data data);
// Finds the newest checkpoint of the log `log_id` on this machine that is undamaged when all of it
// is read and that this build can restore.  Waits for a checkpoint that a replica is taking.  If
// there is none, does the same as take_source().
int newest_source(const Request& request, Source& source, Data data, const std::string& log_id);
// Sends the lasting directories to `sink`, one tree each, and shows how far that is: "STEP: 35 %".
// Returns the number of sockets left out.  Fails with kDamaged, also if a directory is missing.
Result<std::uint64_t> send_data(const Source& source, checkpoint::TreeSink& sink,
                                const std::string& step);

// Passes trees on, and shows on standard error how far that is.
class ShownSink {
 public:
  // `of`: bytes of all files.
  ShownSink(const std::string& step, std::uint64_t of, checkpoint::TreeSink& to);
  // Trees that are read from the archive `fd`: its position shows how far.
  ShownSink(const std::string& step, int fd, checkpoint::TreeSink& to);
  ShownSink(const ShownSink&) = delete;
  ShownSink& operator=(const ShownSink&) = delete;
  operator checkpoint::TreeSink&() noexcept { return sink_; }

 private:
  setup::ProgressLine line_;
  const checkpoint::OnBytes on_bytes_;
  checkpoint::CountingSink sink_;
};

// Reads all of a checkpoint, and shows how far that is.
Outcome verify(const std::string& place, const std::string& name);

// <dir>/.NAME.new-PID, which becomes <dir>/NAME when it is complete and is removed otherwise.
// begin() removes such directories of the same NAME that killed processes left.
class NewDirectory {
 public:
  explicit NewDirectory(const std::string& path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Fails with kExists if the name is in use.
  Outcome begin();
  const std::string& path() const noexcept { return fresh_; }
  // Gives the directory its name, and syncs it.
  Outcome name_it();

 private:
  void remove_dead() const;

  const std::string path_, parent_, prefix_, fresh_;
  checkpoint::Descriptor lock_;
  bool begun_ = false;
};
// Checks whether a file or directory can be created.  Returns 0, or the exit status after a
// message.
int check_new_file(const std::string& path);
// Sets `home` to the directory of a new group, in --dir or else where groups with lasting data are,
// and checks that it can be created.  Returns 0, or the exit status after a message.
int check_new_group(const Request& request, const std::string& name, std::string& home);

// Digests of the present content of the machine's own directories, for group.json.
std::vector<std::uint64_t> digests_of_machine(const std::vector<std::string>& data);

}  // namespace crane::launcher
