// SPDX-License-Identifier: Apache-2.0
#pragma once
// CRIU as a program: where it is, how it is called, why it refused, how long it took.
//
// A dump is a conversation (`criu swrk`, CRIU's RPC): CRIU starts, probes the kernel, which takes
// as long as the dump itself, says that it is ready, and touches the server only when it is told to
// go on. It says, and waits for an answer, when all processes are paused, and when all is dumped
// and nothing runs yet. A restore is one call of the program.
//
// A supervisor (container_supervisor.h) runs it as a child, for a server whose processes all live
// in namespaces of their own. CRIU keeps no content of what is *external*, which is the machine's:
// it notes that the server had one, and gets another one when the server recovers.
//   mounts    the directories bound into the container, by the path the server sees
//   network   the namespace holds only lo, so a new one does; nothing of it is dumped
//   files     standard input, output and error; their keys are kept among the images (crane.stdio)
// Control groups are not dumped: a restored server lives in its supervisor's.
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
// The program to run: the environment's CRANE_CRIU, else criu/criu beside the running program (of a
// build tree), else the fetched one, else "criu" of PATH. kNotFound: there is none.
Result<std::string> find_criu();
// As `criu --version` says it, e.g. "4.1.1". kSystem: it does not run.
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
  std::vector<Inherited> inherited;  // restore: what takes the place of an external file
};

// Its child, in a process group of its own; dies with the caller. `channel`: for a dump, the end of
// the conversation that becomes the child's.
Result<pid_t> start_criu(const std::string& program, const CriuCall& call, int channel = -1);

// What a dump is asked for with, the first message of the conversation. `images`, `work`: the
// call's directories, opened by the caller, and open until CRIU has said something.
std::string dump_request(const CriuCall& call, int images, int work);
// What CRIU says, a message of its own each.
struct CriuMessage {
  enum class What {
    kReady,    // it has started, and nothing was touched yet
    kStopped,  // no process of the server runs
    kDumped,   // all is dumped, nothing runs yet
    kOther,    // something that does not matter
    kDone,     // the server goes on; no answer is waited for
    kRefused,  // likewise: there is no dump
  } what;
};
CriuMessage parse_criu_message(std::string_view message);
// The answer to the first four.
std::string criu_answer(bool go_on);

// After it ended with an error: why, in one line, for people. Never empty.
std::string criu_refusal(const std::string& work);
// Of what criu_refusal() said of a dump: the server is of a kind that CRIU does not dump, so that
// the next one will be refused as well.
bool is_lasting(std::string_view refusal);
// What CRIU itself measured, in us; -1: it did not say.
struct CriuStats {
  std::int64_t stopping = -1;  // dump: until no process ran any more
  std::int64_t frozen = -1;    // dump: from there until they ran again
  std::int64_t memory = -1;    // dump: of that, reading their memory and writing it to the images
  std::int64_t forking = -1;   // restore: until all processes were there
  std::int64_t restore = -1;   // restore: as a whole
};
CriuStats criu_stats(const std::string& work);

// The key of an open file that is not the server's own: a file or device by its mount and inode, a
// pipe by its number. "": a kind of file that nothing can take the place of.
std::string external_key(int fd);

}  // namespace crane::checkpoint
