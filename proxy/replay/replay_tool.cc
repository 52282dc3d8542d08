// SPDX-License-Identifier: Apache-2.0
#include "proxy/replay/replay_tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace crane::node {
namespace {

constexpr int kNotThere = 127;  // as in a shell

// The process that traces this one; 0: none.
pid_t tracer_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return static_cast<pid_t>(std::atoi(line.c_str() + 10));
  }
  return 0;
}

// A child that runs a program of this machine with this process's standard descriptors.
class Child {
 public:
  ~Child() { stop(SIGKILL); }

  bool start(const std::vector<std::string>& words, std::string& why) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int output[2];
    if (::pipe2(output, O_CLOEXEC) != 0) {
      why = std::strerror(errno);
      return false;
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::signal(SIGPIPE, SIG_DFL);
      ::execvp(argv[0], argv.data());
      const int failed = errno;
      (void)!::write(output[1], &failed, sizeof failed);
      ::_exit(kNotThere);
    }
    ::close(output[1]);
    int failed = pid_ < 0 ? errno : 0;
    if (pid_ > 0) (void)!::read(output[0], &failed, sizeof failed);
    ::close(output[0]);
    if (failed == 0) return true;
    why = words[0] + ": " + std::strerror(failed) + "; install it";
    stop(SIGKILL);
    return false;
  }
  bool runs() {
    if (pid_ <= 0) return false;
    if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
    pid_ = -1;
    return false;
  }
  void stop(int signal) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

class Debugger : public ReplayTool {
 public:
  bool ready() override { return tracer_of(server_) != 0; }
  bool looks() override { return tracer_of(server_) != 0; }
  // A debugger stops at the signal and does not pass it on.
  void at_end() override {
    if (looks()) ::kill(server_, SIGINT);
  }

 protected:
  pid_t server_ = -1;
};

class WaitingForDebugger final : public Debugger {
 public:
  Outcome start(pid_t server, std::string&) override {
    server_ = server;
    std::fprintf(stderr,
                 "crane-replay: the server waits for a debugger: gdb -p %d -ex 'handle SIGSYS "
                 "SIGURG nostop noprint pass'\n",
                 server);
    return Done{};
  }
};

class Gdb final : public Debugger {
 public:
  explicit Gdb(std::vector<std::string> commands) : commands_(std::move(commands)) {}
  ~Gdb() override { Gdb::stop(); }

  Outcome start(pid_t server, std::string& why) override {
    server_ = server;
    // Crane uses both signals: for calls that bypass libc, and for probes of the stall rule.
    std::vector<std::string> words{"gdb", "-q",
                                   "-p",  std::to_string(server),
                                   "-ex", "handle SIGSYS SIGURG nostop noprint pass"};
    if (!commands_.empty()) words.insert(words.begin() + 1, "-batch");
    for (const std::string& file : commands_) words.insert(words.end(), {"-x", file});
    if (!gdb_.start(words, why)) return Error{Code::kNotFound, 0, "gdb"};
    return Done{};
  }
  // If gdb ended before it attached, the replay runs without it.
  bool ready() override { return Debugger::ready() || !gdb_.runs(); }
  bool looks() override { return gdb_.runs(); }
  bool interactive() const override { return true; }
  void stop() override { gdb_.stop(SIGTERM); }

 private:
  const std::vector<std::string> commands_;
  Child gdb_;
};

class Perf final : public ReplayTool {
 public:
  explicit Perf(std::string file) : file_(std::move(file)) {}
  ~Perf() override {
    Perf::stop();
    for (const int fd : {control_[0], control_[1], answer_[0], answer_[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }

  Outcome start(pid_t server, std::string& why) override {
    if (::pipe(control_) != 0 || ::pipe(answer_) != 0) return system_error("pipe");
    ::fcntl(control_[1], F_SETFD, FD_CLOEXEC);
    ::fcntl(answer_[0], F_SETFD, FD_CLOEXEC);
    const std::string control =
        "fd:" + std::to_string(control_[0]) + "," + std::to_string(answer_[1]);
    if (!perf_.start({"perf", "record", "-q", "-g", "-o", file_, "--control", control, "-D", "-1",
                      "-p", std::to_string(server)},
                     why)) {
      return Error{Code::kNotFound, 0, "perf"};
    }
    (void)!::write(control_[1], "enable\n", 7);
    return Done{};
  }
  // Ready when perf has answered; if perf has ended, the replay runs without it.
  bool ready() override {
    pollfd answer{answer_[0], POLLIN, 0};
    return ::poll(&answer, 1, 0) > 0 || !perf_.runs();
  }
  void stop() override { perf_.stop(SIGINT); }

 private:
  const std::string file_;
  Child perf_;
  int control_[2] = {-1, -1}, answer_[2] = {-1, -1};
};

}  // namespace

std::unique_ptr<ReplayTool> make_gdb(std::vector<std::string> commands) {
  return std::make_unique<Gdb>(std::move(commands));
}

std::unique_ptr<ReplayTool> make_waiting_for_debugger() {
  return std::make_unique<WaitingForDebugger>();
}

std::unique_ptr<ReplayTool> make_perf(std::string file) {
  return std::make_unique<Perf>(std::move(file));
}

}  // namespace crane::node
