// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log after a checkpoint: for `crane-ctl backup`, a replica of this machine copies it to a file
// below its directory; `crane-ctl restore` checks the copy in a backup.
//
// The copy contains at least the entries that the leader knew to be committed at the request, and
// so everything that clients were answered before.
//
// Threads: one.  Every function may block as long as replicas and disks do.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/descriptor.h"
#include "consensus/log_tail.h"
#include "runtime/launcher/ctl/archives.h"

namespace crane::launcher {

// The highest index that the leader of the newest view, or another node that answers, knows to be
// committed.  No client got an answer for a later entry before this request.  0: no replica leads
// now, or the leader does not answer.
std::uint64_t committed_at_least(const std::map<int, NodeAnswer>& all);
// Replicas that can copy the log, in this order: `preferred` if it follows, other followers, the
// leader.
std::vector<int> able_to_copy(const std::map<int, NodeAnswer>& all, int preferred);

// The destructor removes the file.
class LogCopy {
 public:
  LogCopy() = default;
  ~LogCopy();
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;

  // Copies the log `log_id` from the checkpoint on.  Returns 0, or the exit status after a message.
  // Sets `gone`, without a message, if the log was cut after the checkpoint: then there is a newer
  // checkpoint.
  int take(const Request& request, const Source& source, const std::string& log_id, bool& gone);

  const std::string& path() const { return path_; }  // empty: no file
  const consensus::LogTail& tail() const { return tail_; }

 private:
  int make_file(const std::string& home, int replica);
  int ask(const Request& request, const Source& source, int replica, std::uint64_t through,
          std::string& why, bool& gone);
  Outcome check(const Source& source, const std::string& log_id);
  void remove();

  std::string path_;
  checkpoint::Descriptor fd_;  // locked, so that no other crane-ctl removes the file
  consensus::LogTail tail_;
};

// Checks that the file `path`, from the archive `file`, is the log after the checkpoint: of the log
// `log_id`, complete, and as long as the archive's header states.
Outcome check_tail(const std::string& path, const std::string& file, const About& about,
                   const checkpoint::Manifest& checkpoint, const std::string& log_id);

// Checks that this build can replay the archive's entries.  Fails with kWrongVersion.
Outcome check_versions(const About& about, const std::string& file);

}  // namespace crane::launcher
