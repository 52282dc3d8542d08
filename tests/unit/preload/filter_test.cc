// SPDX-License-Identifier: Apache-2.0
// GOAL    The kernel applies a program's seccomp filter to all calls except a few from
//         libcrane.so's text.
// METHOD  Filters as programs write them, evaluated as they are and as they are passed to the
//         kernel, for all numbers, from libcrane.so's text and from elsewhere.
// CHECKS  FILTER-1, the instructions of the machine, kills that become traps, the more severe of
//         two.
#include "runtime/preload/trap/filter.h"

#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <set>
#include <vector>

using namespace crane;

namespace {

using Code = std::vector<struct sock_filter>;

constexpr filter::Own kOwn{0x7f0000001000, 0x7f0000009000, 12, false};
constexpr std::uint32_t kTrapOfKill = SECCOMP_RET_TRAP | filter::kKillMark;

struct seccomp_data call_from(std::uint64_t address, int number) {
  struct seccomp_data call {};
  call.nr = number;
  call.arch = AUDIT_ARCH_X86_64;
  call.instruction_pointer = address;
  return call;
}

Code composed(const Code& code, const filter::Own& own = kOwn) {
  Code copy = code;
  Code out(code.size() + filter::kOwnPartMax);
  const struct sock_fprog program = {static_cast<unsigned short>(copy.size()), copy.data()};
  out.resize(filter::compose(program, own, out.data(), out.size()));
  return out;
}

std::uint32_t evaluated(const Code& code, const struct seccomp_data& call) {
  return filter::evaluate(code.data(), code.size(), call);
}

const struct sock_filter kLoadNumber =
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));

// Even numbers are allowed, multiples of 3 return an error, the rest is killed.
const Code kByNumber = {
    kLoadNumber,
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 1),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    kLoadNumber,
    BPF_STMT(BPF_MISC | BPF_TAX, 0),
    BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 3),
    BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

const Code kNothing = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD)};

}  // namespace

TEST_CASE("filter: for calls from elsewhere only the program's filter decides", "[runtime]") {
  const Code whole = composed(kByNumber);
  REQUIRE(whole.size() > kByNumber.size());
  const std::uint64_t elsewhere =
      GENERATE(0x400000ul, kOwn.begin - 1, kOwn.end, kOwn.begin + 0x100000000ul);
  for (int number = 0; number < 500; ++number) {
    const auto call = call_from(elsewhere, number);
    const std::uint32_t wanted = evaluated(kByNumber, call);
    CHECK(wanted == (number % 2 == 0   ? SECCOMP_RET_ALLOW
                     : number % 3 == 0 ? (SECCOMP_RET_ERRNO | 13u)
                                       : SECCOMP_RET_KILL_PROCESS));
    CHECK(evaluated(whole, call) == (wanted == SECCOMP_RET_KILL_PROCESS ? kTrapOfKill : wanted));
  }
}

// FILTER-1
TEST_CASE("filter: libcrane.so's text cannot open files, start programs or connect", "[runtime]") {
  const Code whole = composed(kNothing);
  std::set<int> passes;
  for (int number = 0; number < 500; ++number) {
    if (evaluated(whole, call_from(kOwn.begin, number)) == SECCOMP_RET_ALLOW) passes.insert(number);
    CHECK(evaluated(whole, call_from(kOwn.end - 1, number)) ==
          evaluated(whole, call_from(kOwn.begin, number)));
  }
  CHECK(passes.contains(SYS_futex));
  CHECK(passes.contains(SYS_exit_group));
  for (const int number :
       {SYS_open, SYS_openat, SYS_execve, SYS_execveat, SYS_clone, SYS_clone3, SYS_fork, SYS_socket,
        SYS_connect, SYS_bind, SYS_ptrace, SYS_process_vm_writev, SYS_mount, SYS_unlink, SYS_ioctl,
        SYS_setuid, SYS_init_module, SYS_bpf, SYS_io_uring_setup}) {
    CHECK(passes.count(number) == 0);
  }
}

TEST_CASE("filter: for some calls an argument is checked", "[runtime]") {
  struct Row {
    int number, argument;
    std::uint64_t good, bad;
  };
  const Row row = GENERATE(Row{SYS_mmap, 2, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC},
                           Row{SYS_mprotect, 2, PROT_NONE, PROT_EXEC}, Row{SYS_kill, 1, 0, 9},
                           Row{SYS_tgkill, 0, 12, 13}, Row{SYS_prctl, 0, 59, 22});
  const Code whole = composed(kNothing);
  auto call = call_from(kOwn.begin, row.number);
  call.args[2] = 9;
  call.args[row.argument] = row.good;
  CHECK(evaluated(whole, call) == SECCOMP_RET_ALLOW);
  call.args[row.argument] = row.bad;
  CHECK(evaluated(whole, call) == kTrapOfKill);
}

TEST_CASE("filter: libcrane.so's handlers can return only through libc's restorer",
          "[runtime][FILTER-1]") {
  filter::Own own = kOwn;
  own.handler_return = 0x7e1234567890;
  const Code whole = composed(kNothing, own);
  CHECK(evaluated(whole, call_from(own.handler_return, SYS_rt_sigreturn)) == SECCOMP_RET_ALLOW);
  for (const std::uint64_t other : {own.handler_return + 1, own.handler_return + (1ul << 32)}) {
    CHECK(evaluated(whole, call_from(other, SYS_rt_sigreturn)) == kTrapOfKill);
  }
  CHECK(evaluated(whole, call_from(kOwn.begin, SYS_rt_sigreturn)) == kTrapOfKill);
  CHECK(evaluated(whole, call_from(own.handler_return, SYS_write)) == kTrapOfKill);
}

TEST_CASE("filter: a program that starts processes may check them in through a unix socket",
          "[runtime]") {
  filter::Own own = kOwn;
  own.starts_processes = GENERATE(false, true);
  const Code whole = composed(kNothing, own);
  auto call = call_from(kOwn.begin, SYS_socket);
  call.args[0] = AF_UNIX;
  CHECK((evaluated(whole, call) == SECCOMP_RET_ALLOW) == own.starts_processes);
  call.args[0] = AF_INET;
  CHECK(evaluated(whole, call) == kTrapOfKill);
}

TEST_CASE("filter: a filter of another architecture, or without space, is not changed",
          "[runtime]") {
  const Code whole = composed(kNothing);
  auto call = call_from(kOwn.begin, SYS_futex);
  call.arch = AUDIT_ARCH_I386;
  CHECK(evaluated(whole, call) == kTrapOfKill);
  filter::Own apart = kOwn;
  apart.end += 0x100000000;
  CHECK(composed(kNothing, apart).empty());
}

TEST_CASE("filter: the most severe of several decides, and among equals the last", "[runtime]") {
  const Code denies = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1)};
  const filter::Filter oldest{nullptr, denies.size(), denies.data()};
  const filter::Filter newest{&oldest, kByNumber.size(), kByNumber.data()};
  CHECK(filter::evaluate(&newest, call_from(0, 2)) == (SECCOMP_RET_ERRNO | 1u));
  CHECK(filter::evaluate(&newest, call_from(0, 3)) == (SECCOMP_RET_ERRNO | 13u));
  CHECK(filter::evaluate(&newest, call_from(0, 1)) == SECCOMP_RET_KILL_PROCESS);
}

TEST_CASE("filter: a program that the kernel would refuse touches no other memory", "[runtime]") {
  const std::uint32_t far = GENERATE(16u, 64u, 1u << 20, 0xfffffffcu);
  const Code code = {
      BPF_STMT(BPF_LD | BPF_IMM, 7),   BPF_STMT(BPF_ST, far),
      BPF_STMT(BPF_LD | BPF_MEM, far), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, far | 64),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  CHECK(evaluated(code, call_from(0, 0)) == 0);
}

TEST_CASE("filter: memory words, lengths and jumps by value", "[runtime]") {
  const Code code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_STMT(BPF_ST, 3),
      BPF_STMT(BPF_LDX | BPF_IMM, 60),
      BPF_STMT(BPF_LD | BPF_MEM, 3),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 3),
      BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
      BPF_STMT(BPF_RET | BPF_A, 0),
      BPF_STMT(BPF_RET | BPF_K, 99),
  };
  CHECK(evaluated(code, call_from(0, 0)) == 4);  // 64 bytes minus 60
}
