// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/filter.h"

#include <linux/audit.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/assert.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/trap/system_call_trap.h"

namespace crane::filter {
namespace {

// --- the machine ---------------------------------------------------------------------------------

struct Machine {
  std::uint32_t a = 0, x = 0;
  std::uint32_t memory[BPF_MEMWORDS] = {};
};

std::uint32_t calculate(std::uint32_t operation, std::uint32_t a, std::uint32_t b) noexcept {
  switch (operation) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_DIV:
      return b == 0 ? 0 : a / b;
    case BPF_OR:
      return a | b;
    case BPF_AND:
      return a & b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return b < 32 ? a << b : 0;
    case BPF_RSH:
      return b < 32 ? a >> b : 0;
    default:  // BPF_NEG
      return 0 - a;
  }
}

bool holds(std::uint32_t condition, std::uint32_t a, std::uint32_t b) noexcept {
  switch (condition) {
    case BPF_JEQ:
      return a == b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    default:  // BPF_JSET
      return (a & b) != 0;
  }
}

std::uint32_t loaded(const struct sock_filter& i, const Machine& m,
                     const struct seccomp_data& call) noexcept {
  switch (BPF_MODE(i.code)) {
    case BPF_ABS: {
      std::uint32_t word = 0;
      if (i.k > sizeof call - sizeof word) return word;
      std::memcpy(&word, reinterpret_cast<const char*>(&call) + i.k, sizeof word);
      return word;
    }
    case BPF_MEM:
      return m.memory[i.k % BPF_MEMWORDS];
    case BPF_LEN:
      return sizeof call;
    default:  // BPF_IMM
      return i.k;
  }
}

bool kills(std::uint32_t verdict) noexcept {
  switch (verdict & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_TRAP:
    case SECCOMP_RET_ERRNO:
    case SECCOMP_RET_USER_NOTIF:
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ALLOW:
      return false;
    default:  // also opcodes that the kernel does not have
      return true;
  }
}

// --- our own calls -------------------------------------------------------------------------------

constexpr int kAnyArgument = -1;

struct OwnCall {
  long number;
  int argument;  // must be `value`, or kAnyArgument
  std::uint32_t value;
};

constexpr OwnCall kOwnCalls[] = {
    // turns, time, ends
    {SYS_futex, kAnyArgument, 0},
    {SYS_sched_yield, kAnyArgument, 0},
    {SYS_nanosleep, kAnyArgument, 0},
    {SYS_clock_gettime, kAnyArgument, 0},
    {SYS_exit, kAnyArgument, 0},
    {SYS_exit_group, kAnyArgument, 0},
    {SYS_wait4, kAnyArgument, 0},
    {SYS_kill, 1, 0},    // checks whether a process exists
    {SYS_tgkill, 2, 0},  // or a thread
    {SYS_rt_sigaction, kAnyArgument, 0},
    {SYS_rt_sigprocmask, kAnyArgument, 0},
    {SYS_sigaltstack, kAnyArgument, 0},
    {SYS_restart_syscall, kAnyArgument, 0},
    {SYS_get_robust_list, kAnyArgument, 0},
    {SYS_rseq, kAnyArgument, 0},
    {SYS_sched_setaffinity, kAnyArgument, 0},
    {SYS_prctl, 0, kSetDispatch},
    {SYS_prctl, 0, PR_SET_TSC},
    {SYS_prctl, 0, PR_GET_NAME},
    {SYS_prlimit64, 2, 0},
    // own identity
    {SYS_getpid, kAnyArgument, 0},
    {SYS_gettid, kAnyArgument, 0},
    {SYS_getppid, kAnyArgument, 0},
    {SYS_getpgid, kAnyArgument, 0},
    {SYS_getsid, kAnyArgument, 0},
    {SYS_getuid, kAnyArgument, 0},
    {SYS_geteuid, kAnyArgument, 0},
    {SYS_getgid, kAnyArgument, 0},
    {SYS_getegid, kAnyArgument, 0},
    // own memory, never executable
    {SYS_mmap, 2, PROT_READ | PROT_WRITE},
    {SYS_mprotect, 2, PROT_NONE},
    {SYS_munmap, kAnyArgument, 0},
    // calls on open descriptors
    {SYS_read, kAnyArgument, 0},
    {SYS_readv, kAnyArgument, 0},
    {SYS_pread64, kAnyArgument, 0},
    {SYS_write, kAnyArgument, 0},
    {SYS_writev, kAnyArgument, 0},
    {SYS_recvmsg, kAnyArgument, 0},
    {SYS_sendmsg, kAnyArgument, 0},
    {SYS_sendto, kAnyArgument, 0},
    {SYS_poll, kAnyArgument, 0},
    {SYS_lseek, kAnyArgument, 0},
    {SYS_fstat, kAnyArgument, 0},
    {SYS_newfstatat, kAnyArgument, 0},
    {SYS_statfs, kAnyArgument, 0},
    {SYS_fstatfs, kAnyArgument, 0},
    {SYS_fcntl, kAnyArgument, 0},
    {SYS_close, kAnyArgument, 0},
    {SYS_getsockname, kAnyArgument, 0},
    {SYS_getpeername, kAnyArgument, 0},
    {SYS_getsockopt, kAnyArgument, 0},
    // branch counters
    {SYS_perf_event_open, kAnyArgument, 0},
    {SYS_ioctl, 1, PERF_EVENT_IOC_PERIOD},
    {SYS_close_range, kAnyArgument, 0},
};
// Calls of processes that it starts: they check in with the node.
constexpr OwnCall kCheckIn[] = {{SYS_socket, 0, AF_UNIX}, {SYS_connect, kAnyArgument, 0}};

constexpr std::uint32_t kNumberAt = offsetof(struct seccomp_data, nr);
constexpr std::uint32_t kArchitectureAt = offsetof(struct seccomp_data, arch);
constexpr std::uint32_t kAddressAt = offsetof(struct seccomp_data, instruction_pointer);
constexpr std::uint32_t kArgumentsAt = offsetof(struct seccomp_data, args);

constexpr struct sock_filter load(std::uint32_t at) noexcept {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
}

constexpr std::uint32_t low(std::uintptr_t address) noexcept {
  return static_cast<std::uint32_t>(address);
}
constexpr std::uint32_t high(std::uintptr_t address) noexcept {
  return static_cast<std::uint32_t>(address >> 32);
}

// The instructions of our own part. Jumps to its end are set when the end is known.
class OwnPart {
 public:
  explicit OwnPart(struct sock_filter* out) noexcept : out_(out) {}

  // Continues if `condition` holds, else jumps to the program's filter.
  void require(std::uint16_t condition, std::uint32_t value, bool wanted) noexcept {
    to_end_[ends_++] = size_;
    out_[size_++] = BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K), value, 0, 0);
    wanted_[ends_ - 1] = wanted;
  }
  void load_word(std::uint32_t at) noexcept { out_[size_++] = load(at); }
  void allow_number(std::uint32_t number) noexcept {
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    out_[size_++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  void allow_argument(const OwnCall& c) noexcept {
    const std::uint32_t low = kArgumentsAt + 8 * static_cast<std::uint32_t>(c.argument);
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(c.number), 0, 4);
    load_word(low);
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c.value, 0, 1);
    out_[size_++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    load_word(kNumberAt);
  }
  // Allows a call from one address only.
  void allow_at(std::uint32_t number, std::uintptr_t address) noexcept {
    load_word(kNumberAt);
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
    load_word(kAddressAt + 4);
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high(address), 0, 3);
    load_word(kAddressAt);
    out_[size_++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low(address), 0, 1);
    out_[size_++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  void allow(const OwnCall& c) noexcept {
    if (c.argument == kAnyArgument) {
      allow_number(static_cast<std::uint32_t>(c.number));
    } else {
      allow_argument(c);
    }
  }
  std::size_t finish() noexcept {
    CRANE_ASSERT(size_ <= kOwnPartMax);
    for (std::size_t i = 0; i < ends_; ++i) {
      const auto ahead = static_cast<std::uint8_t>(size_ - to_end_[i] - 1);
      (wanted_[i] ? out_[to_end_[i]].jf : out_[to_end_[i]].jt) = ahead;
    }
    return size_;
  }

 private:
  struct sock_filter* out_;
  std::size_t size_ = 0, ends_ = 0;
  std::size_t to_end_[8] = {};
  bool wanted_[8] = {};
};

}  // namespace

std::uint32_t evaluate(const struct sock_filter* code, std::size_t size,
                       const struct seccomp_data& call) noexcept {
  Machine m;
  for (std::size_t at = 0; at < size; ++at) {
    const struct sock_filter& i = code[at];
    const std::uint32_t operand = BPF_SRC(i.code) == BPF_X ? m.x : i.k;
    switch (BPF_CLASS(i.code)) {
      case BPF_LD:
        m.a = loaded(i, m, call);
        break;
      case BPF_LDX:
        m.x = loaded(i, m, call);
        break;
      case BPF_ST:
        m.memory[i.k % BPF_MEMWORDS] = m.a;
        break;
      case BPF_STX:
        m.memory[i.k % BPF_MEMWORDS] = m.x;
        break;
      case BPF_ALU:
        m.a = calculate(BPF_OP(i.code), m.a, operand);
        break;
      case BPF_JMP:
        if (BPF_OP(i.code) == BPF_JA) {
          at += i.k;
        } else {
          at += holds(BPF_OP(i.code), m.a, operand) ? i.jt : i.jf;
        }
        break;
      case BPF_RET:
        return BPF_RVAL(i.code) == BPF_A ? m.a : i.k;
      default:  // BPF_MISC
        if (BPF_MISCOP(i.code) == BPF_TAX) m.x = m.a;
        if (BPF_MISCOP(i.code) == BPF_TXA) m.a = m.x;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

std::uint32_t evaluate(const Filter* newest, const struct seccomp_data& call) noexcept {
  // As the kernel: actions are signed numbers, and the least is the most severe.
  const auto action = [](std::uint32_t v) {
    return static_cast<std::int32_t>(v & SECCOMP_RET_ACTION_FULL);
  };
  std::uint32_t verdict = SECCOMP_RET_ALLOW;
  for (const Filter* f = newest; f != nullptr; f = f->older) {
    const std::uint32_t one = evaluate(f->code, f->size, call);
    if (action(one) < action(verdict)) verdict = one;
  }
  return verdict;
}

const Filter* keep(const struct sock_fprog& program, const Filter* older) noexcept {
  const std::size_t bytes = program.len * sizeof *program.filter;
  void* memory = map_pages(sizeof(Filter) + bytes);
  if (memory == nullptr) return nullptr;
  auto* kept = static_cast<Filter*>(memory);
  std::memcpy(kept + 1, program.filter, bytes);
  *kept = {older, program.len, reinterpret_cast<const struct sock_filter*>(kept + 1)};
  return kept;
}

void drop(const Filter* filter) noexcept {
  raw_syscall(SYS_munmap, filter, sizeof(Filter) + filter->size * sizeof(struct sock_filter));
}

std::size_t compose(const struct sock_fprog& program, const Own& of, struct sock_filter* out,
                    std::size_t room) noexcept {
  if (program.len + kOwnPartMax > room || high(of.begin) != high(of.end)) return 0;
  OwnPart own(out);
  own.load_word(kArchitectureAt);
  own.require(BPF_JEQ, AUDIT_ARCH_X86_64, true);
  own.allow_at(SYS_rt_sigreturn, of.handler_return);
  own.load_word(kAddressAt + 4);
  own.require(BPF_JEQ, high(of.begin), true);
  own.load_word(kAddressAt);
  own.require(BPF_JGE, low(of.begin), true);
  own.require(BPF_JGE, low(of.end), false);
  own.load_word(kNumberAt);
  for (const OwnCall& c : kOwnCalls) own.allow(c);
  for (const OwnCall& c : kCheckIn) {
    if (of.starts_processes) own.allow(c);
  }
  own.allow({SYS_tgkill, 0, of.process});  // to end by a signal
  const std::size_t size = own.finish();
  std::copy(program.filter, program.filter + program.len, out + size);
  for (std::size_t i = size; i < size + program.len; ++i) {
    if (out[i].code == (BPF_RET | BPF_K) && kills(out[i].k)) {
      out[i].k = SECCOMP_RET_TRAP | kKillMark;
    }
  }
  return size + program.len;
}

}  // namespace crane::filter
