// SPDX-License-Identifier: Apache-2.0
// crane-solo: runs one program under libcrane.so as a replica of its own, without consensus: a node
// reduced to what the scheduler needs. It feeds START, then BUBBLE and TIME entries as a leader
// would, drains the output ring, and exits with the program's status. The interposition programs
// of this folder run natively and then twice under it.
//
//   crane-solo [--hash] [--parallel] [--perturb SEED] [--library PATH] -- program args
//
// --hash prints the final schedule hash and clock on stderr.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "dmt/base/crc.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "dmt/segment.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"

namespace {

using namespace crane;

struct Options {
  bool hash = false;
  dmt::Mode mode = dmt::Mode::kSerial;
  std::uint64_t perturb = 0;
  std::string library;
  std::vector<char*> program;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(70);
}

std::int64_t monotonic_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

Options parse(int argc, char** argv) {
  Options o;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string word = argv[i];
    if (word == "--hash") o.hash = true;
    if (word == "--parallel") o.mode = dmt::Mode::kParallel;
    if (word == "--perturb" && i + 1 < argc) o.perturb = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--library" && i + 1 < argc) o.library = argv[++i];
  }
  for (++i; i < argc; ++i) o.program.push_back(argv[i]);
  o.program.push_back(nullptr);
  if (o.program.size() < 2) {
    std::fprintf(stderr, "usage: crane-solo [--hash] [--parallel] [--perturb SEED] -- program\n");
    std::exit(64);
  }
  if (o.library.empty()) {
    char self[4096] = {};
    if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail("readlink");
    std::string path = self;
    path = path.substr(0, path.rfind('/'));  // out/<variant>/interpose/ or out/<variant>/
    o.library = path + "/libcrane.so";
    if (::access(o.library.c_str(), R_OK) != 0) {
      o.library = path.substr(0, path.rfind('/')) + "/libcrane.so";
    }
  }
  return o;
}

class Solo {
 public:
  explicit Solo(const Options& options) : options_(options) {
    char name[] = "/dev/shm/crane-solo.XXXXXX";
    if (::mkdtemp(name) == nullptr) fail("mkdtemp");
    directory_ = name;
    make_segment();
    if (::mkfifo((directory_ + "/doorbell").c_str(), 0600) != 0) fail("mkfifo");
    doorbell_ = ::open((directory_ + "/doorbell").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (doorbell_ < 0) fail("doorbell");
    make_check_in();
  }
  ~Solo() {
    for (const char* file : {"/segment", "/doorbell", "/checkin.sock", "/runtime.log"}) {
      ::unlink((directory_ + file).c_str());
    }
    ::rmdir(directory_.c_str());
  }
  Solo(const Solo&) = delete;
  Solo& operator=(const Solo&) = delete;

  int run() {
    dmt::create_main_process(*w_);
    w_->scheduler.leading.store(1);
    StartBody start{};
    start.seed[0] = 42;
    // The same every time: a program that prints a date prints the same one twice.
    start.wall_offset_ns = 1'700'000'000'000'000'000;
    push(EntryType::kStart, &start, sizeof start, dmt::kStartGrant);
    dmt::admit_from_node(*w_);
    child_ = ::fork();
    if (child_ == 0) exec_program();
    if (child_ < 0) fail("fork");
    return serve();
  }

 private:
  void make_segment() {
    const std::string path = directory_ + "/segment";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(dmt::Layout)) != 0) fail("segment");
    void* memory = ::mmap(nullptr, sizeof(dmt::Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) fail("mmap");
    ::close(fd);
    dmt::Configuration c{};
    c.mode = options_.mode;
    c.admission = dmt::Admission::kGrant;
    c.quantum = c.mode == dmt::Mode::kSerial ? dmt::kQuantumSerial : dmt::kQuantumParallel;
    c.send_buffer = dmt::kSendBufferDefault;
    c.perturb_seed = options_.perturb;
    c.perturb_max_us = 2000;
    w_ = &dmt::initialise_segment(memory, c);
  }

  void make_check_in() {
    check_in_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/checkin.sock",
                  directory_.c_str());
    if (::bind(check_in_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(check_in_, 64) != 0) {
      fail("check-in socket");
    }
  }

  [[noreturn]] void exec_program() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::personality(ADDR_NO_RANDOMIZE);
    ::setenv("LD_PRELOAD", options_.library.c_str(), 1);
    ::setenv("CRANE_SEGMENT", (directory_ + "/segment").c_str(), 1);
    ::execvp(options_.program[0], options_.program.data());
    std::perror(options_.program[0]);
    ::_exit(127);
  }

  void push(EntryType type, const void* body, std::uint32_t size, GrantTurns grant) {
    Ring ring(w_->header.sequence, reinterpret_cast<std::byte*>(w_));
    SequenceHeader header{};
    header.body_bytes = size;
    header.type = type;
    header.grant = grant;
    const std::int64_t elapsed = monotonic_now() - started_;
    header.stamp_ns = kOrigin + static_cast<std::uint64_t>(elapsed);
    header.viewstamp = {make_view(1, ReplicaId{0}), Index{++index_}};
    header.crc = crc32c(body, size, crc32c(&header, sizeof header));
    const auto total = static_cast<std::uint32_t>(sizeof header + size);
    const auto room = ring.reserve(total);
    if (room.empty()) fail("the sequence is full");
    std::memcpy(room.data(), &header, sizeof header);
    if (size > 0) std::memcpy(room.data() + sizeof header, body, size);
    ring.commit(total);
  }

  void drain_output() {
    Ring ring(w_->header.output, reinterpret_cast<std::byte*>(w_));
    while (!ring.front().empty()) ring.pop();
  }

  void drain_check_ins() {
    for (int fd; (fd = ::accept4(check_in_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) ::close(fd);
  }

  // Proposes what a leader would; true when there was something.
  bool lead() {
    dmt::SchedulerState& s = w_->scheduler;
    if (s.applied_index.load() < index_) return dmt::admit_from_node(*w_);
    const std::int64_t now = static_cast<std::int64_t>(kOrigin) + monotonic_now() - started_;
    if (s.next_deadline.load() <= now) {
      push(EntryType::kTime, nullptr, 0, dmt::kBubbleGrantMin);
    } else if (s.stalled.load() != 0 || s.grant_low.load() != 0) {
      push(EntryType::kBubble, nullptr, 0, dmt::kBubbleGrantMax);
    } else {
      return false;
    }
    return dmt::admit_from_node(*w_);
  }

  int wait_ms() const {
    const std::int64_t deadline = w_->scheduler.next_deadline.load();
    if (deadline == dmt::kNoDeadline) return 1000;
    const std::int64_t now = static_cast<std::int64_t>(kOrigin) + monotonic_now() - started_;
    const std::int64_t left = (deadline - now + 999'999) / 1'000'000;
    return static_cast<int>(left < 0 ? 0 : left > 1000 ? 1000 : left);
  }

  int serve() {
    for (;;) {
      drain_output();
      drain_check_ins();
      while (lead()) {
      }
      int status = 0;
      const pid_t done = ::waitpid(child_, &status, WNOHANG);
      if (done == child_) return finish(status);
      w_->scheduler.node_timer.store(w_->scheduler.next_deadline.load());
      w_->scheduler.node_asleep.store(1, std::memory_order_seq_cst);
      const bool again = w_->scheduler.stalled.load() != 0 || w_->scheduler.grant_low.load() != 0;
      pollfd fds[2] = {{doorbell_, POLLIN, 0}, {check_in_, POLLIN, 0}};
      const int limit = wait_ms();
      // The child's end rings nothing: look again soon enough.
      ::poll(fds, 2, again ? 0 : (limit < 20 ? limit : 20));
      w_->scheduler.node_asleep.store(0, std::memory_order_seq_cst);
      char bytes[64];
      while (::read(doorbell_, bytes, sizeof bytes) > 0) {
      }
    }
  }

  int finish(int status) {
    drain_output();
    const bool announced = w_->processes[dmt::kMainProcess].gone.load() != 0;
    if (!announced) {
      std::fprintf(stderr, "crane-solo: the program never announced its end (status %d)\n", status);
      print_log();
    }
    if (options_.hash) {
      std::fprintf(stderr, "hash %016" PRIx64 " clock %" PRIu64 "\n", w_->scheduler.hash,
                   w_->scheduler.clock);
    }
    if (WIFEXITED(status)) return announced ? WEXITSTATUS(status) : 71;
    return 128 + WTERMSIG(status);
  }

  void print_log() const {
    std::FILE* log = std::fopen((directory_ + "/runtime.log").c_str(), "re");
    if (log == nullptr) return;
    for (int c; (c = std::fgetc(log)) != EOF;) std::fputc(c, stderr);
    std::fclose(log);
  }

  static constexpr std::uint64_t kOrigin = 1'000'000'000'000;  // virtual time at START
  const Options& options_;
  std::string directory_;
  dmt::Layout* w_ = nullptr;
  int doorbell_ = -1;
  int check_in_ = -1;
  pid_t child_ = -1;
  std::uint64_t index_ = 0;
  const std::int64_t started_ = monotonic_now();
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Solo solo(options);
  return solo.run();
}
