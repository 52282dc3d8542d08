// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/analysis_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "proxy/host/placement.h"

namespace crane::node {
namespace {

constexpr const char* kOomScoreAdjust = "1000";  // oom_score_adj
constexpr int kStopMs = 3'000, kLookMs = 10;

void write_text(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace

Outcome Engine::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    run(ends[1]);
  }
  ::close(ends[1]);
  if (pid_ < 0) {
    ::close(ends[0]);
    return system_error("fork");
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  output_ = ends[0];
  return Done{};
}

void Engine::run(int engine_output) const {
  (void)::setpriority(PRIO_PROCESS, 0, kLowestNice);
  write_text("/proc/self/oom_score_adj", kOomScoreAdjust);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  const int log = ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(nothing, 0);
  ::dup2(engine_output, 1);
  ::dup2(log >= 0 ? log : nothing, 2);
  ::close_range(3, ~0U, 0);
  const std::string replica = std::to_string(options_.replica);
  const std::array<const char*, 17> words{options_.program.c_str(),
                                          options_.directory.c_str(),
                                          "--follow",
                                          "--replica",
                                          replica.c_str(),
                                          "--valgrind",
                                          options_.tool.c_str(),
                                          "--log",
                                          options_.report.c_str(),
                                          "--place-dir",
                                          options_.place_dir.c_str(),
                                          "--place-name",
                                          options_.place_name.c_str(),
                                          "-o",
                                          "json",
                                          "-v",
                                          nullptr};
  ::execv(options_.program.c_str(), const_cast<char**>(words.data()));
  ::_exit(126);
}

bool Engine::receive(const std::function<void(const nlohmann::json&)>& take) {
  std::array<char, 16384> bytes;
  ssize_t n = 0;
  while (output_ >= 0 && (n = ::read(output_, bytes.data(), bytes.size())) > 0) {
    rest_.append(bytes.data(), static_cast<std::size_t>(n));
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos;) {
      const auto message = nlohmann::json::parse(rest_.substr(0, end), nullptr, false);
      rest_.erase(0, end + 1);
      if (message.is_object()) take(message);
    }
  }
  if (output_ < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return output_ >= 0;
  ::close(output_);
  output_ = -1;
  // The pipe is closed, so the process ends at once.
  while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  clean_up();
  return false;
}

void Engine::stop() {
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    pid_t ended = 0;
    for (int waited = 0; waited < kStopMs && ended == 0; waited += kLookMs) {
      ended = ::waitpid(pid_, &status_, WNOHANG);
      if (ended == 0) ::poll(nullptr, 0, kLookMs);
    }
    if (ended == 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status_, 0);
    }
    pid_ = -1;
    clean_up();
  }
  if (output_ >= 0) ::close(output_);
  output_ = -1;
}

// Needed after a kill, when the process could not clean up.
void Engine::clean_up() {
  std::error_code ignored;
  std::filesystem::remove_all("/dev/shm/crane." + options_.place_name, ignored);
  std::filesystem::remove_all(options_.place_dir + "/" + options_.place_name, ignored);
}

}  // namespace crane::node
