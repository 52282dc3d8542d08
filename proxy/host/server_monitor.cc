// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/server_monitor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "checkpoint/background.h"
#include "checkpoint/criu.h"
#include "dmt/base/process_stat.h"
#include "dmt/processes.h"
#include "dmt/restart.h"
#include "dmt/segment.h"
#include "proxy/host/log_bounds.h"
#include "proxy/host/placement.h"
#include "proxy/host/server_pids.h"

namespace crane::node {
namespace {

constexpr timeval kCheckinTimeout{10, 0};
constexpr timeval kReplaysCheckinTimeout{300, 0};  // valgrind may have to start first
constexpr std::size_t kLogTailBytes = 600;
constexpr int kExecFailed = 127;
constexpr int kRefusedByLibrary = 125;  // libcrane.so could not attach and reports why

// Whether `word` contains the path `place` or a path below it.
bool names(const std::string& word, const std::string& place) {
  for (auto at = word.find(place); at != std::string::npos; at = word.find(place, at + 1)) {
    const auto end = at + place.size();
    const bool whole = end == word.size() || word[end] == '/';
    const bool longer = word.substr(0, at).ends_with("/var");  // of /tmp: /var/tmp
    if (whole && !longer) return true;
  }
  return false;
}

// FILES-1.  The server gets its own /tmp and /var/tmp, unless its command line names a path there:
// then it sees the machine's directory.
std::vector<std::string> own_directories(const Config& config, std::vector<std::string> words) {
  words.insert(words.end(), config.args.begin(), config.args.end());
  words.push_back(config.program);
  words.push_back(config.working_directory);
  for (const setup::Bind& bind : config.binds) words.push_back(bind.target);
  std::vector<std::string> own;
  for (const std::string place : {"/tmp", "/var/tmp"}) {
    if (std::none_of(words.begin(), words.end(),
                     [&](const std::string& word) { return names(word, place); })) {
      own.push_back(place);
    }
  }
  return own;
}

// LXC sets the variable "container" for the programs that it starts.  libcrane.so restores the
// value that the server would have outside, from the variable added here (hide_own_variables); it
// removes an even number of variables.
void hide_container(std::vector<std::string>& environment) {
  const auto before = std::find_if(environment.begin(), environment.end(), [](const auto& entry) {
    return entry.starts_with("container=");
  });
  const bool none = before == environment.end();
  const std::string entry = none ? "" : *before;
  environment.push_back("CRANE_CONTAINER=" + entry);
  if (!none) environment.emplace_back("CRANE_EVEN=");
}

}  // namespace

ServerMonitor::ServerMonitor(event_base* base, const Config& config, Segment& segment, Owner& owner)
    : base_(base),
      config_(config),
      segment_(segment),
      owner_(owner),
      check_ins_(base, segment.checkin_fd(), *this) {
  event_assign(&timeout_event_, base_, -1, 0, on_checkin_timeout, this);
  server_as_.command.push_back(config.program);
  server_as_.command.insert(server_as_.command.end(), config.args.begin(), config.args.end());
}

ServerMonitor::~ServerMonitor() { stop(); }

checkpoint::ServerOptions ServerMonitor::options() const {
  checkpoint::ServerOptions o;
  o.name = config_.replays ? config_.container_name
                           : fmt::format("crane.{}.r{}", config_.group, config_.replica);
  o.host_name = config_.group;
  o.directory = config_.replica_dir();
  o.command = server_as_.command;
  o.environment = config_.env;
  // Without root the directory cannot be bound to one place that is the same on all replicas.
  const bool bound = config_.container || ::geteuid() == 0;
  const std::string place = bound ? kServerDirectory : segment_.directory();
  if (bound) o.binds.push_back({segment_.directory(), kServerDirectory});
  if (config_.container) o.preload = place + "/libcrane.so";
  o.environment.push_back("LD_PRELOAD=" + place + "/libcrane.so");
  o.environment.push_back("CRANE_SEGMENT=" + place + "/segment");
  if (config_.container) hide_container(o.environment);
  for (const setup::Bind& bind : config_.binds) {
    o.binds.push_back({bind.source, bind.target, bind.read_only});
  }
  o.make_directories = config_.dirs;
  o.own_directories = own_directories(config_, server_as_.command);
  o.files_record = config_.files_record();
  o.files_generation = server_as_.files;
  o.working_directory = config_.working_directory;
  o.descriptors = config_.server_descriptors;
  o.upper = upper_;
  o.leaves_upper = config_.leaves_files;
  o.awaits_old_supervisor = config_.restore || config_.on_disk() || !upper_.empty();
  o.modified = [&w = segment_.layout()](std::uint64_t device, std::uint64_t inode,
                                        std::int64_t& ns) {
    const dmt::Modified modified = dmt::last_modified(w, device, inode);
    ns = modified.ns;
    return modified.known;
  };
  o.stdout_fd = log_;
  o.stderr_fd = log_;
  return o;
}

Outcome ServerMonitor::prepare() {
  const std::string log = config_.replica_dir() + "/server.log";
  log_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log_ < 0) return system_error("open server.log");
  // A link beside server.log, for the operator: the server writes runtime.log beside its segment.
  const std::string link = config_.replica_dir() + "/" + setup::kRuntimeLog;
  (void)::unlink(link.c_str());
  if (::symlink((segment_.directory() + "/runtime.log").c_str(), link.c_str()) != 0) {
    spdlog::warn("{}: {}", link, std::strerror(errno));
  }
  if (config_.container) {
    server_ = std::make_unique<checkpoint::Container>(options());
  } else {
    server_ = std::make_unique<checkpoint::PlainProcessTree>(options());
  }
  return Done{};
}

void ServerMonitor::watch_server() {
  event_assign(&server_event_, base_, server_->event_fd(), EV_READ | EV_PERSIST, on_server, this);
  event_add(&server_event_, nullptr);
}

void ServerMonitor::send_keep_path() {
  if (server_ == nullptr || kept_.empty()) return;
  if (const Outcome sent = server_->keep_files(kept_); !sent.ok()) {
    spdlog::warn("cannot pass the place for the server's files to its container supervisor: {}",
                 sent.error().message());
  }
}

void ServerMonitor::keep_files(const std::string& upper) {
  kept_ = upper;
  send_keep_path();
}

Outcome ServerMonitor::end() {
  end_expected_ = true;
  return server_->end();
}

Outcome ServerMonitor::start(const std::string& upper) {
  upper_ = upper;
  if (const Outcome prepared = prepare(); !prepared.ok()) return prepared;
  // Does not wait: setting up a container takes so long that the others would suspect this node.
  return watch_begun(server_->begin());
}

Outcome ServerMonitor::restore(const std::string& checkpoint) {
  if (const Outcome prepared = prepare(); !prepared.ok()) return prepared;
  restored_ = checked_in_ = true;  // its processes had checked in before the dump
  return watch_begun(server_->begin_restore(checkpoint + "/images", checkpoint + "/upper"));
}

// Watches a server that began; drops one that could not begin.
Outcome ServerMonitor::watch_begun(const Outcome& begun) {
  if (!begun.ok()) {
    server_.reset();
    return begun;
  }
  send_keep_path();
  watch_server();
  return begun;
}

Outcome ServerMonitor::prepare_checkpoint(const std::string& staging) {
  const Outcome begun = server_->prepare_checkpoint(staging + "/images", staging + "/upper");
  if (begun.ok()) dumping_ = Dumping::kPreparing;
  return begun;
}

Outcome ServerMonitor::freeze(bool boost) { return server_->freeze(boost); }

void ServerMonitor::thaw(bool well) {
  if (const Outcome asked = server_->thaw(well); !asked.ok()) {
    spdlog::warn("cannot report the copied files to the server's container supervisor: {}",
                 asked.error().message());
  }
}

void ServerMonitor::cancel_checkpoint() {
  dumping_ = Dumping::kNo;
  if (server_ != nullptr) server_->cancel_checkpoint();
}

void ServerMonitor::take_dump() {
  if (dumping_ == Dumping::kPreparing && server_->prepared()) {
    dumping_ = Dumping::kPrepared;
    owner_.dump_prepared();
  }
  if (dumping_ == Dumping::kNo) return;
  const auto times = server_->checkpointed(0);
  if (!times.ok() && times.error().code == Code::kBusy) return;
  dumping_ = Dumping::kNo;
  if (times.ok()) dump_times_ = times.value();
  const std::string reason = times.ok() ? "" : server_->reason();
  const bool lasting =
      !times.ok() && times.error().code == Code::kUnsupported && checkpoint::is_lasting(reason);
  owner_.dump_ended(times.ok()       ? ""
                    : reason.empty() ? times.error().message()
                                     : fmt::format("{}: {}", times.error().message(), reason),
                    lasting ? reason : "");
}

void ServerMonitor::watch_all() {
  const dmt::Layout& w = segment_.layout();
  const auto pids = server_pids(w, pid_);
  for (std::uint32_t process = 1; process < dmt::kProcessesMax; ++process) {
    const dmt::ProcessRecord& p = w.processes[process];
    if (p.state != dmt::ProcessState::kAlive) continue;
    if (const auto found = pids.find(p.pid); found != pids.end()) {
      watch(process, p.pid, found->second);
    } else if (p.gone.load() == 0) {
      owner_.process_killed(process, p.pid);
    }
  }
}

void ServerMonitor::started() {
  const Result<pid_t> pid = server_->started(0);
  if (pid.ok()) {
    started_ = true;
    pid_ = pid.value();
    if (!checked_in_) {
      event_add(&timeout_event_, config_.replays ? &kReplaysCheckinTimeout : &kCheckinTimeout);
    }
    if (restored_) watch_all();
    if (checked_in_) owner_.server_started(pid_);
    return;
  }
  const Error e = pid.error();
  if (e.code == Code::kBusy) return;
  event_del(&server_event_);
  const std::string& reason = server_->reason();
  owner_.server_failed(ExitStatus::kServerNotStarted,
                       fmt::format("{}: {}{}{}", server_as_.command[0], e.message(),
                                   reason.empty() ? "" : ": ", reason));
}

void ServerMonitor::stop() {
  for (const auto& [pid, watch] : watches_) {
    event_del(&watch->event_);
    ::close(watch->pidfd);
  }
  watches_.clear();
  check_ins_.forget();
  event_del(&timeout_event_);
  if (server_ != nullptr) {
    event_del(&server_event_);
    if (behind_ > 0) (void)checkpoint::Background::set_group(behind_, false);  // stop() waits
    behind_ = 0;
    server_->kill(SIGKILL);
    if (const Outcome gone = server_->destroy(); !gone.ok()) {
      spdlog::warn("the server's container was not cleaned up: {}", gone.error().message());
    }
    server_.reset();
  }
  if (log_ >= 0) ::close(log_);
  log_ = -1;
  pid_ = -1;
  started_ = checked_in_ = restored_ = end_expected_ = false;
  dumping_ = Dumping::kNo;
  kept_.clear();
}

// --- check-ins -----------------------------------------------------------------------------------

// Lowers the container's priority for an offline replay that was started with the lowest priority,
// as an analysis replica's is, because a nice value counts only within a container.  Not earlier,
// because users wait until the server listens.
void ServerMonitor::lower_priority(pid_t host_pid) {
  const bool last = config_.replays && ::getpriority(PRIO_PROCESS, 0) >= kLowestNice;
  if (last && checkpoint::Background::set_group(host_pid, true)) behind_ = host_pid;
}

void ServerMonitor::checked_in(const dmt::CheckIn& in, pid_t host_pid) {
  owner_.woke();
  if (in.version != dmt::kLayoutVersion || in.process >= dmt::kProcessesMax) {
    owner_.server_failed(
        ExitStatus::kNeverCheckedIn,
        fmt::format("the server loaded a libcrane.so of version {}, but the node has version {}",
                    in.version, dmt::kLayoutVersion));
    return;
  }
  if (!checked_in_) {
    checked_in_ = true;
    event_del(&timeout_event_);
    lower_priority(host_pid);
    if (started_) owner_.server_started(pid_);
  }
  watch(in.process, in.pid, host_pid);
}

void ServerMonitor::watch(std::uint32_t process, std::uint32_t pid, pid_t host_pid) {
  auto& entry = watches_[host_pid];
  if (entry != nullptr) {  // exec: same process, possibly another record
    entry->process = process;
    entry->pid = pid;
    return;
  }
  entry = std::make_unique<Watch>();
  entry->monitor = this;
  entry->process = process;
  entry->pid = pid;
  entry->host_pid = host_pid;
  entry->pidfd = static_cast<int>(::syscall(SYS_pidfd_open, host_pid, 0));
  if (entry->pidfd < 0) {  // already gone
    const Watch gone = *entry;
    watches_.erase(host_pid);
    owner_.drain_server();
    if (!ended_by_schedule(gone)) owner_.process_killed(gone.process, gone.pid);
    return;
  }
  event_assign(&entry->event_, base_, entry->pidfd, EV_READ, on_process, entry.get());
  event_add(&entry->event_, nullptr);
}

std::map<std::uint32_t, pid_t> ServerMonitor::processes() const {
  std::map<std::uint32_t, pid_t> all;
  for (const auto& [host_pid, watch] : watches_) all.emplace(watch->pid, host_pid);
  return all;
}

bool ServerMonitor::waits_for_disk() const {
  for (const auto& [host_pid, watch] : watches_) {
    std::error_code gone;
    const auto threads = fmt::format("/proc/{}/task", host_pid);
    for (const auto& thread : std::filesystem::directory_iterator(threads, gone)) {
      // The thread's number also works in place of a process's and gives the thread's state.
      const auto stat = read_process_stat(std::atoi(thread.path().filename().c_str()));
      if (stat && stat->state == 'D') return true;
    }
  }
  return false;
}

void ServerMonitor::probe(std::uint32_t process) const noexcept {
  for (const auto& [host_pid, watch] : watches_) {
    if (watch->process == process) {
      (void)::syscall(SYS_pidfd_send_signal, watch->pidfd, SIGURG, nullptr, 0);
    }
  }
}

pid_t ServerMonitor::host_pid(std::uint32_t process) const noexcept {
  for (const auto& [host_pid, watch] : watches_) {
    if (watch->process == process) return host_pid;
  }
  return 0;
}

std::uint32_t ServerMonitor::ending() const noexcept {
  for (const auto& [host_pid, watch] : watches_) {
    if (ended_by_schedule(*watch)) return watch->pid;
  }
  return 0;
}

bool ServerMonitor::ended_by_schedule(const Watch& watch) const noexcept {
  if (end_expected_) return true;
  const dmt::ProcessRecord& record = segment_.layout().processes[watch.process];
  if (record.gone.load(std::memory_order_seq_cst) != 0) return true;
  // The record already belongs to another process: the parent has seen the end at a turn.
  return watch.process != dmt::kMainProcess && record.pid != watch.pid;
}

void ServerMonitor::on_process(int, short, void* argument) {
  Watch& watch = *static_cast<Watch*>(argument);
  ServerMonitor& monitor = *watch.monitor;
  monitor.owner_.woke();
  ::close(watch.pidfd);
  const std::unique_ptr<Watch> gone = std::move(monitor.watches_[watch.host_pid]);
  monitor.watches_.erase(gone->host_pid);
  monitor.owner_.drain_server();
  if (!monitor.ended_by_schedule(*gone)) monitor.owner_.process_killed(gone->process, gone->pid);
}

// --- the end -------------------------------------------------------------------------------------

void ServerMonitor::on_server(int, short, void* argument) {
  ServerMonitor& monitor = *static_cast<ServerMonitor*>(argument);
  monitor.owner_.woke();
  if (!monitor.started_) {
    monitor.started();
    return;
  }
  const Result<int> status = monitor.server_->wait(0);
  monitor.take_dump();
  if (!status.ok() && status.error().code == Code::kBusy) return;
  event_del(&monitor.server_event_);
  monitor.check_ins_.take_waiting();  // the server may have ended right after it checked in
  monitor.owner_.drain_server();
  if (!monitor.checked_in_) {
    event_del(&monitor.timeout_event_);
    if (!status.ok()) {
      monitor.owner_.server_failed(ExitStatus::kServerNotStarted, status.error().message());
    } else {
      monitor.owner_.server_failed(ExitStatus::kNeverCheckedIn,
                                   monitor.why_no_checkin(status.value()));
    }
    return;
  }
  monitor.owner_.server_ended(status.ok() ? status.value() : SIGKILL);
}

void ServerMonitor::on_checkin_timeout(int, short, void* argument) {
  ServerMonitor& monitor = *static_cast<ServerMonitor*>(argument);
  monitor.owner_.woke();
  monitor.owner_.server_failed(
      ExitStatus::kNeverCheckedIn,
      fmt::format(
          "{} runs but did not load libcrane.so within {} s (a static or setuid program, or "
          "one started by a wrapper that clears LD_PRELOAD?){}",
          monitor.server_as_.command[0], kCheckinTimeout.tv_sec, monitor.log_tail()));
}

std::string ServerMonitor::why_no_checkin(int status) const {
  std::string how;
  if (WIFSIGNALED(status)) {
    how = fmt::format("was killed by signal {}", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == kExecFailed) {
    how = "could not be executed (it is missing or not executable, or it lacks a library)";
  } else if (WEXITSTATUS(status) == kRefusedByLibrary) {
    how = "was refused by libcrane.so";
  } else {
    how = fmt::format("exited with status {} before it loaded libcrane.so (static or setuid?)",
                      WEXITSTATUS(status));
  }
  const std::string tail = log_tail();
  // A message of AddressSanitizer, which must be loaded before libcrane.so.
  const bool is_asan_order = tail.find("ASan runtime does not come first") != std::string::npos;
  return fmt::format("{} {}{}{}", server_as_.command[0], how, tail,
                     is_asan_order ? "; run it with ASAN_OPTIONS=verify_asan_link_order=0" : "");
}

std::string ServerMonitor::last_refusal() const {
  std::istringstream in(end_of_log(segment_.directory() + "/runtime.log", LogBounds::kKeep));
  std::string found;
  for (std::string line; std::getline(in, line);) {
    const auto exec = line.find("exec of ");
    const auto at = line.find("fault inside libcrane.so");
    if (at != std::string::npos) found = line.substr(at);
    if (exec != std::string::npos && line.find(" is refused: ", exec) != std::string::npos) {
      found = line.substr(exec);
    }
  }
  if (found.empty()) return found;
  std::ofstream(config_.replica_dir() + "/server.log", std::ios::app) << found << '\n';
  return found;
}

std::string ServerMonitor::log_tail() const {
  std::string text;
  for (const std::string& path :
       {config_.replica_dir() + "/server.log", segment_.directory() + "/runtime.log"}) {
    text += end_of_log(path, kLogTailBytes);
  }
  if (text.size() > kLogTailBytes) text.erase(0, text.size() - kLogTailBytes);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // The message must be one line: the last line of the log; server.log has the rest.
  if (const auto line = text.rfind('\n'); line != std::string::npos) text.erase(0, line + 1);
  return text.empty() ? "" : "; its last line: " + text;
}

}  // namespace crane::node
