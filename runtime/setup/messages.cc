// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/messages.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

#include "dmt/base/clock.h"
#include "runtime/setup/patient_write.h"

namespace crane::setup {
namespace {

constexpr std::size_t kKeptMost = 1 << 20;  // bytes kept for a stopped reader
constexpr int kFinishMs = 5'000;

bool verbose = false, keeps_a_log = false, waits_for_reader = true;
std::string kept;         // lines not yet written, if !waits_for_reader
int copy = -1;            // a file that gets each line, too
bool only_copy = false;   // lines do not go to stderr
std::size_t dropped = 0;  // number of lines dropped because `kept` was full
const char* program = "crane-run";

// Whether stderr is systemd's journal, which JOURNAL_STREAM identifies.  The result is cached,
// because a crane-run that takes a group over later has the environment of the first crane-run.
bool is_journal() {
  static const bool journal = [] {
    const char* const stream = getenv("JOURNAL_STREAM");
    struct stat info {};
    return stream != nullptr && fstat(STDERR_FILENO, &info) == 0 &&
           std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) == stream;
  }();
  return journal;
}

std::string time_now() {
  const time_t now = time(nullptr);
  tm local{};
  char text[40];
  localtime_r(&now, &local);
  return {text, strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z ", &local)};
}

}  // namespace

Error failure(Status status, std::string text) {
  CRANE_ASSERT(status != Status::kOk);
  return {Code::kSystem, 0, "crane", std::move(text), static_cast<int>(status)};
}

Error failure(Status status, const std::string& what, const std::string& object,
              const std::string& cause, const std::string& advice) {
  return failure(status, what + ": " + object + ": " + cause + "; " + advice);
}

Status status_of(const Outcome& outcome) {
  return outcome.ok() ? Status::kOk : static_cast<Status>(outcome.error().exit_status);
}

// Only a file needs the time: a terminal's reader sees when a line comes, and the journal adds it.
std::string head_of(Level level) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (is_journal()) return "<" + std::to_string(static_cast<int>(level)) + ">";
  return !keeps_a_log || terminal ? "" : time_now();
}

std::string without_time(const std::string& line) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00+0000 ";  // time_now()
  if (line.size() < kForm.size()) return line;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = line[i] >= '0' && line[i] <= '9';
    const bool sign = kForm[i] == '+' && line[i] == '-';
    if (kForm[i] == '0' ? !digit : line[i] != kForm[i] && !sign) return line;
  }
  return line.substr(kForm.size());
}

void print_message(const std::string& text, Level level) {
  if (copy >= 0) {
    const std::string line = time_now() + program + ": " + text + "\n";
    (void)!write(copy, line.data(), line.size());
    if (only_copy) return;
  }
  // Uses one write(), so that lines of several programs on one terminal do not mix.
  const std::string line = head_of(level) + program + ": " + text + "\n";
  if (waits_for_reader) {
    (void)!write(STDERR_FILENO, line.data(), line.size());
    return;
  }
  if (kept.size() + line.size() > kKeptMost) {
    ++dropped;
  } else {
    kept += line;
  }
  flush_messages();
}

void copy_messages_to(int file) { copy = file; }

void print_only_to_copy() {
  only_copy = true;
  kept.clear();
  dropped = 0;
}

void print_without_waiting() { waits_for_reader = false; }

bool has_kept_messages() { return !kept.empty(); }

void flush_messages() {
  while (!kept.empty()) {
    const ssize_t n = write_what_fits(STDERR_FILENO, kept.data(), kept.size());
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) {  // there is no reader any more
      kept.clear();
      return;
    }
    kept.erase(0, static_cast<std::size_t>(n));
    if (kept.empty() && dropped > 0) {
      kept = head_of(Level::kWarning) + program + ": " + std::to_string(std::exchange(dropped, 0)) +
             " lines are missing here, because the reader of this output was stopped\n";
    }
  }
}

void finish_messages() {
  const std::int64_t until = monotonic_ns() + kFinishMs * 1'000'000LL;
  for (flush_messages(); has_kept_messages() && monotonic_ns() < until; flush_messages()) {
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    (void)::poll(&room, 1, kFinishMs / 50);
  }
}

void keep_log() {
  keeps_a_log = true;
  (void)is_journal();
}

void set_program(const char* name) { program = name; }

void set_verbose(bool on) { verbose = on; }

void detail(const std::string& text) {
  if (verbose) print_message(text);
}

}  // namespace crane::setup
