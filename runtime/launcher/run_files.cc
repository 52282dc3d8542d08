// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run_files.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "dmt/base/process_stat.h"
#include "dmt/base/read_text.h"
#include "runtime/control/schema.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::int64_t unix_ms_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Whether the process has this file open.
bool has_open(pid_t pid, const struct stat& file) {
  std::error_code failed;  // also if the process ends meanwhile
  fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    struct stat one {};
    if (::stat(entry->path().c_str(), &one) != 0) continue;
    if (one.st_dev == file.st_dev && one.st_ino == file.st_ino) return true;
  }
  return false;
}

}  // namespace

std::string text_of(const ExitNote& note) {
  return Json{{"status", note.status}, {"unix_ms", note.unix_ms}}.dump() + "\n";
}

std::optional<ExitNote> parse_exit_note(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  const auto status = json.find("status"), at = json.find("unix_ms");
  const bool whole = status != json.end() && status->is_number_integer() && at != json.end() &&
                     at->is_number_integer();
  if (!whole) return {};
  return ExitNote{status->get<int>(), at->get<std::int64_t>()};
}

std::string description_of(const ExitNote& note) {
  const std::time_t seconds = note.unix_ms / 1000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("exit status {}, at {:%Y-%m-%dT%H:%M:%S%z}", note.status, local);
}

std::optional<ExitNote> read_exit_note(int fd) {
  char text[256];
  const ssize_t got = fd >= 0 ? ::pread(fd, text, sizeof text, 0) : -1;
  if (got <= 0) return {};
  return parse_exit_note(std::string(text, static_cast<std::size_t>(got)));
}

std::optional<ExitNote> read_exit_note(const std::string& home) {
  const int fd = ::open((home + "/" + kExitStatus).c_str(), O_RDONLY | O_CLOEXEC);
  const auto note = read_exit_note(fd);
  if (fd >= 0) ::close(fd);
  return note;
}

pid_t crane_run_of(const std::string& home) {
  struct stat lock {};
  if (::stat((home + "/lock").c_str(), &lock) != 0 || !setup::is_held(home)) return 0;
  const Json state = Json::parse(text_of_file(home + "/state.json"), nullptr, false);
  const std::uint64_t recorded = control::number_in(state, "pid");
  if (recorded == 0 || recorded > INT_MAX) return 0;
  const auto pid = static_cast<pid_t>(recorded);
  return has_open(pid, lock) ? pid : 0;
}

CraneRun find_crane_run(const std::string& home) {
  CraneRun run;
  const pid_t pid = crane_run_of(home);
  if (pid == 0) return run;
  run.note =
      checkpoint::Descriptor(::open((home + "/" + kExitStatus).c_str(), O_RDONLY | O_CLOEXEC));
  run.pidfd = checkpoint::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Checked again, because another process may have got the pid before pidfd_open().
  if (run.pidfd && crane_run_of(home) == pid) run.pid = pid;
  return run;
}

CraneRunEnd end_crane_run(const CraneRun& run, const std::function<void()>& waits) {
  constexpr int kLookMs = 500, kLooksUntilWaits = 20;
  const auto send = [&run](int signo) {
    return syscall(SYS_pidfd_send_signal, run.pidfd.get(), signo, nullptr, 0) == 0;
  };
  if (!send(SIGTERM) && errno != ESRCH) return {errno, {}};
  pollfd end{run.pidfd.get(), POLLIN, 0};
  for (int looks = 1;; ++looks) {
    // A stopped process gets SIGTERM only when it continues.
    if (const auto stat = read_process_stat(run.pid); stat && is_stopped(*stat))
      (void)send(SIGCONT);
    if (poll(&end, 1, kLookMs) > 0) break;
    if (looks == kLooksUntilWaits) waits();
  }
  return {0, read_exit_note(run.note.get())};
}

RunFiles::~RunFiles() {
  setup::copy_messages_to(-1);
  for (const int fd : {log_, status_}) {
    if (fd >= 0) ::close(fd);
  }
}

void RunFiles::open(const std::string& home) {
  home_ = home;
  const auto open_one = [&home](const char* name, int how) {
    const std::string path = home + "/" + name;
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0600);
    if (fd < 0)
      setup::print_message("cannot write " + path + ": " + strerror(errno), setup::Level::kWarning);
    return fd;
  };
  log_ = open_one(setup::kGroupLog, O_APPEND);
  status_ = open_one(kExitStatus, O_TRUNC);
  setup::copy_messages_to(log_);
}

void RunFiles::ended(int status) const {
  const std::string text = text_of({status, unix_ms_now()});
  if (status_ >= 0) (void)!::write(status_, text.data(), text.size());
}

}  // namespace crane::launcher
