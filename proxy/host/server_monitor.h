// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guards one replica's server: starts it in its container (or as a plain process tree), takes the
// check-ins of its processes, and distinguishes ends that the schedule contains from others.
//
// If a process ends by an operation of the schedule, its ProcessRecord is marked `gone` before the
// kernel ends it.  If a process was killed from outside on this replica only, its record is not
// marked, and the replica must not continue (DESIGN D18, rule 2).
//
// Threads: the node's one thread, inside its event loop.

#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/container.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "proxy/clients/woken.h"
#include "proxy/host/check_ins.h"
#include "proxy/host/config.h"
#include "proxy/host/segment.h"
#include "proxy/replica/recovery/upgrade.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class ServerMonitor final : private CheckIns::Owner {
 public:
  class Owner : public proxy::Woken {
   public:
    // The server was started and has loaded libcrane.so.  `pid`: of its first process on the host;
    // -1: it ended before the node saw it.
    virtual void server_started(pid_t pid) = 0;
    // The whole server is gone; `status` as from wait(2).
    virtual void server_ended(int status) = 0;
    virtual void server_failed(ExitStatus status, const std::string& why) = 0;
    // A process is gone although the schedule does not contain its end; its output was read.
    virtual void process_killed(std::uint32_t process, std::uint32_t pid) = 0;
    // The requested checkpoint can be made now.
    virtual void dump_prepared() = 0;
    // The dump is complete (`why_not` is empty), or has failed.  `refusal`: CRIU's reason if it
    // does not dump such a server.
    virtual void dump_ended(const std::string& why_not, const std::string& refusal) = 0;
    // Reads the server's output; called before the end of a process is judged.
    virtual void drain_server() = 0;

   protected:
    ~Owner() = default;
  };

  ServerMonitor(event_base* base, const Config& config, Segment& segment, Owner& owner);
  ~ServerMonitor();
  ServerMonitor(const ServerMonitor&) = delete;
  ServerMonitor& operator=(const ServerMonitor&) = delete;

  // Sets what start() runs: the configured server, until an upgrade changes it.
  void start_as(replica::Upgrade::Server server) { server_as_ = std::move(server); }
  const replica::Upgrade::Server& started_as() const noexcept { return server_as_; }
  // Begins to start the server; server_started() or server_failed() follows.  `upper`: the initial
  // content of its overlay, or "".  May be called again after stop().
  Outcome start(const std::string& upper = "");
  // As start(), but the server recovers from an unpacked checkpoint's images/ and upper/.
  Outcome restore(const std::string& checkpoint);
  // Prepares to dump the server into images/ and upper/ of `staging`; dump_prepared() or
  // dump_ended() follows.
  Outcome prepare_checkpoint(const std::string& staging);
  // Begins the prepared dump; dump_ended() follows, but not before thaw().  REQUIRES: the server is
  // quiescent, and stays so until then.
  Outcome freeze(bool boost);
  // The files of the dump are copied; `well` is false if they could not be copied.
  void thaw(bool well);
  // Cancels a checkpoint before freeze(); no call follows.
  void cancel_checkpoint();
  // The times of the last dump, and of the restore.
  const checkpoint::CheckpointTimes& dump_times() const noexcept { return dump_times_; }
  checkpoint::CheckpointTimes restore_times() const {
    return server_ == nullptr ? checkpoint::CheckpointTimes{} : server_->restore_times();
  }
  // When the server is gone, its files are kept in `upper` (container.h).  Also applies to a server
  // that is started later.
  void keep_files(const std::string& upper);
  // Ends the server; server_ended() follows.  Then kept() is the result of keeping its files.
  Outcome end();
  Error kept() const { return server_ == nullptr ? Error{} : server_->kept(); }
  // Kills the remaining processes and cleans up; blocks until none is left.
  void stop();
  bool running() const noexcept { return server_ != nullptr; }
  // True after the first process checked in.
  bool checked_in() const noexcept { return checked_in_; }
  // The pid that server_started() reported.
  pid_t pid() const noexcept { return pid_; }
  // The main process has ended at a turn, so the kernel is ending the processes that still run.
  void expect_end() noexcept { end_expected_ = true; }
  // The last program that libcrane.so did not let the server execute, and why, or the last fault in
  // libcrane.so itself; "": none.  Also written to server.log.
  std::string last_refusal() const;
  // The pid, inside the container, of a process that has ended in the schedule but not in the
  // kernel, and that may have threads at any place (dmt/quiescence.h); 0: none.
  std::uint32_t ending() const noexcept;
  // The server's processes: pid inside the container, and on the host.
  std::map<std::uint32_t, pid_t> processes() const;
  // Whether one of the server's threads waits for a disk (proc(5): state D).
  bool waits_for_disk() const;

  // Interrupts the process with this record, for the stall rule (runtime/preload/turn/probe.cc).
  void probe(std::uint32_t process) const noexcept;
  // The host pid of the process with this record; 0: it has not checked in, or has ended.
  pid_t host_pid(std::uint32_t process) const noexcept;

 private:
  struct Watch {
    ServerMonitor* monitor;
    std::uint32_t process, pid;  // record and pid inside the container
    pid_t host_pid;
    int pidfd;
    event event_;
  };

  static void on_server(int fd, short what, void* monitor);
  static void on_process(int fd, short what, void* watch);
  static void on_checkin_timeout(int fd, short what, void* monitor);

  Outcome prepare();
  Outcome watch_begun(const Outcome& begun);
  void watch_server();
  void started();
  void watch_all();
  void take_dump();
  void checked_in(const dmt::CheckIn& in, pid_t host_pid) override;
  void watch(std::uint32_t process, std::uint32_t pid, pid_t host_pid);
  void lower_priority(pid_t host_pid);
  bool ended_by_schedule(const Watch& watch) const noexcept;
  std::string log_tail() const;
  std::string why_no_checkin(int status) const;
  checkpoint::ServerOptions options() const;
  void send_keep_path();

  event_base* base_;
  const Config& config_;
  Segment& segment_;
  Owner& owner_;
  std::unique_ptr<checkpoint::Server> server_;
  pid_t pid_ = -1;
  int log_ = -1;
  std::string upper_, kept_;  // arguments of start() and keep_files()
  replica::Upgrade::Server server_as_;
  bool started_ = false;  // server_started() was called
  bool checked_in_ = false;
  bool restored_ = false;
  pid_t behind_ = 0;  // its container gets only idle processor time
  enum class Dumping { kNo, kPreparing, kPrepared } dumping_ = Dumping::kNo;
  checkpoint::CheckpointTimes dump_times_;
  bool end_expected_ = false;
  event server_event_;
  event timeout_event_;
  std::unordered_map<pid_t, std::unique_ptr<Watch>> watches_;  // by host pid
  CheckIns check_ins_;
};

}  // namespace crane::node
