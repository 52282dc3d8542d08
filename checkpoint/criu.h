// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRIU as a program: finds it, calls it, explains its refusals, reads its times.
//
// A dump is a conversation (`criu swrk`, CRIU's RPC). CRIU starts and probes the kernel, which
// takes as long as the dump. It reports that it is ready, and touches the server only after the
// answer. It also reports, and waits for an answer, when all processes are paused, and when all is
// dumped and nothing runs yet. A restore is one call of the program.
//
// A supervisor (container_supervisor.h) runs CRIU as a child, for a server whose processes all have
// their own namespaces. CRIU stores no content of *external* resources, which belong to the
// machine. It records that the server had one, and gets a replacement when the server recovers.
//   mounts    the directories bound into the container, identified by the server's path
//   network   the namespace contains only lo, so a new one will do; nothing of it is dumped
//   files     standard input, output and error; their keys are among the images (crane.stdio)
// Control groups are not dumped: a restored server is in its supervisor's.
//
// Threads: any; start_criu() forks, so its caller must be single-threaded.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/container.h"
#include "dmt/base/result.h"

namespace crane::checkpoint {

// Where get_criu.sh puts a CRIU for installed programs.
inline constexpr char kFetchedCriu[] = "/var/lib/crane-criu";
// The program to run: the environment's CRANE_CRIU, else criu/criu beside the running program (in a
// build tree), else the fetched one, else "criu" in PATH. kNotFound: there is none.
Result<std::string> find_criu();
// The version that `criu --version` prints, e.g. "4.1.1". kSystem: it does not run.
Result<std::string> criu_version(const std::string& program);

struct CriuCall {
  enum class Kind { kDump, kRestore } kind = Kind::kDump;
  pid_t first = -1;    // dump: the server's first process
  std::string root;    // restore: where the server's root is mounted
  std::string images;  // directory; exists
  std::string work;    // directory for the log and the like; exists
  std::vector<std::string> externals;
  struct Inherited {
    int fd;
    std::string key;
  };
  std::vector<Inherited> inherited;  // restore: the replacements of external files
};

// Starts CRIU as a child in a new process group; it dies with the caller. `channel`: for a dump,
// the child's end of the conversation.
Result<pid_t> start_criu(const std::string& program, const CriuCall& call, int channel = -1);

// The first message of the conversation, which requests a dump. `images`, `work`: the call's
// directories; the caller keeps them open until CRIU's first message.
std::string dump_request(const CriuCall& call, int images, int work);
// A message from CRIU.
struct CriuMessage {
  enum class What {
    kReady,    // CRIU has started, and has touched nothing yet
    kStopped,  // no process of the server runs
    kDumped,   // all is dumped, nothing runs yet
    kOther,    // another notification, to be answered
    kDone,     // the server continues; CRIU expects no answer
    kRefused,  // there is no dump; CRIU expects no answer
  } what;
};
CriuMessage parse_criu_message(std::string_view message);
// The answer to the first four.
std::string criu_answer(bool go_on);

// The reason of CRIU's failure, in one line, for a user. Never empty.
std::string criu_refusal(const std::string& work);
// True if criu_refusal()'s text of a dump means that CRIU cannot dump this kind of server, so that
// the next dump will fail, too.
bool is_lasting(std::string_view refusal);
// CRIU's own measurements, in us; -1: missing.
struct CriuStats {
  std::int64_t stopping = -1;  // dump: until no process ran
  std::int64_t frozen = -1;    // dump: from there until they ran again
  std::int64_t memory = -1;    // dump: the part of that for copying their memory to the images
  std::int64_t forking = -1;   // restore: until all processes existed
  std::int64_t restore = -1;   // restore: in total
};
CriuStats criu_stats(const std::string& work);

// The key of an external open file: mount and inode of a file or device, number of a pipe. "": a
// kind of file that cannot be replaced.
std::string external_key(int fd);

}  // namespace crane::checkpoint
