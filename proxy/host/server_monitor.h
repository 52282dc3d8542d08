// SPDX-License-Identifier: Apache-2.0
#pragma once
// The guard of one replica's server: starts it in its container (or as a plain process tree), takes
// the check-ins of its processes, and tells an end that the schedule knows of from one it does not.
//
// A process that ends by an operation of the schedule has its ProcessRecord marked `gone` before
// the kernel ends it; one that was killed from outside on this replica only has not, and the
// replica must not go on (DESIGN D18, rule 2).
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
    // The server was started and has loaded libcrane.so; host pid of its first process, -1: it had
    // ended before anybody saw it.
    virtual void server_started(pid_t pid) = 0;
    // The whole server is gone; `status` as wait(2) gives it.
    virtual void server_ended(int status) = 0;
    virtual void server_failed(ExitStatus status, const std::string& why) = 0;
    // A process is gone although the schedule does not know it, after its output was read.
    virtual void process_killed(std::uint32_t process, std::uint32_t pid) = 0;
    // A checkpoint that was begun: it can be made,
    virtual void dump_prepared() = 0;
    // or why there is none; empty: it is there.  `refusal`: CRIU does not dump such a server.
    virtual void dump_ended(const std::string& why_not, const std::string& refusal) = 0;
    // Reads what the server has put out; called before a process' end is judged.
    virtual void drain_server() = 0;

   protected:
    ~Owner() = default;
  };

  ServerMonitor(event_base* base, const Config& config, Segment& segment, Owner& owner);
  ~ServerMonitor();
  ServerMonitor(const ServerMonitor&) = delete;
  ServerMonitor& operator=(const ServerMonitor&) = delete;

  // What start() runs: as configured, until an upgrade says otherwise.
  void start_as(replica::Upgrade::Server server) { server_as_ = std::move(server); }
  const replica::Upgrade::Server& started_as() const noexcept { return server_as_; }
  // Begins to start the server; server_started() or server_failed() follows.  `upper`: what its
  // overlay begins with, or "".  Again after stop().
  Outcome start(const std::string& upper = "");
  // The same, but the server recovers from an unpacked checkpoint's images/ and upper/.
  Outcome restore(const std::string& checkpoint);
  // Prepares to dump the server into images/ and upper/ of `staging`; dump_prepared() or
  // dump_ended() follows.
  Outcome prepare_checkpoint(const std::string& staging);
  // Begins with it; dump_ended() follows, not before thaw().  REQUIRES: the server is quiescent,
  // and stays so until then.
  Outcome freeze(bool boost);
  // What is copied meanwhile is there, or is not to be had.
  void thaw(bool well);
  // Of one that was not begun with; nothing follows.
  void cancel_checkpoint();
  // Of the last dump, and of the restore.
  const checkpoint::CheckpointTimes& dump_times() const noexcept { return dump_times_; }
  checkpoint::CheckpointTimes restore_times() const {
    return server_ == nullptr ? checkpoint::CheckpointTimes{} : server_->restore_times();
  }
  // When the server is gone, its files are kept there (container.h); also for one that is only
  // begun after this.
  void keep_files(const std::string& upper);
  // Ends the server; server_ended() follows.  Then: whether its files are kept.
  Outcome end();
  Error kept() const { return server_ == nullptr ? Error{} : server_->kept(); }
  // Kills what is left and cleans up; blocks until nothing is left.
  void stop();
  bool running() const noexcept { return server_ != nullptr; }
  // True after the first process checked in.
  bool checked_in() const noexcept { return checked_in_; }
  // As server_started() had it.
  pid_t pid() const noexcept { return pid_; }
  // The server's main process has ended at a turn: what still runs is being ended by the kernel.
  void expect_end() noexcept { end_expected_ = true; }
  // The last program that libcrane.so did not let the server execute, and why, or the last fault in
  // libcrane.so itself; "": there was none.  It is put into server.log, too.
  std::string last_refusal() const;
  // The pid, inside the container, of a process that has ended for the schedule and not yet for the
  // kernel, whose threads may be anywhere (dmt/quiescence.h); 0: there is none.
  std::uint32_t ending() const noexcept;
  // The server's processes: pid inside the container, and on the host.
  std::map<std::uint32_t, pid_t> processes() const;
  // Whether one of its threads waits for a disk (proc(5): state D).
  bool waits_for_disk() const;

  // Interrupts the process of this record, for the stall rule (runtime/preload/turn/probe.cc).
  void probe(std::uint32_t process) const noexcept;
  // The process of this record on the host; 0: it has not checked in, or has ended.
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
  void put_behind(pid_t host_pid);
  bool gone_by_schedule(const Watch& watch) const noexcept;
  std::string log_tail() const;
  std::string why_no_checkin(int status) const;
  checkpoint::ServerOptions options() const;
  void tell_where_to_keep();

  event_base* base_;
  const Config& config_;
  Segment& segment_;
  Owner& owner_;
  std::unique_ptr<checkpoint::Server> server_;
  pid_t pid_ = -1;
  int log_ = -1;
  std::string upper_, kept_;  // of start() and keep_files()
  replica::Upgrade::Server server_as_;
  bool started_ = false;  // server_started() was called
  bool checked_in_ = false;
  bool restored_ = false;
  pid_t behind_ = 0;  // whose container gets only what others leave of the processors
  enum class Dumping { kNo, kPreparing, kPrepared } dumping_ = Dumping::kNo;
  checkpoint::CheckpointTimes dump_times_;
  bool end_expected_ = false;
  event server_event_;
  event timeout_event_;
  std::unordered_map<pid_t, std::unique_ptr<Watch>> watches_;  // by host pid
  CheckIns check_ins_;
};

}  // namespace crane::node
