// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <utility>

#include "runtime/setup/messages.h"

namespace crane::setup {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kOnTerminalNs = kSecond / 5;
constexpr std::int64_t kPauseLeastMs = 10;

std::atomic<bool> shown = true;
std::atomic<std::int64_t> last_line_ns = 0;  // of all steps

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_error(const std::string& text) {
  // The messages of the command itself notice that standard error is closed.
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void show_progress(bool on) { shown = on; }

void ProgressWriter::hide() {
  if (std::exchange(on_line_, false)) write_error("\r\x1b[K");
}

std::int64_t ProgressWriter::pause_ms() const noexcept {
  return std::max((next_ns_ - now_ns()) / 1'000'000, kPauseLeastMs);
}

void ProgressWriter::show(std::uint64_t done, std::uint64_t of) {
  if (!shown) return;
  const std::int64_t now = now_ns();
  if (began_ns_ < 0) {
    began_ns_ = now;
    next_ns_ = first_line_ns(now, last_line_ns);
    on_terminal_ = ::isatty(STDERR_FILENO) != 0;
  }
  meter_.step(done, of, now);
  if (now < next_ns_) return;
  next_ns_ = now + (on_terminal_ ? kOnTerminalNs : kLineEveryNs);
  last_line_ns = now;
  written_ = true;
  // For the meter the whole is never less than what is done.
  const std::string how_far = of == 0 ? "" : control::text_of(meter_.progress(), unit_);
  const std::string text =
      step_ + ": " +
      (how_far.empty() ? std::to_string((now - began_ns_) / kSecond) + " s" : how_far);
  on_line_ = on_terminal_;
  on_terminal_ ? write_error("\r" + text + "\x1b[K") : print_message(text);
}

ProgressLine::ProgressLine(std::string step, std::uint64_t of, control::Unit unit)
    : writer_(std::move(step), unit), of_(of) {
  if (!shown) return;
  // Signals are for the command's own thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this](const std::stop_token& stopped) { show_until_stopped(stopped); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ProgressLine::show_until_stopped(const std::stop_token& stopped) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  do {
    writer_.show(done_, of_);
  } while (!wake.wait_for(lock, stopped, std::chrono::milliseconds(writer_.pause_ms()),
                          [&] { return stopped.stop_requested(); }));
}

}  // namespace crane::setup
