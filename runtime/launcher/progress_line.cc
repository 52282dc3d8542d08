// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/progress_line.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "runtime/setup/messages.h"

namespace crane::launcher {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirst{1000}, kOnTerminal{200}, kElsewhere{1000};

std::atomic<bool> shown = true;

void write_error(const std::string& text) {
  // A closed standard error is noticed by the messages of the command itself.
  (void)!::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void show_progress(bool on) { shown = on; }

ProgressLine::ProgressLine(std::string step, std::uint64_t of, control::Unit unit)
    : step_(std::move(step)), unit_(unit), of_(of) {
  if (!shown) return;
  // Signals are for the command's own thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this](const std::stop_token& stopped) { show_until_stopped(stopped); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressLine::~ProgressLine() = default;

void ProgressLine::show_until_stopped(const std::stop_token& stopped) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto began = Clock::now();
  control::ProgressMeter meter;
  bool written = false;
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const auto sample = [&] {
    const auto ns = std::chrono::nanoseconds(Clock::now() - began).count();
    meter.step(done_, of_, ns);
    return ns / 1'000'000'000;
  };
  sample();
  auto pause = kFirst;
  while (!wake.wait_for(lock, stopped, pause, [&] { return stopped.stop_requested(); })) {
    pause = terminal ? kOnTerminal : kElsewhere;
    const auto seconds = sample();
    const std::string how_far = control::text_of(meter.progress(), unit_);
    const std::string text =
        step_ + ": " + (how_far.empty() ? std::to_string(seconds) + " s" : how_far);
    if (terminal) {
      write_error("\r" + text + "\x1b[K");
      written = true;
    } else {
      setup::say(text);
    }
  }
  if (written) write_error("\r\x1b[K");
}

}  // namespace crane::launcher
