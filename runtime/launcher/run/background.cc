// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/background.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/launcher/run/end_signals.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

using setup::failure;
using setup::print_message;
using setup::Status;

constexpr char kUp = 'U', kEnded = 'E';

int fail(const Error& problem) {
  print_message(problem.text, setup::Level::kError);
  return problem.exit_status;
}

void pass_on(int signals, pid_t child) {
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof info) == sizeof info) {
    kill(child, info.ssi_signo == SIGINT ? SIGINT : SIGTERM);
  }
}

// Reads until the new process has closed its end.
std::string read_report(int pipe, int signals, pid_t child) {
  std::string text;
  for (;;) {
    pollfd fds[] = {{pipe, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) pass_on(signals, child);
    if (fds[0].revents == 0) continue;
    char part[4096];
    const ssize_t got = read(pipe, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

std::string end_of(int wait) {
  return WIFSIGNALED(wait) ? fmt::format("signal {} killed it", WTERMSIG(wait))
                           : fmt::format("it ended with status {}", WEXITSTATUS(wait));
}

// Returns the exit status of the first process.
int wait_for(pid_t child, int pipe) {
  const sigset_t set = end_signals();
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const std::optional<StartReport> report = parse_report(read_report(pipe, signals, child));
  close(pipe);
  if (signals >= 0) close(signals);
  if (report && report->up) {
    std::fputs(report->text.c_str(), stdout);
    return 0;
  }
  int wait = 0;
  while (waitpid(child, &wait, 0) < 0 && errno == EINTR) {
  }
  if (report) return report->status;
  return fail(failure(Status::kSystem, "the group did not start in the background",
                      fmt::format("process {}", child), end_of(wait),
                      "run the same command again: it continues with what is left"));
}

}  // namespace

Background::~Background() {
  if (pipe_ >= 0) close(pipe_);
}

std::optional<int> Background::leave() {
  const sigset_t set = end_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);  // none is lost between here and both processes' signalfds
  int ends[2];
  const bool made = pipe2(ends, O_CLOEXEC) == 0;
  const pid_t child = made ? fork() : -1;
  if (child < 0) {
    return fail(failure(Status::kSystem, "cannot go to the background", "fork", strerror(errno),
                        "see the limits of this machine"));
  }
  if (child > 0) {
    close(ends[1]);
    return wait_for(child, ends[0]);
  }
  close(ends[0]);
  pipe_ = ends[1];
  setsid();
  signal(SIGPIPE, SIG_IGN);  // the first process may be killed
  if (const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  return std::nullopt;
}

void Background::up(const std::string& text, int log) {
  const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (log >= 0) setup::print_only_to_copy();
  if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
  if (log >= 0 || nothing >= 0) dup2(log >= 0 ? log : nothing, STDERR_FILENO);
  if (nothing >= 0) close(nothing);
  report(text_of({true, 0, text}));
}

int Background::ended(int status) {
  report(text_of({false, status, {}}));
  return status;
}

void Background::report(const std::string& text) {
  const int pipe = std::exchange(pipe_, -1);
  if (pipe < 0) return;  // it was up
  (void)!write(pipe, text.data(), text.size());
  close(pipe);
}

std::string text_of(const StartReport& report) {
  return report.up ? kUp + report.text : fmt::format("{}{}\n", kEnded, report.status);
}

std::optional<StartReport> parse_report(const std::string& text) {
  if (text.empty()) return {};
  if (text[0] == kUp) return StartReport{true, 0, text.substr(1)};
  if (text.size() < 3) return {};
  StartReport report;
  const char* const end = text.data() + text.size() - 1;
  const auto [at, error] = std::from_chars(text.data() + 1, end, report.status);
  const bool whole = text[0] == kEnded && text.back() == '\n' && at == end && error == std::errc{};
  if (!whole) return {};
  return report;
}

std::string introduction_of(const std::string& home) {
  const std::string name = std::filesystem::path(home).filename();
  return fmt::format(
      "group {0} runs in the background\n"
      "  directory    {1}\n"
      "  log          {1}/{2}\n"
      "  its state    crane-ctl status {0}\n"
      "  its output   crane-ctl logs -f {0}\n"
      "  its end      crane-ctl stop {0}\n",
      name, home, setup::kGroupLog);
}

}  // namespace crane::launcher
