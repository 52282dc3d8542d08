// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one replica's server: in an LXC container of its own, or as a plain process tree.
//
// A server must not outlive its node, whatever kills the node, and must leave nothing behind: no
// process, mount, cgroup or directory. So between the node and the server stands a *keeper*, a
// small process in a mount namespace of its own: it prepares the root file system, starts the
// server, waits for it, and cleans up when the server ended, when destroy() was called or when the
// node is gone (the end of their socket says so). Mounts exist only in the keeper's namespace, so
// even a killed keeper leaves none, and takes the server with it (parent-death signals).
//
// Container (CRANE 5): overlay root file system (lower = the machine's /, upper in the replica's
// directory, so a server sees the files of its machine and writes to its own), fresh /run, own pid,
// uts, ipc, mount and network namespaces (the network holds only lo: bytes come through Crane),
// addresses not randomised (DESIGN D7: equal on all replicas). The server is its pid 1.
// PlainProcessTree: the same without a root file system of its own; with root privilege it
// still has own pid, uts, ipc and mount namespaces, without it is an ordinary process tree.
//
// Threads: the node's one thread; start() forks, so the caller must be single-threaded.
// INVARIANT K1: after destroy(), or after the node died, no process of the server is left.
// INVARIANT K2: nothing is ever mounted in the caller's mount namespace.

#include <sys/types.h>

#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::checkpoint {

struct Bind {
  std::string source;  // absolute path on this machine; must exist
  std::string target;  // absolute path as the server sees it; created when absent
};

struct ServerOptions {
  std::string name;                      // unique on this machine, e.g. "crane.web.r0"
  std::string host_name;                 // equal on all replicas
  std::string directory;                 // the replica's own; holds rootfs/, upper/, work/, logs
  std::vector<std::string> command;      // argv; argv[0] is an absolute path
  std::vector<std::string> environment;  // the whole environment, "NAME=value"
  std::vector<Bind> binds;
  // Created for the server before it starts: "/path", or "USER:/path" for one that is a user's.
  std::vector<std::string> make_directories;
  std::string working_directory = "/";
  int stdout_fd = -1;       // inherited by the server; -1: /dev/null
  int stderr_fd = -1;       // likewise
  bool keep_upper = false;  // keep the overlay's upper directory when the server is gone
};

class Server {
 public:
  explicit Server(ServerOptions options) : options_(std::move(options)) {}
  virtual ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns the host pid of the server's first process once it was started.
  // Errors: kDenied no root privilege; kUnsupported LXC is not installed; kBadArgument; kFull;
  // kExists a container of this name runs; kSystem. REQUIRES: not started before.
  Result<pid_t> start();
  // The same in two steps, for an event loop: begin() returns at once, event_fd() becomes readable
  // when started() has an answer (kBusy: none after `timeout_ms`; -1: wait).
  Outcome begin();
  Result<pid_t> started(int timeout_ms);

  // Readable once the server has ended (or its keeper died); for the event loop. -1 before start().
  int event_fd() const noexcept { return channel_; }

  // The server's status as wait(2) gives it. kBusy: it still runs after `timeout_ms` (-1: wait).
  Result<int> wait(int timeout_ms);

  // Sends a signal to the server's first process; SIGKILL ends the whole tree.
  void kill(int signo) noexcept;

  // Ends whatever still runs and cleans up; returns when nothing is left. Also after wait().
  Outcome destroy();

 protected:
  // Runs in the keeper: prepares and starts the server, calls report_started(), waits.
  friend class Keeper;
  virtual Outcome prepare() = 0;           // mounts, directories
  virtual Result<pid_t> launch() = 0;      // the direct child to wait for
  virtual Result<pid_t> find_first() = 0;  // host pid of the server's first process; kBusy: later
  virtual Result<int> server_status(int child_status) = 0;  // from the direct child's
  virtual void end_all() = 0;                               // SIGKILL to everything
  virtual void clean() = 0;                                 // undo prepare()

  ServerOptions options_;
  pid_t direct_child_ = -1;  // in the keeper only
  pid_t first_ = -1;

 private:
  pid_t keeper_ = -1;
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

  struct Verdict;
  struct Handle;
  [[noreturn]] void run_monitor();
  Outcome prepare_root();
  void configure(Handle& handle);
  void remove_leftovers();
  std::string in_root(const std::string& path) const;

  Verdict* verdict_ = nullptr;  // shared by the keeper and LXC's monitor
  Handle* handle_ = nullptr;    // the keeper's view of the container
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
