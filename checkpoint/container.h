// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one replica's server, in an LXC container or as a plain process tree.
//
// A server must not outlive its node, whatever kills the node, and must leave nothing behind: no
// process, mount, cgroup or directory. So a *supervisor* runs between the node and the server: a
// small process in its own mount namespace. It prepares the root file system, starts the server,
// waits for it, and cleans up when the server ends, when destroy() is called or when the node is
// gone (it sees the end of their socket). Mounts exist only in the supervisor's namespace. So even
// a killed supervisor leaves none, and takes the server with it (parent-death signals).
//
// Container (CRANE 5): an overlay root file system, a fresh /run, and own pid, uts, ipc, mount and
// network namespaces. The overlay's lower layer is the machine's / and, at /usr, /etc and the like,
// the group's state of them. Its upper layer is in the replica's directory, so each server writes
// to its own. The network holds only lo: bytes come through Crane. Addresses are not randomised
// (DESIGN D7: equal on all replicas). The server is pid 1 of its namespace. PlainProcessTree: the
// same without its own root file system. With root privilege it still has its own pid, uts, ipc and
// mount namespaces; without, it is an ordinary process tree.
//
// A running server can be dumped (begin_checkpoint). With the dump and the copied files it can
// recover in any container of any replica, on a machine with the same files (begin_restore). CRIU
// does both, as a child of the supervisor. A dump omits the directories of ServerOptions::binds:
// the caller supplies its own copy of them, with files of the same names and sizes.
//
// Threads: the node's only thread; start() forks, so the caller must be single-threaded.
// INVARIANT CONTAINER-1: after destroy(), or after the node died, no process of the server is left.
// INVARIANT CONTAINER-2: nothing is ever mounted in the caller's mount namespace.
// INVARIANT FILES-1: a server has its own /tmp and /var/tmp; it sees the machine's only where its
//                    command line names a path there.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dmt/base/result.h"

struct lxc_container;

namespace crane::checkpoint {

struct Bind {
  std::string source;  // absolute path on this machine; must exist
  std::string target;  // absolute path as the server sees it; created when absent
  bool read_only = false;
};

struct ServerOptions {
  std::string name;                      // unique on this machine, e.g. "crane.web.r0"
  std::string host_name;                 // equal on all replicas
  std::string directory;                 // the replica's; contains rootfs/, upper/, work/, logs
  std::vector<std::string> command;      // argv; argv[0] is an absolute path
  std::vector<std::string> environment;  // the whole environment, "NAME=value"
  std::vector<Bind> binds;
  std::string preload = {};  // library that every program of the container loads; "": none
  // Directories to create before the server starts: "/path", or "USER:/path" if a user owns it.
  std::vector<std::string> make_directories;
  // Directories that belong to the server and begin empty, with mode 01777, even if the machine has
  // them: only some replicas would see what other programs make there (FILES-1).
  std::vector<std::string> own_directories;
  // The record and the generation of the group's state of the machine's files, the overlay's lower
  // layers (machine_files.h); "": the files as they are.
  std::string files_record = {};
  std::size_t files_generation = 0;
  std::string working_directory = "/";
  rlim_t descriptors = 0;  // the server's soft limit; 0: the caller's
  int stdout_fd = -1;      // inherited by the server; -1: /dev/null
  int stderr_fd = -1;      // the same
  int held_fd = -1;        // the supervisor keeps a copy open until it has cleaned up
  // Keep the overlay's upper directory after the server's end; the next server begins with an empty
  // one.
  bool leaves_upper = false;
  std::string upper;  // directory to copy into the overlay's upper at the start; "": none
  // The name may still belong to the supervisor of a node that was killed a moment ago. True: wait
  // for its end, at most kOldSupervisorMs, as a returning replica does; false: fail.
  bool awaits_old_supervisor = false;
  // How long CRIU may be silent during a dump, or a restore may last; then it is killed.
  int criu_limit_ms = 60'000;
  // Sets `ns` to the modification time of a server's file in ns since 1970; false: use the file's
  // own time. The supervisor calls it after the server's end; see keep_files().
  std::function<bool(std::uint64_t device, std::uint64_t inode, std::int64_t& ns)> modified;
};

// Durations in microseconds. In a dump, the phases from `stopping` to `thawing` follow each other;
// the first one begins with freeze().
struct CheckpointTimes {
  std::int64_t starting = 0;  // dump: until CRIU is ready
  std::int64_t stopping = 0;  // dump: until no process runs
  std::int64_t dumping = 0;   // dump: until CRIU has written all
  std::int64_t copying = 0;   // copying the overlay's upper directory
  std::int64_t waiting = 0;   // dump: waiting for thaw()
  std::int64_t thawing = 0;   // dump: until the processes run again
  std::int64_t frozen = -1;   // dump: how long CRIU stopped the processes; -1: unknown
  std::int64_t memory = -1;   // dump: the part of `frozen` that wrote memory
  std::int64_t criu = 0;      // restore: CRIU in total
};

struct CriuCall;

class Server {
 public:
  explicit Server(ServerOptions options) : options_(std::move(options)) {}
  virtual ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns the host pid of the server's first process once it is started; -1: it ended before the
  // supervisor saw it, and wait() returns its status.
  // Errors: kDenied no root privilege; kUnsupported LXC is not installed; kBadArgument; kFull;
  // kExists a container of this name runs; kSystem. REQUIRES: not started before.
  Result<pid_t> start();
  // start() in two steps, for an event loop: begin() returns at once, and event_fd() becomes
  // readable when started() has an answer (kBusy: none after `timeout_ms`; -1: wait).
  Outcome begin();
  Result<pid_t> started(int timeout_ms);

  // Dumps the server's processes into `images` and copies the overlay's upper directory to `upper`,
  // while the server is paused; then the server continues. Both are empty or do not exist yet. The
  // steps below return at once; event_fd() becomes readable when there is news:
  //   prepare_checkpoint()  CRIU starts, the server is not touched. Then prepared() is true, or
  //                         checkpointed() returns the error
  //   freeze()              the dump begins; from now on no other process writes to the upper
  //                         directory. With `boost`, a slow dump gets the server's processors
  //   thaw(well)            `well`: the caller's own copies succeeded. Only after this call, and
  //                         when all is dumped, the server continues: checkpointed()
  //   cancel_checkpoint()   instead of freeze(): no dump is made, and no answer follows
  // kBusy: the last dump is under way (also a moment after it was cancelled); kBadArgument;
  // kNotFound: the server is not running.
  Outcome prepare_checkpoint(const std::string& images, const std::string& upper);
  bool prepared() const noexcept { return dump_ == Dump::kPrepared; }
  Outcome freeze(bool boost);
  Outcome thaw(bool well);
  void cancel_checkpoint() noexcept;
  // All steps at once.
  Outcome begin_checkpoint(const std::string& images, const std::string& upper);
  // kBusy: no answer after `timeout_ms`. Any other error: there is no checkpoint, reason() returns
  // why, and the content of the two directories is useless.
  Result<CheckpointTimes> checkpointed(int timeout_ms);

  // Like begin(), but the server recovers from the directories of begin_checkpoint(); `upper` is
  // copied. Name, directory, and the sources of the binds may differ; their targets must be the
  // same. started() returns the result; on an error (kDamaged, kNotFound...) reason() returns why.
  Outcome begin_restore(const std::string& images, const std::string& upper);
  const CheckpointTimes& restore_times() const noexcept { return restore_times_; }

  // One line about the last refusal, in addition to its Error; may be empty.
  const std::string& reason() const noexcept { return reason_; }

  // For the event loop: readable when the server has ended (or its supervisor died), can be dumped,
  // or was dumped. Then call wait(0), which takes every answer, and check prepared() and
  // checkpointed(0). -1 before the start.
  int event_fd() const noexcept { return channel_; }

  // The server's status as in wait(2). kBusy: it still runs after `timeout_ms` (-1: wait).
  Result<int> wait(int timeout_ms);

  // After the server's end, for whatever reason, its upper directory is moved to `upper`, which
  // must not exist yet, and each file gets the time of ServerOptions::modified. Once wait() has
  // reported the end, kept() returns the result. Call it before the end.
  Outcome keep_files(const std::string& upper);
  const Error& kept() const noexcept { return keep_error_; }
  // Ends the server; wait() reports when it is gone.
  Outcome end();

  // Sends a signal to the server's first process; SIGKILL ends the whole tree.
  void kill(int signo) noexcept;

  // Ends all processes and cleans up; returns when nothing is left. May be called after wait().
  Outcome destroy();

 protected:
  // These run in the supervisor, which prepares and starts the server, reports, and waits.
  friend class ContainerSupervisor;
  virtual Outcome prepare() = 0;           // mounts, directories
  virtual Result<pid_t> launch() = 0;      // returns the direct child to wait for
  virtual Result<pid_t> find_first() = 0;  // host pid of the server's first process; kBusy: later
  virtual Result<int> server_status(int child_status) = 0;  // from the direct child's status
  virtual void end_all() = 0;                               // sends SIGKILL to everything
  virtual void clean() = 0;                                 // undoes prepare()

  // For dumps and restores; by default they return kUnsupported.
  virtual Outcome prepare_restore();         // instead of prepare(): restore_ is set
  virtual Outcome describe(CriuCall& call);  // sets the external resources and the root
  virtual std::string upper_directory() const { return ""; }
  // Moves the upper directory; no process uses the overlay any more.
  virtual Outcome move_upper(const std::string& to);

  ServerOptions options_;
  pid_t direct_child_ = -1;  // in the supervisor only
  pid_t first_ = -1;
  struct Kept {
    std::string images, upper;
  } restore_;  // not empty: begin_restore() was called

 private:
  Outcome fork_supervisor();
  bool take_report(int timeout_ms);

  Outcome begin_dump(int what, const std::string& images, const std::string& upper);
  Outcome send_request(int what, bool boost = false, const std::string& images = "",
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
  [[noreturn]] void run_monitor();
  Outcome prepare_place();
  Outcome make_own_directories();
  Outcome mount_root(const std::string& upper);
  Outcome mount_parts(const std::string& work);
  void unmount_parts();
  std::vector<Bind> all_binds() const;
  Outcome prepare_root();
  Outcome name_preload();
  void configure();
  void remove_leftovers();
  std::string in_root(const std::string& path) const;

  Verdict* verdict_ = nullptr;    // shared by the supervisor and LXC's monitor
  lxc_container* lxc_ = nullptr;  // the supervisor's view of the container
  std::vector<Bind> parts_;       // mounted parts of the state of the machine's files
  int claim_ = -1;                // descriptor that holds the name
  int null_ = -1;                 // the server's /dev/null
  int network_ = -1;              // network namespace of a restored server
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
