// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "checkpoint/background.h"
#include "dmt/base/clock.h"

namespace crane::checkpoint {
namespace {

constexpr int kChannel = 3;  // in the child
// ioprio_set(2); <linux/ioprio.h> is not C++.
constexpr int kOneProcess = 1, kLowestPriority = (2 << 13) | 7;

// A message is a letter, fields, and a zero byte; sentences contain none.
void send(char letter, const std::string& text) {
  std::string line = letter + text;
  std::replace(line.begin(), line.end(), '\0', ' ');
  // If the reader is gone, this process ends with it.
  (void)write_all(kChannel, line.c_str(), line.size() + 1);
}

// How often the job checks whether its share must grow.
constexpr timeval kUpdateInterval{0, 100'000};
constexpr int kHurry = SIGUSR1;
constexpr std::int64_t kBytesEveryNs = 100'000'000;

// Used in the child.
const Background* background;
std::int64_t began_ns;
bool urgent;
unsigned percent;

// The time spent waiting for processors. schedstat is "running waiting slices" in ns; without it,
// all time that the process did not use.
std::int64_t waited_ns() noexcept {
  char text[128];
  const int fd = ::open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? -1 : ::read(fd, text, sizeof text);
  if (fd >= 0) ::close(fd);
  const char* const end = text + std::max<ssize_t>(size, 0);
  const char* const space = std::find(static_cast<const char*>(text), end, ' ');
  std::int64_t waited = 0;
  if (space != end && std::from_chars(space + 1, end, waited).ec == std::errc()) return waited;
  return clock_ns(CLOCK_MONOTONIC) - began_ns - clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void set_share() noexcept {
  const unsigned now = WorkShare::percent(waited_ns(), urgent);
  if (now == std::exchange(percent, now)) return;
  if (background->entered()) {
    (void)background->set(now);
  } else {
    (void)::setpriority(PRIO_PROCESS, 0, WorkShare::nice_value(now));
  }
}

void update_share(int signal) {
  const int kept = errno;
  urgent = urgent || signal == kHurry;
  set_share();
  errno = kept;
}

sigset_t hurry_set() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kHurry);
  return set;
}

// A server's threads are SCHED_BATCH (proxy/host/placement.h): they do not preempt this process
// when they wake up.  So the share is small from the start.  The disk priority is the lowest of the
// usual class: a process of the idle class could wait for ever.
void yield_to_others() noexcept {
  began_ns = clock_ns(CLOCK_MONOTONIC);
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_BATCH, &none);
  Background::remove_left();  // in the child, because the node does not wait for it
  static Background place;
  background = &place;
  (void)place.enter(::getpid(), WorkShare::kLeast);
  set_share();
  struct sigaction action {};
  action.sa_handler = update_share;
  action.sa_flags = SA_RESTART;
  sigaddset(&action.sa_mask, SIGALRM);
  sigaddset(&action.sa_mask, kHurry);
  ::sigaction(SIGALRM, &action, nullptr);
  ::sigaction(kHurry, &action, nullptr);
  const itimerval often{kUpdateInterval, kUpdateInterval};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  (void)::syscall(SYS_ioprio_set, kOneProcess, 0, kLowestPriority);
}

[[noreturn]] void run(const Worker::Job& job, int channel, int keep, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NAME, "crane-ckpt");
  if (channel != kChannel) ::dup2(channel, kChannel);
  const auto kept = static_cast<unsigned>(std::max(keep, kChannel));
  if (kept > kChannel + 1) ::close_range(kChannel + 1, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  ::fcntl(kChannel, F_SETFD, FD_CLOEXEC);
  yield_to_others();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::int64_t last_ns = 0;
  const Worker::Report report{[](const std::string& line) { send('p', line); },
                              [&last_ns](std::uint64_t done, std::uint64_t of) {
                                const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
                                if (now - last_ns < kBytesEveryNs) return;
                                last_ns = now;
                                send('b', std::to_string(done) + " " + std::to_string(of));
                              }};
  const auto result = job(report);
  if (result) {
    send('r', result.value());
  } else {
    send('e',
         std::to_string(static_cast<int>(result.error().code)) + " " + result.error().message());
  }
  ::_exit(0);
}

}  // namespace

Outcome Worker::start(const Job& job, OnLine on_line, int keep) {
  CRANE_ASSERT(idle());
  CRANE_ASSERT(keep < 0 || keep > kChannel);
  on_line_ = std::move(on_line);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe2");
  channel_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  arrived_.clear();
  progress_.clear();
  done_ = of_ = 0;
  answered_ = hurries_ = false;
  const pid_t parent = ::getpid();
  // The child must be ready for hurry() from its first step.
  const sigset_t hurry = hurry_set();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &hurry, &before);
  child_ = ::fork();
  if (child_ == 0) run(job, theirs.get(), keep, parent);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child_ < 0) {
    channel_ = {};
    return system_error("fork");
  }
  return Done{};
}

void Worker::take(const std::string& line) {
  const std::string text = line.substr(1);
  if (line[0] == 'p') {
    progress_ = text;
    if (on_line_) on_line_(text);
  }
  if (line[0] == 'b') std::sscanf(text.c_str(), "%" SCNu64 " %" SCNu64, &done_, &of_);
  if (line[0] == 'r') result_ = text;
  if (line[0] == 'e') {
    const auto space = text.find(' ');
    result_ =
        failure(static_cast<Code>(std::atoi(text.c_str())), "checkpoint", text.substr(space + 1));
  }
  answered_ = answered_ || line[0] == 'r' || line[0] == 'e';
}

bool Worker::advance() {
  if (idle()) return false;
  char piece[4096];
  for (;;) {
    const ssize_t n = ::read(channel_.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) break;
    arrived_.append(piece, static_cast<std::size_t>(n));
    for (std::size_t end = 0; (end = arrived_.find('\0')) != std::string::npos;) {
      take(arrived_.substr(0, end));
      arrived_.erase(0, end + 1);
    }
  }
  if (!answered_) {
    result_ = failure(Code::kSystem, "checkpoint",
                      "the process that worked on the checkpoint was killed while " +
                          (progress_.empty() ? "starting" : progress_) +
                          "; what it left is removed when the node cleans up");
  }
  reap();
  return true;
}

void Worker::reap() noexcept {
  Background::lift(child_);  // the caller waits for its last steps
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  channel_ = {};
}

void Worker::hurry() noexcept {
  if (!idle() && !std::exchange(hurries_, true)) ::kill(child_, kHurry);
}

void Worker::stop() noexcept {
  if (idle()) return;
  ::kill(child_, SIGKILL);
  reap();
}

}  // namespace crane::checkpoint
