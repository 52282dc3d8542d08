// SPDX-License-Identifier: Apache-2.0
// crane-solo: one replica without consensus, for tests of libcrane.so. It is the node of a group of
// one that needs no clock: when no thread can continue, it admits a bubble, or the time entry of
// the next deadline, at once. So its entries depend on the schedule alone, and two runs of a
// deterministic program have the same schedule hash.
//
// usage: crane_options.h
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "dmt/base/crc.h"
#include "dmt/processes.h"
#include "dmt/quiescence.h"
#include "dmt/scheduler.h"
#include "dmt/segment.h"
#include "dmt/sequence/output.h"
#include "dmt/socket_directories.h"
#include "dmt/stall.h"
#include "dmt/stuck.h"
#include "dmt/unhooked.h"
#include "tests/interpose/crane_clients.h"
#include "tests/interpose/crane_interrupts.h"
#include "tests/interpose/crane_options.h"

namespace {

using namespace crane;  // a program, not a library
using namespace crane::solo;

constexpr int kStuckAfterMs = 10'000;
constexpr int kAwakeMax = 2000;
constexpr std::int64_t kBubbleNs = 1'000'000;
constexpr std::int64_t kStartNs = 1'000'000'000;
constexpr std::int64_t kWallOffsetNs = 1'700'000'000'000'000'000;

std::string directory;
volatile std::sig_atomic_t stop_requested = 0;
void stop(int) { stop_requested = 1; }

class Node {
 public:
  explicit Node(const Options& o) : options_(o) {
    o.resume.empty() ? create() : take_up();
    const std::string bell = directory + "/doorbell";
    if (mkfifo(bell.c_str(), 0600) != 0 && errno != EEXIST) die("mkfifo");
    doorbell_ = open(bell.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    check_in_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/checkin.sock", directory.c_str());
    (void)unlink(address.sun_path);
    if (bind(check_in_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind");
    chmod(address.sun_path, 0666);
    if (listen(check_in_, 64) != 0) die("listen");
    if (!o.clients.empty() && !clients_.load(o.clients)) die(o.clients.c_str());
  }

  void start() {
    // The same pids in every run, also in /proc. A tree that CRIU saves stays in this mount
    // namespace, because CRIU refuses descriptors of another one, and the standard descriptors
    // would be such.
    if (options_.resume.empty() && options_.dump.empty() && geteuid() == 0) {
      (void)unshare(CLONE_NEWPID | CLONE_NEWNS);
    }
    child_ = fork();
    if (child_ < 0) die("fork");
    if (child_ == 0 && !options_.resume.empty()) {
      execl("/bin/sh", "sh", "-c", options_.resume.c_str(), nullptr);
      _exit(127);
    }
    if (child_ == 0) {
      if (getpid() == 1 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
        (void)mount("proc", "/proc", "proc", 0, nullptr);
      }
      if (!options_.dump.empty()) setsid();  // the saved tree has its own
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      personality(ADDR_NO_RANDOMIZE);
      setenv("LD_PRELOAD", options_.library.c_str(), 1);
      setenv("CRANE_SEGMENT", (directory + "/segment").c_str(), 1);
      execvp(options_.command[0], options_.command.data());
      _exit(127);
    }
  }

  int run() {
    if (options_.resume.empty()) {
      push_start();
    } else {
      w_->scheduler.holder.store(dmt::kHolderIdle);
    }
    for (;;) {
      if (w_->scheduler.fenced.load() != 0) {
        return finish(w_->unhooked.stopped.load() != 0 ? kStrict : kFenced);
      }
      if (stop_requested != 0) return finish(kStuck);
      drain();
      if (step()) {
        idle_ms_ = 0;
        continue;
      }
      int status = 0;
      if (waitpid(child_, &status, WNOHANG) == child_) {
        drain();
        return finish(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      }
      sleep_a_little();
      if (options_.stalls) look_for_stalls();
      if (options_.branch_event == kSimulatedEvent) interrupts_.send(pids_);
      if (idle_ms_ > kStuckAfterMs) return finish(kStuck);
    }
  }

 private:
  static void* map_segment() {
    const std::string segment = directory + "/segment";
    const int fd = open(segment.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(dmt::Layout)) != 0) die("segment");
    void* memory = mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) die("mmap");
    return memory;
  }

  void create() {
    char name[] = "/dev/shm/crane-solo.XXXXXX";
    if (mkdtemp(name) == nullptr) die("mkdtemp");
    directory = name;
    if (chmod(name, 0711) != 0) die("chmod");
    void* memory = map_segment();
    dmt::Configuration c{};
    c.mode = options_.parallel ? dmt::Mode::kParallel : dmt::Mode::kSerial;
    c.admission = dmt::Admission::kGrant;
    c.quantum = options_.parallel ? dmt::kQuantumParallel : dmt::kQuantumSerial;
    c.send_buffer = dmt::kSendBufferDefault;
    c.perturb_seed = options_.perturb;
    std::strncpy(c.host_name, "solo", sizeof c.host_name - 1);
    c.perturb_max_us = 200;
    c.stall_rule = options_.stalls ? dmt::StallRule::kSpins : dmt::StallRule::kOff;
    if (options_.detach_sync) c.detached_calls = dmt::kDetachSync;
    c.slice_ps = options_.parallel ? 0 : options_.slice_us * 1'000'000;
    c.branch_event = options_.branch_event;
    w_ = &dmt::initialise_segment(memory, c);
    w_->scheduler.leading.store(1);  // all slices are counted
    w_->unhooked.strict = options_.strict ? 1 : 0;
    name_soft_barrier_points();
    for (const std::string& one : options_.socket_directories) {
      if (!dmt::add_socket_directory(*w_, one)) die("too many socket directories");
    }
    dmt::create_main_process(*w_);
  }

  // The directory is as at quiescence, with the turn held by the node.
  void take_up() {
    directory = options_.resume_directory;
    w_ = static_cast<dmt::Layout*>(map_segment());
    index_ = w_->scheduler.applied_index.load();
    now_ = w_->scheduler.now_ns;
    if (!dmt::is_quiescent(*w_)) die("what was saved is not quiescent");
    if (options_.announced) dmt::announce_restore(*w_);
  }

  void name_soft_barrier_points() {
    if (options_.soft_barriers.size() > dmt::kSoftBarrierPointsMax) die("too many soft barriers");
    for (std::size_t i = 0; i < options_.soft_barriers.size(); ++i) {
      dmt::SoftBarrierPoint& p = w_->soft_barrier_points[i];
      if (std::sscanf(options_.soft_barriers[i].c_str(), "%63[^:]:%u:%u", p.function,
                      &p.soft_barrier.count, &p.soft_barrier.timeout_us) != 3) {
        die("a soft barrier");
      }
    }
  }

  // Admits what the replica needs to continue; returns false if it needs nothing now.
  bool step() {
    dmt::SchedulerState& s = w_->scheduler;
    if (s.holder.load() != dmt::kHolderIdle || s.ended) return false;
    if (s.run_queue.head == dmt::kNone && is_any_detached()) return false;
    if (options_.restores && !pretend_restore()) return true;
    if (!options_.dump.empty() && index_ >= options_.dump_index && !dump()) return true;
    if (s.run_queue.head == dmt::kNone && bring_back()) return true;
    if (s.run_queue.head != dmt::kNone) {
      push(EntryType::kBubble, now_ + kBubbleNs, dmt::kStartGrant, nullptr, 0);
    } else if (answer_bind() || play_client()) {
      return true;
    } else if (options_.signal != 0 && now_ - kStartNs >= options_.after * 1'000'000) {
      const SignalBody body{static_cast<std::uint32_t>(options_.signal), 0};
      options_.signal = 0;
      push(EntryType::kSignal, now_ + 1, dmt::kInputGrantDefault, &body, sizeof body);
    } else if (s.at_soft_barrier.load() != 0) {  // no other thread can reach the soft barrier
      push(EntryType::kTime, now_, dmt::kInputGrantDefault, nullptr, 0);
    } else if (s.next_deadline.load() != dmt::kNoDeadline) {
      const std::int64_t deadline = s.next_deadline.load();
      const std::int64_t replica = s.now_ns;
      push(EntryType::kTime, deadline > replica ? deadline : replica, dmt::kInputGrantDefault,
           nullptr, 0);
    } else {
      return false;
    }
    dmt::admit_from_node(*w_);
    return true;
  }

  // Every thread is asleep; when it wakes, it learns that the kernel has lost its state.
  bool pretend_restore() {
    dmt::SchedulerState& s = w_->scheduler;
    std::uint32_t idle = dmt::kHolderIdle;
    if (!s.holder.compare_exchange_strong(idle, value(dmt::kNodeSlot))) return false;
    const dmt::Blocker blocker = dmt::find_blocker(*w_);
    const bool at_rest = blocker.why == dmt::BlockerKind::kNothing;
    if (at_rest) dmt::announce_restore(*w_);
    s.holder.store(dmt::kHolderIdle);
    if (at_rest) {
      awake_ = 0;
    } else if (++awake_ < kAwakeMax) {
      usleep(200);
    } else {  // in parallel mode a thread may read memory forever
      dmt::describe(*w_, blocker, blocker_);
      return true;
    }
    return at_rest;
  }

  bool dump() {
    dmt::SchedulerState& s = w_->scheduler;
    std::uint32_t idle = dmt::kHolderIdle;
    if (!s.holder.compare_exchange_strong(idle, value(dmt::kNodeSlot))) return false;
    const bool at_rest = dmt::is_quiescent(*w_);
    if (at_rest) {
      std::FILE* ask = std::fopen((options_.dump + ".ask").c_str(), "w");
      if (ask == nullptr) die("--dump");
      std::fprintf(ask, "%d %s\n", child_, directory.c_str());
      std::fclose(ask);
      std::FILE* answer = std::fopen((options_.dump + ".answer").c_str(), "r");
      if (answer == nullptr || std::fgetc(answer) != '+') die("--dump");
      std::fclose(answer);
      options_.dump.clear();
    }
    s.holder.store(dmt::kHolderIdle);
    return at_rest;
  }

  // The schedule must not depend on how long a detached thread is away.
  bool is_any_detached() const {
    for (std::uint32_t i = 1; i < w_->scheduler.slots_used; ++i) {
      const dmt::SlotRecord& slot = w_->slots[i];
      if (slot.state == dmt::SlotState::kDetached && slot.arrived.load() == 0) return true;
    }
    return false;
  }

  // Detached threads rejoin in the order of their slots, when no other thread can continue.
  bool bring_back() {
    bool some = false;
    for (std::uint32_t i = 1; i < w_->scheduler.slots_used; ++i) {
      const dmt::SlotRecord& slot = w_->slots[i];
      if (slot.state != dmt::SlotState::kDetached) continue;
      if (slot.arrived.load() == 0) continue;
      const AttachBody body{i, slot.detachments.load()};
      push(EntryType::kAttach, now_, dmt::kInputGrantDefault, &body, sizeof body);
      some = true;
    }
    if (some) dmt::admit_from_node(*w_);
    return some;
  }

  // Answers for an address as a leader's machine would, with all its ports free.
  bool answer_bind() {
    for (std::uint32_t file = 1; file <= w_->scheduler.files_used; ++file) {
      const dmt::FileRecord& f = w_->files[file];
      if (f.kind != dmt::FileKind::kSocket || f.listener.question == 0) continue;
      const PortBody body{f.listener.question, file, try_address(f.listener.bound)};
      push(EntryType::kPort, now_ + 1, dmt::kInputGrantDefault, &body, sizeof body);
      dmt::admit_from_node(*w_);
      return true;
    }
    return false;
  }

  // errno of binding it, 0 if that succeeds.
  static std::int32_t try_address(const VirtualAddress& bound) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_addr, bound.ip, sizeof six.sin6_addr);
    sockaddr_in four{};
    four.sin_family = AF_INET;
    std::memcpy(&four.sin_addr, bound.ip, sizeof four.sin_addr);
    const bool is_six = bound.family == AF_INET6;
    const auto* address =
        is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    const int fd = socket(bound.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool can = bind(fd, address, is_six ? sizeof six : sizeof four) == 0;
    const std::int32_t error = can ? 0 : errno;
    close(fd);
    return error;
  }

  // Clients act when the server has nothing to do.
  bool play_client() {
    drain();
    std::int64_t pass_ns = 0;
    const auto propose = [this](EntryType type, const void* body, std::uint32_t size) {
      push(type, now_ + 1, dmt::kInputGrantDefault, body, size);
      return index_;
    };
    const bool played = clients_.play(propose, pass_ns) || clients_.refuse(propose);
    if (pass_ns > 0) push(EntryType::kTime, now_ + pass_ns, dmt::kInputGrantDefault, nullptr, 0);
    if (played) dmt::admit_from_node(*w_);
    return played;
  }

  void push_start() {
    StartBody body{};
    for (int i = 0; i < 4; ++i) body.seed[i] = 0x1234567890abcdefull * static_cast<unsigned>(i + 1);
    body.wall_offset_ns = kWallOffsetNs;
    // Entries without a grant: the points count from the first turn (TICK-1).
    const std::vector<TickPoint>& points = options_.tick_points;
    push(EntryType::kStart, kStartNs, points.empty() ? dmt::kStartGrant : 0, &body, sizeof body);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::uint32_t grant = i + 1 < points.size() ? 0 : dmt::kStartGrant;
      push(EntryType::kTickPoint, kStartNs, grant, &points[i], sizeof points[i]);
    }
    dmt::admit_from_node(*w_);
  }

  void push(EntryType type, std::int64_t stamp, std::uint32_t grant, const void* body,
            std::uint32_t size) {
    if (stamp > now_) now_ = stamp;
    SequenceHeader h{};
    h.body_bytes = size;
    h.type = type;
    h.grant = grant;
    h.stamp_ns = static_cast<std::uint64_t>(now_);
    h.viewstamp = {make_view(1, ReplicaId{0}), Index{++index_}};
    h.crc = crc32c(body, size, crc32c(&h, sizeof h));
    Ring ring(w_->header.sequence, reinterpret_cast<std::byte*>(w_));
    const auto room = ring.reserve(static_cast<std::uint32_t>(sizeof h) + size);
    if (room.empty()) die("the sequence is full");
    std::memcpy(room.data(), &h, sizeof h);
    if (size > 0) std::memcpy(room.data() + sizeof h, body, size);
    ring.commit(static_cast<std::uint32_t>(sizeof h) + size);
  }

  void drain() {
    Ring ring(w_->header.output, reinterpret_cast<std::byte*>(w_));
    for (auto r = ring.front(); !r.empty(); r = ring.front()) {
      clients_.output(r.data(), r.size());
      ring.pop();
    }
    char bytes[256];
    while (read(doorbell_, bytes, sizeof bytes) > 0) {
    }
    take_check_ins();
  }

  void take_check_ins() {
    int fd;
    while ((fd = accept4(check_in_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
      ucred peer{};
      socklen_t size = sizeof peer;
      if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) pids_.push_back(peer.pid);
      close(fd);
    }
  }

  void sleep_a_little() {
    dmt::SchedulerState& s = w_->scheduler;
    s.leading.store(1);
    s.node_timer.store(INT64_MAX);
    s.node_asleep.store(1);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // A thread computes: short naps, because in parallel mode no bell rings while the turn is
    // unowned.
    const bool idle = s.holder.load() == dmt::kHolderIdle;
    pollfd fds[2] = {{doorbell_, POLLIN, 0}, {check_in_, POLLIN, 0}};
    const int ms = idle ? 10 : 1;
    if (poll(fds, 2, ms) == 0) idle_ms_ += ms;
    s.node_asleep.store(0);
  }

  // Like the leader's node: a thread that has the turn and does not use it is probed, and gives
  // way.
  void look_for_stalls() {
    PreemptBody body{};
    if (dmt::has_held_thread(*w_, body)) {
      if (w_->scheduler.preempt_clock.load() != body.clock) dmt::request_preemption(*w_, body);
      idle_ms_ = 0;
      return;
    }
    const dmt::TurnSnapshot now = dmt::glimpse(*w_);
    const bool same = now.slot == seen_.slot && now.clock == seen_.clock;
    seen_ = now;
    if (!same || now.slot == dmt::kNone || now.in_operation || !now.helps) return;
    for (const pid_t pid : pids_) kill(pid, SIGURG);
  }

  void show_waits() const {
    std::fprintf(stderr, "crane_solo: stuck, nobody can go on\n");
    for (std::uint16_t i = dmt::next_waiting(*w_, 0); i != 0; i = dmt::next_waiting(*w_, i)) {
      char text[300];
      dmt::describe_wait(*w_, i, text);
      std::fprintf(stderr, "crane_solo: %s\n", text);
    }
  }

  int finish(int status) {
    // The pid namespace ends with its first process; without one, every process that checked in is
    // ended.
    kill(child_, SIGKILL);
    take_check_ins();
    for (const pid_t pid : pids_) {
      if (pid != child_ && pid > 1) kill(pid, SIGKILL);
    }
    clients_.report();
    if (options_.unhooked) show_unhooked();
    if (options_.check_ins) std::printf("check-ins: %zu\n", pids_.size());
    for (std::size_t i = 0; i < options_.soft_barriers.size(); ++i)
      show(w_->soft_barrier_points[i]);
    std::fflush(stdout);
    if (status == kStuck) show_waits();
    if (blocker_[0] != '\0') std::fprintf(stderr, "crane_solo: not quiescent: %s\n", blocker_);
    if (status == kFenced) std::fprintf(stderr, "crane_solo: the replica was fenced\n");
    show_log();
    if (options_.slice_us != 0) show_slices();
    if (options_.hash) {
      std::fprintf(stderr, "schedule %llu %016llx\n",
                   static_cast<unsigned long long>(w_->scheduler.clock),
                   static_cast<unsigned long long>(w_->scheduler.hash));
    }
    for (const char* name : {"segment", "doorbell", "checkin.sock", "runtime.log"}) {
      unlink((directory + "/" + name).c_str());
    }
    rmdir(directory.c_str());
    return status;
  }

  static void show(const dmt::SoftBarrierPoint& p) {
    static constexpr const char* kStates[] = {"not found", "refused", "found"};
    std::printf("soft barrier %s: %s, %llu arrivals, %u rounds\n", p.function,
                kStates[static_cast<std::uint32_t>(p.state.load())],
                static_cast<unsigned long long>(p.soft_barrier.arrivals), p.soft_barrier.round);
  }

  void show_unhooked() {
    std::printf("unhooked calls:%s\n", w_->unhooked.total.load() == 0 ? " none" : "");
    static constexpr const char* kOutcomes[] = {"", "made an operation", "refused", "passed"};
    for (std::uint32_t i = 0; i < dmt::kUnhookedMax; ++i) {
      const dmt::UnhookedRecord* r = dmt::unhooked_record(*w_, i);
      if (r == nullptr) continue;
      const char* object = std::strrchr(r->call.object, '/');
      std::printf("  %s of %s: %s, %s\n", r->call.name,
                  object != nullptr ? object + 1 : r->call.object,
                  kOutcomes[static_cast<std::uint32_t>(r->call.outcome)],
                  r->count.load() == 1 ? "once" : "often");
    }
  }

  // Depends on the schedule alone: the same in each run (SLICE-1).
  void show_slices() const {
    const dmt::SliceReport& report = w_->slice_report;
    std::size_t refused = 0;
    for (std::uint32_t i = 0; i < w_->tick_points.used; ++i)
      refused += report.refused[i].load() != 0;
    std::fprintf(stderr, "slices %llu, %zu of %u points refused\n",
                 static_cast<unsigned long long>(report.slices.load()), refused,
                 w_->tick_points.used);
  }

  void show_log() {
    std::FILE* log = std::fopen((directory + "/runtime.log").c_str(), "r");
    if (log == nullptr) return;
    char line[1024];
    while (std::fgets(line, sizeof line, log) != nullptr) std::fputs(line, stderr);
    std::fclose(log);
  }

  solo::Clients clients_;
  Options options_;
  dmt::Layout* w_ = nullptr;
  int doorbell_ = -1, check_in_ = -1;
  pid_t child_ = -1;
  solo::Interrupts interrupts_;
  std::vector<pid_t> pids_;
  dmt::TurnSnapshot seen_{};
  int awake_ = 0;           // how often it was not quiescent since it last was
  char blocker_[160] = {};  // why the replica was given up
  std::int64_t now_ = 0;
  std::uint64_t index_ = 0;
  int idle_ms_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  Node node(parse(argc, argv));
  node.start();
  return node.run();
}
