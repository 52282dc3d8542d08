// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one replica's server: in an LXC container of its own, or as a plain process tree.
//
// A server must not outlive its node, whatever kills the node, and must leave nothing behind: no
// process, mount, cgroup or directory. So between the node and the server stands a *supervisor*, a
// small process in a mount namespace of its own: it prepares the root file system, starts the
// server, waits for it, and cleans up when the server ended, when destroy() was called or when the
// node is gone (the end of their socket says so). Mounts exist only in the supervisor's namespace,
// so even a killed supervisor leaves none, and takes the server with it (parent-death signals).
//
// Container (CRANE 5): overlay root file system (lower = the machine's /, and at /usr, /etc and the
// like the group's state of them; upper in the replica's directory, so a server writes to its own),
// fresh /run, own pid, uts, ipc, mount and network namespaces (the network holds only lo: bytes
// come through Crane), addresses not randomised (DESIGN D7: equal on all replicas). The server is
// its pid 1. PlainProcessTree: the same without a root file system of its own; with root privilege
// it still has own pid, uts, ipc and mount namespaces, without it is an ordinary process tree.
//
// A running server can be dumped (begin_checkpoint) and, with what was kept, recover in any
// container of any replica on a machine with the same files (begin_restore): CRIU does it, as a
// child of the supervisor. A dump leaves out the directories of ServerOptions::binds: the caller
// brings its own copy of them, with files of the same names and sizes.
//
// Threads: the node's one thread; start() forks, so the caller must be single-threaded.
// INVARIANT CONTAINER-1: after destroy(), or after the node died, no process of the server is left.
// INVARIANT CONTAINER-2: nothing is ever mounted in the caller's mount namespace.
// INVARIANT FILES-1: a server has its own /tmp and /var/tmp; it sees the machine's only where its
//                    command line names something there.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct Bind {
  std::string source;  // absolute path on this machine; must exist
  std::string target;  // absolute path as the server sees it; created when absent
  bool read_only = false;
};

struct ServerOptions {
  std::string name;                      // unique on this machine, e.g. "crane.web.r0"
  std::string host_name;                 // equal on all replicas
  std::string directory;                 // the replica's own; holds rootfs/, upper/, work/, logs
  std::vector<std::string> command;      // argv; argv[0] is an absolute path
  std::vector<std::string> environment;  // the whole environment, "NAME=value"
  std::vector<Bind> binds;
  std::string preload = {};  // a library that every program of the container loads; "": none
  // Created for the server before it starts: "/path", or "USER:/path" for one that is a user's.
  std::vector<std::string> make_directories;
  // Directories that are the server's own and begin empty, whatever the machine has there: what
  // others make in them would be seen by some replicas alone (FILES-1).  Modes are 01777.
  std::vector<std::string> own_directories;
  // The record of the group's state of the machine's files, which the overlay lies above, and which
  // generation of it (machine_files.h); "": the files as they are.
  std::string files_record = {};
  std::size_t files_generation = 0;
  std::string working_directory = "/";
  rlim_t descriptors = 0;     // the server's soft limit of them; 0: as the caller's
  int stdout_fd = -1;         // inherited by the server; -1: /dev/null
  int stderr_fd = -1;         // likewise
  int held_fd = -1;           // open in the supervisor until it has cleaned up; the caller's still
  bool keep_upper = false;    // keep the overlay's upper directory when the server is gone
  bool leaves_upper = false;  // likewise, but the next server begins without it
  std::string upper;          // a directory that the overlay's begins as a copy of; "": empty
  // The name may still belong to the supervisor of a node that was killed a moment ago: a return's
  // server waits for that one's end (kOldSupervisorMs at most), any other is refused.
  bool awaits_old_supervisor = false;
  // How long CRIU may say nothing while it dumps, or may restore; it is killed then.
  int criu_limit_ms = 60'000;
  // When a file of the server's was modified, by device and inode, in ns since 1970; false: its own
  // time counts.  Asked when the server is gone, by the supervisor; see keep_files().
  std::function<bool(std::uint64_t device, std::uint64_t inode, std::int64_t& ns)> modified;
};

// In us. Of a dump the five from `stopping` on follow each other, from the request to go on.
struct CheckpointTimes {
  std::int64_t starting = 0;  // dump: until CRIU is ready
  std::int64_t stopping = 0;  // dump: until no process runs any more
  std::int64_t dumping = 0;   // dump: until CRIU has written all
  std::int64_t copying = 0;   // of the overlay's upper directory
  std::int64_t waiting = 0;   // dump: for thaw()
  std::int64_t thawing = 0;   // dump: until they run again
  std::int64_t frozen = -1;   // dump: how long they did not run, as CRIU says; -1: it did not
  std::int64_t memory = -1;   // dump: of that, for their memory
  std::int64_t criu = 0;      // restore: CRIU as a whole
};

struct CriuCall;

class Server {
 public:
  explicit Server(ServerOptions options) : options_(std::move(options)) {}
  virtual ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns the host pid of the server's first process once it was started; -1: it had ended before
  // anybody saw it, and wait() tells how.
  // Errors: kDenied no root privilege; kUnsupported LXC is not installed; kBadArgument; kFull;
  // kExists a container of this name runs; kSystem. REQUIRES: not started before.
  Result<pid_t> start();
  // The same in two steps, for an event loop: begin() returns at once, event_fd() becomes readable
  // when started() has an answer (kBusy: none after `timeout_ms`; -1: wait).
  Outcome begin();
  Result<pid_t> started(int timeout_ms);

  // Dumps the server's processes into `images` and copies the overlay's upper directory to `upper`,
  // while nothing of it runs; then it goes on. Both are empty or do not exist yet. In steps, each
  // of which returns at once, while event_fd() becomes readable when there is something new:
  //   prepare_checkpoint()  CRIU starts, the server is not touched: prepared() or checkpointed()
  //   freeze()              the dump begins; no other process writes to the upper directory from
  //   here. In
  //                         a boost: if it takes long, no other process runs on the server's
  //                         processors
  //   thaw(well)            what the caller copies in the meantime is there, or is not to be had:
  //                         only now, and when all is dumped, the server goes on: checkpointed()
  //   cancel_checkpoint()   before freeze(): there is none, and no answer follows
  // kBusy: the last one is under way (also a moment after it was cancelled); kBadArgument;
  // kNotFound: the server is not running.
  Outcome prepare_checkpoint(const std::string& images, const std::string& upper);
  bool prepared() const noexcept { return dump_ == Dump::kPrepared; }
  Outcome freeze(bool boost);
  Outcome thaw(bool well);
  void cancel_checkpoint() noexcept;
  // The whole of it at once.
  Outcome begin_checkpoint(const std::string& images, const std::string& upper);
  // kBusy: no answer after `timeout_ms`; any other error: there is no checkpoint, and reason() says
  // why. What is in the two directories then is worthless.
  Result<CheckpointTimes> checkpointed(int timeout_ms);

  // Like begin(), but the server recovers from what begin_checkpoint() left: `upper` is copied.
  // Name, directory, and the sources of the binds may be others; their targets must be the same.
  // started() answers; when it is refused (kDamaged, kNotFound...) reason() says why.
  Outcome begin_restore(const std::string& images, const std::string& upper);
  const CheckpointTimes& restore_times() const noexcept { return restore_times_; }

  // One line about the last refusal, beyond its Error; may be empty.
  const std::string& reason() const noexcept { return reason_; }

  // Readable when an answer is there: the server has ended (or its supervisor died), can be dumped,
  // or was dumped. Then call wait(0), which takes every answer, and look at prepared() and
  // checkpointed(0). For the event loop. -1 before.
  int event_fd() const noexcept { return channel_; }

  // The server's status as wait(2) gives it. kBusy: it still runs after `timeout_ms` (-1: wait).
  Result<int> wait(int timeout_ms);

  // When the server is gone, by itself or not, its upper directory becomes `upper`, which does not
  // exist, each file with the time that ServerOptions::modified tells.  After wait() has told the
  // end, kept() says whether it is there.  Only before that.
  Outcome keep_files(const std::string& upper);
  const Error& kept() const noexcept { return keep_error_; }
  // Ends the server; wait() tells when it is gone, and nothing is cleaned up twice.
  Outcome end();

  // Sends a signal to the server's first process; SIGKILL ends the whole tree.
  void kill(int signo) noexcept;

  // Ends whatever still runs and cleans up; returns when nothing is left. Also after wait().
  Outcome destroy();

 protected:
  // Runs in the supervisor: prepares and starts the server, calls report_started(), waits.
  friend class ContainerSupervisor;
  virtual Outcome prepare() = 0;           // mounts, directories
  virtual Result<pid_t> launch() = 0;      // the direct child to wait for
  virtual Result<pid_t> find_first() = 0;  // host pid of the server's first process; kBusy: later
  virtual Result<int> server_status(int child_status) = 0;  // from the direct child's
  virtual void end_all() = 0;                               // SIGKILL to everything
  virtual void clean() = 0;                                 // undo prepare()

  // The same for dumps; kUnsupported unless a kind of server says otherwise.
  virtual Outcome prepare_restore();         // instead of prepare(): restore_ is set
  virtual Outcome describe(CriuCall& call);  // what of it is external, where its root is
  virtual std::string upper_directory() const { return ""; }
  // Moves it; no process uses the overlay any more.
  virtual Outcome move_upper(const std::string& to);

  ServerOptions options_;
  pid_t direct_child_ = -1;  // in the supervisor only
  pid_t first_ = -1;
  struct Kept {
    std::string images, upper;
  } restore_;  // begin_restore() was called when there is something in it

 private:
  Outcome fork_supervisor();
  bool take_report(int timeout_ms);

  Outcome begin_dump(int what, const std::string& images, const std::string& upper);
  Outcome ask(int what, bool boost = false, const std::string& images = "",
              const std::string& upper = "");

  enum class Dump { kNone, kPreparing, kPrepared, kUnderWay, kCancelled, kAnswered };
  Dump dump_ = Dump::kNone;
  Error dump_error_, keep_error_;
  CheckpointTimes dump_times_, restore_times_;
  std::string reason_;
  pid_t supervisor_ = -1;
  int channel_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

class Container final : public Server {
 public:
  using Server::Server;
  // Whether containers can run here: kDenied, kUnsupported, or done.
  static Outcome available();

 private:
  Outcome prepare() override;
  Result<pid_t> launch() override;
  Result<pid_t> find_first() override;
  Result<int> server_status(int child_status) override;
  void end_all() override;
  void clean() override;
  Outcome prepare_restore() override;
  Outcome describe(CriuCall& call) override;
  std::string upper_directory() const override;
  Outcome move_upper(const std::string& to) override;

  struct Verdict;
  struct Handle;
  [[noreturn]] void run_monitor();
  Outcome claim_name();
  Outcome prepare_place();
  Outcome make_own_directories();
  Outcome mount_root(const std::string& upper);
  Outcome mount_parts(const std::string& work);
  void unmount_parts();
  std::vector<Bind> all_binds() const;
  Outcome prepare_root();
  Outcome name_preload();
  void configure(Handle& handle);
  void remove_leftovers();
  std::string in_root(const std::string& path) const;

  Verdict* verdict_ = nullptr;  // shared by the supervisor and LXC's monitor
  Handle* handle_ = nullptr;    // the supervisor's view of the container
  std::vector<Bind> parts_;     // of the state of the machine's files, mounted here
  int claim_ = -1;              // of the name
  int null_ = -1;               // /dev/null as the server has it
  int network_ = -1;            // a restored server's network namespace
};

class PlainProcessTree final : public Server {
 public:
  using Server::Server;

 private:
  Outcome prepare() override;
  Result<pid_t> launch() override;
  Result<pid_t> find_first() override;
  Result<int> server_status(int child_status) override;
  void end_all() override;
  void clean() override;

  [[noreturn]] void run_server();
};

}  // namespace crane::checkpoint
