// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `crane-ctl data` and `crane-ctl backup` have in common: what a file says of itself, the
// checkpoint that it is made of, and the directory of a group that comes into being.
//
// Threads: one.  All of this may block for as long as the disk does.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/archive.h"
#include "checkpoint/content.h"
#include "checkpoint/image.h"
#include "runtime/launcher/ctl/ctl.h"

namespace crane::launcher {

// The first member of the archive, and its format's name.
inline constexpr char kExportHead[] = "crane-export.json", kBackupHead[] = "crane-backup.json";

struct About {
  std::string group;
  std::uint64_t view = 0, index = 0;  // of the log: view counter and index
  int replica = -1;                   // whose checkpoint it is made of
  std::int64_t time = 0;              // of that, seconds since 1970
  std::string tier;                   // criu, restart
  std::vector<std::string> data;      // the server's lasting directories, sorted
  std::string durability;             // memory, disk; of a backup
  std::string program, crane, libcrane, kernel;
  std::string command;  // of a backup: crane-run's, as it was typed
  // Of a backup with the log behind the checkpoint: index of the log's last entry in it, 0: it has
  // none; and what the entries need (dmt/base/versions.h).
  std::uint64_t last = 0;
  std::map<std::string, std::uint32_t> versions;
  bool has_log() const { return last != 0; }
  std::string digest;  // of all that follows in the archive (ContentDigest)
};
About about_of(const checkpoint::Listed& listed, std::vector<std::string> data);
std::string text_of(const About& about, const char* head);
// Names in it become paths: none leads out of where it belongs.  kDamaged, kWrongVersion; `path` is
// for the sentence.
Result<About> parse_about(const std::string& text, const char* head, const std::string& path);

// The beginning of an archive.  kBadArgument: it is no such archive.
Result<About> read_about(checkpoint::ArchiveReader& reader, const char* head,
                         const std::string& path);

// crane-ctl's exit status for an error, which was said.
int say_error(const Error& error);

// A checkpoint that a replica of this machine has taken.  Nothing removes it meanwhile.
struct Source {
  std::string group;
  std::string place;  // directory of the checkpoints
  checkpoint::Listed listed;
  checkpoint::Descriptor held;
  bool read_back = false;         // all of it was read, and is well
  std::vector<std::string> data;  // the group's lasting directories
};
// Asks for one of the one group that is meant, and waits until it is published; 0, or the exit
// status after a message.  What goes on is said on standard error: standard output may be the
// archive.
enum class Data { kNeeded, kIfAny };
int take_source(const Request& request, Source& source, Data data);
// The newest one of the log `log_id` that the group keeps on this machine, that is well when all of
// it is read, and that this build can restore; one that a replica is making is waited for.  As
// take_source() when there is none.
int newest_source(const Request& request, Source& source, Data data, const std::string& log_id);
// Tells `sink` of the lasting directories, one tree each; how many sockets were left out.
// kDamaged: also when one of them is not there.
Result<std::uint64_t> tell_data(const Source& source, checkpoint::TreeSink& sink);

// <dir>/.NAME.new-PID, which becomes <dir>/NAME when it is whole, and goes otherwise.  What killed
// processes left of the same NAME goes at the beginning.
class NewDirectory {
 public:
  explicit NewDirectory(const std::string& path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // kExists: something has the name already.
  Outcome begin();
  const std::string& path() const noexcept { return fresh_; }
  // Synced.
  Outcome name_it();

 private:
  void remove_dead() const;

  const std::string path_, parent_, prefix_, fresh_;
  checkpoint::Descriptor lock_;
  bool begun_ = false;
};
// Whether a file or directory may be made; 0, or the exit status after a message.
int check_new_file(const std::string& path);
// That of a group that is to come into being; 0, or the exit status after a message.  Where:
// --dir, else where groups that last are.
int check_new_group(const Request& request, const std::string& name, std::string& home);

// Digests of the machine's own directories, for group.json: what they hold now is known.
std::vector<std::uint64_t> digests_of_machine(const std::vector<std::string>& data);

}  // namespace crane::launcher
