// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "checkpoint/orphans.h"
#include "dmt/base/clock.h"

namespace crane::launcher {
namespace {

constexpr std::size_t kLineMax = 1 << 20;  // longer ones are cut
constexpr int kPipeBytes = 1 << 18;        // room for a message with the largest secret
constexpr int kLeftTimeoutMs = 10'000;

struct Ends {
  int ours = -1, theirs = -1;
};

// `to_child`: this process writes.
bool make_pipe(bool to_child, Ends& ends) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  ends = to_child ? Ends{fds[1], fds[0]} : Ends{fds[0], fds[1]};
  fcntl(ends.ours, F_SETFL, O_NONBLOCK);
  fcntl(ends.ours, F_SETPIPE_SZ, kPipeBytes);
  return true;
}

[[noreturn]] void become(const std::vector<std::string>& argv, ParentDeathPolicy parent_death,
                         pid_t parent, int in, int out, int err) {
  setsid();  // Ctrl-C is for crane-run
  if (parent_death == ParentDeathPolicy::kParent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // AGENT-2
    if (getppid() != parent) _exit(1);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  close_range(3, ~0U, 0);
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const std::string why = argv[0] + ": " + strerror(errno) + "\n";
  (void)!write(2, why.data(), why.size());
  _exit(errno == ENOENT ? 127 : 126);
}

}  // namespace

bool spawn_child(const std::vector<std::string>& argv, ParentDeathPolicy parent_death,
                 Child& child) {
  Ends in, out, err;
  bool good = make_pipe(false, out);
  if (parent_death == ParentDeathPolicy::kPipes) {
    good = good && make_pipe(true, in) && make_pipe(false, err);
  } else {
    in.theirs = open("/dev/null", O_RDONLY | O_CLOEXEC);
    good = good && in.theirs >= 0;
  }
  const pid_t parent = getpid();
  child.pid = good ? fork() : -1;
  if (child.pid == 0) {
    become(argv, parent_death, parent, in.theirs, out.theirs,
           err.theirs >= 0 ? err.theirs : out.theirs);
  }
  const int why = errno;
  for (const Ends& ends : {in, out, err}) {
    if (ends.theirs >= 0) close(ends.theirs);
    if (child.pid < 0 && ends.ours >= 0) close(ends.ours);
  }
  if (child.pid > 0) {
    child.in = in.ours;
    child.out = out.ours;
    child.err = err.ours;
  }
  errno = why;
  return child.pid > 0;
}

bool Lines::read_from(int fd, const std::function<void(const std::string&)>& take) {
  char buffer[16384];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0) {
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] == '\n') {
        if (!rest_.empty() && rest_.back() == '\r') rest_.pop_back();  // from ssh's own messages
        take(rest_);
        rest_.clear();
      } else if (rest_.size() < kLineMax) {
        rest_ += buffer[i];
      }
    }
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (!rest_.empty()) take(rest_);
  rest_.clear();
  return false;
}

void wait_for_left_processes(const std::function<void()>& meanwhile) {
  const auto deadline = now_ms() + kLeftTimeoutMs;
  while (now_ms() < deadline) {
    meanwhile();
    const pid_t left = waitpid(-1, nullptr, WNOHANG);
    if (left < 0) break;
    if (left == 0) poll(nullptr, 0, 5);
  }
  checkpoint::remove_what_was_left();
}

std::int64_t now_ms() { return monotonic_ns() / 1'000'000; }

}  // namespace crane::launcher
