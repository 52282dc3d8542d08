// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/writer_right.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "consensus/fabric/process.h"
#include "proxy/clients/tuning.h"

namespace crane::proxy {
namespace {

// How often to check whether an earlier writer has stopped.
constexpr std::int64_t kLookNs = 200'000;

class HostProcesses final : public Processes {
 public:
  bool may_write(ProcessName name) override {
    const consensus::ProcessStat found = process_stat(name);
    return found.start != 0 && !found.main_thread_ended();
  }
  bool is_stopped(ProcessName name) override {
    const char state = process_stat(name).state;
    return state == 'T' || state == 't';
  }
  void end(ProcessName name, std::int64_t waited_ns) override;
};

void HostProcesses::end(ProcessName name, std::int64_t waited_ns) {
  const pid_t pid = pid_of(name);
  const int pidfd = consensus::open_pidfd(pid);
  if (pidfd < 0) return;
  // The number belongs to the writer as long as the descriptor's process is still the writer.
  if (may_write(name)) {
    spdlog::warn(
        "process {} has led this group and still holds the clients' sockets after {} ms: "
        "it is killed",
        pid, waited_ns / 1'000'000);
    if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) != 0) {
      spdlog::error("cannot kill process {}: {}", pid, system_error("kill").message());
    }
  }
  ::close(pidfd);
}

}  // namespace

Processes& host_processes() noexcept {
  static HostProcesses processes;
  return processes;
}

bool WriterRight::is_newest(View view) noexcept {
  View newest = newest_.load();
  while (newest < view && !newest_.compare_exchange_weak(newest, view)) {
  }
  return newest <= view;
}

bool WriterRight::insists(View view, std::int64_t now_ns) noexcept {
  if (older_asks_++ == 0) older_since_ns_ = now_ns;
  if (older_asks_ < kAsksMost || now_ns - older_since_ns_ < kOlderWriterNs) return false;
  newest_.store(view);
  return true;
}

WriterRight::Right WriterRight::become_writer(View view, std::int64_t now_ns) {
  if (!is_newest(view) && !insists(view, now_ns)) {  // WRITER-2
    give_up();
    due_ns_ = now_ns + kLookNs;
    return Right::kWaits;
  }
  older_asks_ = 0;
  ProcessName before = writer_.load();
  if (before == own_) return Right::kOurs;
  bool free = before == ProcessName{0} || !processes_.may_write(before);
  if (!free) {
    if (waits_since_ns_ == 0) waits_since_ns_ = now_ns;
    const std::int64_t waited_ns = now_ns - waits_since_ns_;
    if (!killed_ && (waited_ns >= kStopsNs || processes_.is_stopped(before))) {
      killed_ = true;
      processes_.end(before, waited_ns);
    }
    if (waited_ns < kDiesNs) {
      due_ns_ = now_ns + kLookNs;
      return Right::kWaits;
    }
    spdlog::error("process {} has led this group and does not end: its clients are reset",
                  pid_of(before));
    return Right::kCannot;
  }
  free = writer_.compare_exchange_strong(before, own_);
  due_ns_ = free ? kNever : now_ns;
  waits_since_ns_ = free ? 0 : waits_since_ns_;
  killed_ = false;
  // A newer leader may have had the right and given it up since the first look.
  if (free && !is_newest(view)) return become_writer(view, now_ns);
  return free ? Right::kOurs : Right::kWaits;
}

void WriterRight::give_up() noexcept {
  ProcessName own = own_;
  (void)writer_.compare_exchange_strong(own, ProcessName{0});
  waits_since_ns_ = 0;
  killed_ = false;
}

void WriterRight::stop_writing() noexcept {
  give_up();
  older_asks_ = 0;
  due_ns_ = kNever;
}

}  // namespace crane::proxy
