// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/finder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proxy/ticks/process_code.h"
#include "proxy/ticks/stepper.h"

namespace crane::ticks {
namespace {

// A few thousand instructions of an interpreter are some rounds of its loop.
constexpr std::size_t kStepsMost = 4000;
constexpr std::int64_t kStepsNs = 400'000'000;
constexpr std::size_t kStepsLeast = 200;

Choice look(pid_t process, std::uint32_t thread, std::span<const TickPoint> known) {
  const pid_t host_thread = thread_by_inner_number(process, thread);
  if (host_thread == 0) return {{}, "the thread has ended"};
  const Stepping stepping = step_through(host_thread, kStepsMost, kStepsNs);
  if (!stepping.why.empty()) return {{}, stepping.why};
  if (stepping.steps.size() < kStepsLeast)
    return {{}, "the computation ended before it could be followed"};
  ProcessCode code(process);
  return choose(stepping.steps, known, [&code](std::uint64_t address) { return code.at(address); });
}

// Sends the answer: a byte for whether there is a point, the point, and the text.
[[noreturn]] void run(int out, pid_t parent, pid_t process, std::uint32_t thread,
                      std::span<const TickPoint> known) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  Choice choice;
  try {
    choice = look(process, thread, known);
  } catch (const std::exception& e) {
    choice = {{}, e.what()};
  }
  std::string answer(1, choice.point ? 1 : 0);
  const TickPoint point = choice.point.value_or(TickPoint{});
  answer.append(reinterpret_cast<const char*>(&point), sizeof point);
  answer += choice.where;
  (void)!::write(out, answer.data(), answer.size());
  ::_exit(0);
}

}  // namespace

Finder::~Finder() {
  if (child_ < 0) return;
  event_del(&readable_);
  ::close(fd_);
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Finder::find(pid_t process, std::uint32_t thread, std::span<const TickPoint> known) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return owner_.found({{}, std::strerror(errno)});
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ == 0) run(ends[1], parent, process, thread, known);
  ::close(ends[1]);
  if (child_ < 0) {
    ::close(ends[0]);
    return owner_.found({{}, fmt::format("fork: {}", std::strerror(errno))});
  }
  fd_ = ends[0];
  answer_.clear();
  event_assign(&readable_, base_, fd_, EV_READ | EV_PERSIST, on_readable, this);
  event_add(&readable_, nullptr);
}

void Finder::on_readable(int, short, void* finder) { static_cast<Finder*>(finder)->read(); }

void Finder::read() {
  char bytes[4096];
  const ssize_t n = ::read(fd_, bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    answer_.append(bytes, static_cast<std::size_t>(n));
    return;
  }
  event_del(&readable_);
  ::close(fd_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  Choice choice;
  TickPoint point;
  if (answer_.size() < 1 + sizeof point)
    return owner_.found({{}, "the process that followed it was killed"});
  std::memcpy(&point, answer_.data() + 1, sizeof point);
  if (answer_[0] != 0) choice.point = point;
  choice.where = answer_.substr(1 + sizeof point);
  owner_.found(choice);
}

}  // namespace crane::ticks
