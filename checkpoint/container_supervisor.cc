// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/container_supervisor.h"
#include "dmt/base/clock.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "checkpoint/fault_points.h"
#include "dmt/base/process_stat.h"

namespace crane::checkpoint {
namespace {

constexpr int kStartTimeoutMs = 30'000;
constexpr int kEndTimeoutMs = 10'000;
constexpr int kPollStepMs = 2;
// How often the supervisor checks that the server still runs while CRIU works.
constexpr int kLookMs = 50;

// Closes everything above 2 except `keep` (sorted, distinct, all above 2).
void close_all_but(const std::vector<int>& keep) noexcept {
  unsigned next = 3;
  for (int fd : keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept > next) close_range(next, kept - 1, 0);
    next = kept + 1;
  }
  close_range(next, ~0U, 0);
}

// Whether a container's first process is ending: the kernel kills the other processes and waits for
// them. Processes that CRIU traces do not end until CRIU notices it, which it may never do.
bool is_ending(pid_t pid) {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING of the kernel
  const auto stat = read_process_stat(pid);
  return !stat || stat->state == 'Z' || stat->state == 'X' || (stat->flags & kExiting) != 0;
}

}  // namespace

bool is_root() noexcept { return geteuid() == 0; }

std::int64_t now_ms() noexcept { return monotonic_ns() / 1'000'000; }

std::int64_t now_us() noexcept { return monotonic_ns() / 1'000; }

int open_pidfd(pid_t pid) noexcept { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool is_on_overlay(const std::string& path) noexcept {
  constexpr long kOverlayMagic = 0x794c7630;
  struct statfs kind {};
  return statfs(path.c_str(), &kind) == 0 && kind.f_type == kOverlayMagic;
}

Outcome make_directories(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure && !std::filesystem::is_directory(path)) {
    return Error{Code::kSystem, failure.value(), "create directory"};
  }
  return Done{};
}

OwnedDirectory::OwnedDirectory(const std::string& word) {
  const auto colon = word.empty() || word[0] == '/' ? std::string::npos : word.find(":/");
  path = colon == std::string::npos ? word : word.substr(colon + 1);
  if (colon != std::string::npos) user = word.substr(0, colon);
}

Outcome change_owner(const OwnedDirectory& directory, const std::string& place) {
  if (directory.user.empty() || !is_root()) return Done{};
  const passwd* user = getpwnam(directory.user.c_str());
  if (user == nullptr) return Done{};  // the server itself reports the missing user
  if (lchown(place.c_str(), user->pw_uid, user->pw_gid) != 0) return system_error("lchown");
  return Done{};
}

void remove_tree(const std::string& path) noexcept {
  struct stat top {};
  if (lstat(path.c_str(), &top) != 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void set_standard_fds(int stdout_fd, int stderr_fd) noexcept {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, 0);
  // Move both above 2 first: either may be 1 or 2 itself.
  const int out = fcntl(stdout_fd < 0 ? nothing : stdout_fd, F_DUPFD_CLOEXEC, 10);
  const int err = fcntl(stderr_fd < 0 ? nothing : stderr_fd, F_DUPFD_CLOEXEC, 10);
  dup2(out, 1);
  dup2(err, 2);
  close(out);
  close(err);
  if (nothing > 2) close(nothing);
}

Outcome enter_private_mounts() {
  if (unshare(CLONE_NEWNS) != 0) return system_error("unshare the mount namespace");
  // Slave, not private: an unmount on the machine also happens here, so this namespace keeps no
  // device busy.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return system_error("stop mount propagation");
  }
  return Done{};
}

Outcome bind_mount(const std::string& source, const std::string& target) {
  struct stat info {};
  if (stat(source.c_str(), &info) != 0)
    return Error{Code::kNotFound, errno, "bind: find its source"};
  if (S_ISDIR(info.st_mode)) {
    if (auto made = make_directories(target); !made) return made;
  } else {
    auto made = make_directories(std::filesystem::path(target).parent_path());
    if (!made) return made;
    const int fd = open(target.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0644);
    if (fd < 0) return system_error("bind: create its target");
    close(fd);
  }
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return system_error("bind mount");
  }
  return Done{};
}

// --- the supervisor ------------------------------------------------------------------------------

void ContainerSupervisor::report(const Report& report) {
  // The node may be gone already; then the report is not needed.
  (void)send(channel_, &report, sizeof report, MSG_NOSIGNAL);
}

void ContainerSupervisor::detach_from_node() {
  setsid();  // a terminal's signals are for crane-run, which stops this process in order
  prctl(PR_SET_NAME, "crane-container");
  sigset_t none;
  sigemptyset(&none);
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // Clients' sockets must not stay open in this process when the node dies.
  std::vector<int> keep{channel_};
  for (int fd :
       {server_.options_.stdout_fd, server_.options_.stderr_fd, server_.options_.held_fd}) {
    if (fd > 2) keep.push_back(fd);
  }
  std::sort(keep.begin(), keep.end());
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  close_all_but(keep);
}

Outcome ContainerSupervisor::start() {
  if (!server_.restore_.images.empty()) return restore();
  if (auto prepared = server_.prepare(); !prepared) return prepared;
  auto launched = server_.launch();
  if (!launched) return launched.error();
  server_.direct_child_ = launched.value();
  fault_point(kLaunched);
  return wait_for_first();
}

Outcome ContainerSupervisor::wait_for_first() {
  for (const auto deadline = now_ms() + kStartTimeoutMs; now_ms() < deadline;) {
    auto first = server_.find_first();
    if (first) {
      server_.first_ = first.value();
      return Done{};
    }
    if (first.error().code != Code::kBusy) return first.error();
    if (waitpid(server_.direct_child_, &child_status_, WNOHANG) == server_.direct_child_) {
      child_ended_ = true;
      // The server may have run and ended before it was seen; this is a normal start.
      auto status = server_.server_status(child_status_);
      if (!status) return status.error();
      return Done{};
    }
    poll(nullptr, 0, kPollStepMs);
  }
  return Error{Code::kSystem, ETIMEDOUT, "wait for the server's first process"};
}

// Waits until the server ends, or the node closes its end (destroy, or death); dumps on request.
// While CRIU controls the server, waits for CRIU, unless the server is ending.
void ContainerSupervisor::wait_for_end() {
  const int watch = child_ended_ ? -1 : open_pidfd(server_.direct_child_);
  const auto criu_controls = [this] { return dump_ && dump_->touches_server(); };
  while (!child_ended_ && !server_lost_ && !end_requested_ && (!node_lost_ || criu_controls())) {
    pollfd fds[3] = {{node_lost_ ? -1 : channel_, POLLIN, 0},
                     {criu_controls() ? -1 : watch, POLLIN, 0},
                     {dump_ ? dump_->channel : -1, POLLIN, 0}};
    int wait_ms = dump_timeout_ms();
    if (criu_controls()) wait_ms = wait_ms < 0 ? kLookMs : std::min(wait_ms, kLookMs);
    if (poll(fds, 3, wait_ms) < 0) continue;
    if (fds[0].revents != 0) take_requests();
    if (criu_controls() && is_ending(server_.first_)) ::kill(-dump_->criu, SIGKILL);
    if (dump_) read_criu_messages();
    if (fds[1].revents != 0) {
      child_ended_ = waitpid(server_.direct_child_, &child_status_, 0) == server_.direct_child_;
    }
  }
  if (dump_) leave_dump();
  if (watch >= 0) close(watch);
}

int ContainerSupervisor::finish() {
  server_.end_all();
  const auto deadline = now_ms() + kEndTimeoutMs;
  while (!child_ended_ && server_.direct_child_ > 0) {
    const pid_t got = waitpid(server_.direct_child_, &child_status_, WNOHANG);
    if (got != 0) break;
    if (now_ms() > deadline) {
      ::kill(server_.direct_child_, SIGKILL);
      waitpid(server_.direct_child_, &child_status_, 0);
      break;
    }
    poll(nullptr, 0, kPollStepMs);
  }
  const auto status = server_.server_status(child_status_);
  take_requests();  // requests that the node sent before the end
  // No process of the server runs any more.
  if (!kept_.empty()) {
    if (const Outcome kept = server_.move_upper(kept_); !kept) keep_error_ = kept.error();
  }
  server_.clean();
  return status ? status.value() : SIGKILL;
}

void ContainerSupervisor::run() {
  detach_from_node();
  if (auto started = start(); !started) {
    Report failed{Report::Kind::kFailed};
    failed.error.take(started.error());
    reason_.copy(failed.reason, kReasonMax - 1);
    (void)finish();
    report(failed);
    _exit(1);
  }
  Report running{Report::Kind::kStarted};
  running.pid = server_.first_;
  running.times = times_;
  report(running);
  wait_for_end();
  Report ended{Report::Kind::kEnded};
  ended.status = finish();
  ended.error.take(keep_error_);
  report(ended);
  _exit(0);
}

// --- the node's side ----------------------------------------------------------------------------

Server::~Server() { (void)destroy(); }

Outcome Server::begin() {
  CRANE_ASSERT(supervisor_ < 0 && !options_.command.empty());
  if (options_.command[0].empty() || options_.command[0][0] != '/') {
    return Error{Code::kBadArgument, 0, "the program's path is not absolute"};
  }
  return fork_supervisor();
}

Outcome Server::fork_supervisor() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("socketpair");
  }
  supervisor_ = fork();
  if (supervisor_ == 0) {
    close(ends[0]);
    // The channel must not be a standard descriptor: the supervisor closes those by their numbers.
    const int channel = fcntl(ends[1], F_DUPFD_CLOEXEC, 20);
    ContainerSupervisor(*this, channel).run();
  }
  close(ends[1]);
  if (supervisor_ < 0) {
    close(ends[0]);
    return system_error("fork");
  }
  channel_ = ends[0];
  return Done{};
}

Result<pid_t> Server::started(int timeout_ms) {
  CRANE_ASSERT(channel_ >= 0);
  pollfd fd{channel_, POLLIN, 0};
  if (poll(&fd, 1, timeout_ms) <= 0) return Error{Code::kBusy, 0, "the server is being started"};
  Report report{};
  const ssize_t got = recv(channel_, &report, sizeof report, 0);
  if (got == sizeof report && report.kind == Report::Kind::kStarted) {
    first_ = report.pid;
    restore_times_ = report.times;
    return first_;
  }
  const Error error = got == sizeof report ? report.error.error()
                                           : Error{Code::kSystem, ECHILD, "the supervisor died"};
  reason_ = report.reason;
  ended_ = true;
  (void)destroy();
  return error;
}

Result<pid_t> Server::start() {
  if (const Outcome begun = begin(); !begun) return begun.error();
  return started(-1);
}

// Returns whether a report came, and records its content.
bool Server::take_report(int timeout_ms) {
  pollfd fd{channel_, POLLIN, 0};
  if (poll(&fd, 1, timeout_ms) <= 0) return false;
  Report report{Report::Kind::kEnded};
  const ssize_t got = recv(channel_, &report, sizeof report, 0);
  if (got == sizeof report && report.kind == Report::Kind::kPrepared) {
    if (dump_ == Dump::kPreparing) dump_ = Dump::kPrepared;
    return true;
  }
  if (got == sizeof report && report.kind == Report::Kind::kDumped) {
    dump_ = dump_ == Dump::kCancelled ? Dump::kNone : Dump::kAnswered;
    dump_error_ = report.error.error();
    dump_times_ = report.times;
    reason_ = report.reason;
    return true;
  }
  ended_ = true;
  // A supervisor that could not report was killed, and the server with it.
  status_ = got == sizeof report ? report.status : SIGKILL;
  keep_error_ =
      got == sizeof report ? report.error.error() : Error{Code::kSystem, 0, "the supervisor died"};
  if (dump_ == Dump::kPreparing || dump_ == Dump::kPrepared || dump_ == Dump::kUnderWay) {
    dump_ = Dump::kAnswered;
    dump_error_ = Error{Code::kNotFound, 0, "the server ended"};
  }
  return true;
}

Result<int> Server::wait(int timeout_ms) {
  CRANE_ASSERT(channel_ >= 0 || ended_);
  while (!ended_) {
    if (!take_report(timeout_ms)) return Error{Code::kBusy, 0, "the server still runs"};
  }
  return status_;
}

void Server::kill(int signo) noexcept {
  if (first_ > 0 && !ended_) ::kill(first_, signo);
}

Outcome Server::destroy() {
  if (channel_ >= 0) {
    shutdown(channel_, SHUT_WR);
    close(channel_);
    channel_ = -1;
  }
  if (supervisor_ > 0) {
    int ignored = 0;
    while (waitpid(supervisor_, &ignored, 0) < 0 && errno == EINTR) {
    }
    supervisor_ = -1;
  }
  ended_ = true;
  return Done{};
}

}  // namespace crane::checkpoint
