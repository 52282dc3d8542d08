// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log behind a checkpoint, which a replica of this machine copies into a file below its
// directory, for `crane-ctl backup`; and the same in a backup that is restored.
//
// The copy reaches at least as far as the leader knew the log to be committed when it was asked
// for: what a client was answered before is in it.
//
// Threads: one.  All of this may block for as long as replicas and disks do.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/descriptor.h"
#include "consensus/log_tail.h"
#include "runtime/launcher/ctl/archives.h"

namespace crane::launcher {

// What the leader of the newest view, and whoever else answers, knows to be committed: no client
// was answered behind that before they were asked.  0: none leads now, or it does not answer.
std::uint64_t committed_at_least(const std::map<int, NodeAnswer>& all);
// Those that can copy the log, in order: followers, of these `preferred` first, then the leader.
std::vector<int> able_to_copy(const std::map<int, NodeAnswer>& all, int preferred);

// Its file is gone with it.
class LogCopy {
 public:
  LogCopy() = default;
  ~LogCopy();
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;

  // Of the log `log_id`, behind the checkpoint; 0, or the exit status after a message.  `gone`, and
  // no message: the log was cut behind the checkpoint, so there is a newer one.
  int take(const Request& request, const Source& source, const std::string& log_id, bool& gone);

  const std::string& path() const { return path_; }  // empty: there is none
  const consensus::LogTail& tail() const { return tail_; }

 private:
  int make_file(const std::string& home, int replica);
  int ask(const Request& request, const Source& source, int replica, std::uint64_t through,
          std::string& why, bool& gone);
  Outcome check(const Source& source, const std::string& log_id);
  void remove();

  std::string path_;
  checkpoint::Descriptor fd_;  // locked: while it is, no other crane-ctl removes the file
  consensus::LogTail tail_;
};

// Whether the tail in the file `path`, out of the archive `file`, is the one behind the checkpoint:
// of that log, whole, and as long as the archive says.
Outcome check_tail(const std::string& path, const std::string& file, const About& about,
                   const checkpoint::Manifest& checkpoint, const std::string& log_id);

// Whether this build can run the entries of that one again.  kWrongVersion.
Outcome check_versions(const About& about, const std::string& file);

}  // namespace crane::launcher
