// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/egress_filter.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "dmt/base/clock.h"

namespace crane::proxy {
namespace {

constexpr const char* kDirectory = "/sys/fs/bpf";
constexpr std::uint32_t kFlowsMost = 65536;
constexpr std::size_t kPage = 4096;

// Offsets in the headers, and TCP flags.
constexpr int kAddressTo = 16, kPorts = 0, kAcknowledges = 8, kFlags = 13;
constexpr int kFinSynRst = 7, kAck = 0x10;

constexpr bpf_insn step(int code, int to, int from, int offset, int value) {
  bpf_insn i{};
  i.code = static_cast<std::uint8_t>(code);
  i.dst_reg = static_cast<unsigned>(to) & 15U;
  i.src_reg = static_cast<unsigned>(from) & 15U;
  i.off = static_cast<std::int16_t>(offset);
  i.imm = value;
  return i;
}
constexpr bpf_insn move(int to, int from) {
  return step(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}
constexpr bpf_insn set(int to, int value) {
  return step(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}
constexpr bpf_insn compute(int what, int to, int value) {
  return step(BPF_ALU64 | what | BPF_K, to, 0, 0, value);
}
constexpr bpf_insn call(int function) { return step(BPF_JMP | BPF_CALL, 0, 0, 0, function); }
constexpr bpf_insn end() { return step(BPF_JMP | BPF_EXIT, 0, 0, 0, 0); }
// r0 = the packet's bytes at r8 + offset.
constexpr bpf_insn load(int size, int offset) {
  return step(BPF_LD | BPF_IND | size, 0, BPF_REG_8, 0, offset);
}
constexpr bpf_insn skip_if(int what, int reg, int value, int over) {
  return step(BPF_JMP | what | BPF_K, reg, 0, over, value);
}

// r0 = address of the map's value for the key at r10 - at.  If the map lacks the key, the program
// ends with 0, and the packet goes to the node (egress_gate.h).
constexpr int kLookUpSteps = 8;
std::array<bpf_insn, kLookUpSteps> look_up(int map, int at) {
  return {step(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
          bpf_insn{},
          move(BPF_REG_2, BPF_REG_10),
          compute(BPF_ADD, BPF_REG_2, -at),
          call(BPF_FUNC_map_lookup_elem),
          skip_if(BPF_JNE, BPF_REG_0, 0, 2),
          set(BPF_REG_0, 0),
          end()};
}

// Loads the program and returns its descriptor.  The program returns 1 if the packet may pass, and
// 0 if it goes to the node.  The kernel also returns 0 if a packet is too short for a load.
int load_program(int flows, int state) {
  std::array<bpf_insn, 64> program{};
  std::size_t size = 0;
  const auto add = [&](const auto&... steps) { ((program[size++] = steps), ...); };
  const auto add_all = [&](const auto& steps) {
    for (const bpf_insn& s : steps) add(s);
  };
  const auto gate_unless = [&](int what, int reg, int value) {
    add(skip_if(what, reg, value, 2), set(BPF_REG_0, 0), end());
  };
  add(move(BPF_REG_6, BPF_REG_1));
  add(step(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0));
  add_all(look_up(state, 4));
  add(step(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_7, BPF_REG_0, 0, 0));
  add(call(BPF_FUNC_ktime_get_ns));
  add(step(BPF_JMP | BPF_JLT | BPF_X, BPF_REG_0, BPF_REG_7, 2, 0), set(BPF_REG_0, 0), end());
  // r8: start of the TCP header; r9: the key.
  add(step(BPF_LD | BPF_ABS | BPF_B, 0, 0, 0, 0), compute(BPF_AND, BPF_REG_0, 15),
      compute(BPF_LSH, BPF_REG_0, 2), move(BPF_REG_8, BPF_REG_0));
  add(step(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, kAddressTo), move(BPF_REG_9, BPF_REG_0),
      compute(BPF_LSH, BPF_REG_9, 32));
  add(load(BPF_B, kFlags), move(BPF_REG_1, BPF_REG_0), compute(BPF_AND, BPF_REG_1, kFinSynRst));
  gate_unless(BPF_JEQ, BPF_REG_1, 0);
  gate_unless(BPF_JSET, BPF_REG_0, kAck);
  add(load(BPF_W, kPorts), step(BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_9, BPF_REG_0, 0, 0),
      step(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_9, -16, 0));
  add(load(BPF_W, kAcknowledges), move(BPF_REG_7, BPF_REG_0));
  add_all(look_up(flows, 16));
  // Compares sequence numbers as TCP does: by the sign of their 32-bit difference.
  add(step(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_0, 0, 0),
      step(BPF_ALU | BPF_SUB | BPF_X, BPF_REG_7, BPF_REG_1, 0, 0), set(BPF_REG_0, 0),
      step(BPF_JMP32 | BPF_JSGT | BPF_K, BPF_REG_7, 0, 1, 0), set(BPF_REG_0, 1), end());
  return ::bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "crane_egress", "Apache-2.0", program.data(),
                         size, nullptr);
}

// Mounts the BPF file system if it is missing: Debian mounts it at boot, but a container may lack
// it.
bool has_directory() noexcept {
  struct statfs at {};
  if (::statfs(kDirectory, &at) == 0 && at.f_type == BPF_FS_MAGIC) return true;
  return ::mount("bpf", kDirectory, "bpf", 0, "mode=0700") == 0;
}

}  // namespace

std::string EgressFilter::path_of(std::uint16_t number) {
  return std::string(kDirectory) + "/crane_egress_" + std::to_string(number);
}

Result<std::unique_ptr<EgressFilter>> EgressFilter::open(std::uint16_t number) {
  std::unique_ptr<EgressFilter> filter(new EgressFilter);
  if (!has_directory()) return system_error("mount a BPF file system");
  bpf_map_create_opts options{};
  options.sz = sizeof options;
  filter->flows_ = ::bpf_map_create(BPF_MAP_TYPE_HASH, "crane_flows", sizeof(std::uint64_t),
                                    sizeof(std::uint32_t), kFlowsMost, &options);
  options.map_flags = BPF_F_MMAPABLE;
  filter->state_ = ::bpf_map_create(BPF_MAP_TYPE_ARRAY, "crane_state", sizeof(std::uint32_t),
                                    sizeof(std::uint64_t), 1, &options);
  if (filter->flows_ < 0 || filter->state_ < 0) return system_error("make a BPF map");
  void* const shared =
      ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, filter->state_, 0);
  if (shared == MAP_FAILED) return system_error("share a BPF map");
  filter->until_ns_ = static_cast<std::uint64_t*>(shared);
  const int program = load_program(filter->flows_, filter->state_);
  if (program < 0) return system_error("load a BPF program");
  const std::string path = path_of(number);
  (void)::unlink(path.c_str());  // left by a process that was killed
  const int pinned = ::bpf_obj_pin(program, path.c_str());
  const int error = errno;
  ::close(program);
  if (pinned != 0) return Error{Code::kSystem, error, "pin a BPF program"};
  filter->path_ = path;
  return filter;
}

EgressFilter::~EgressFilter() {
  if (until_ns_ != nullptr) {
    close();
    ::munmap(until_ns_, kPage);
  }
  if (!path_.empty()) (void)::unlink(path_.c_str());
  for (const int fd : {flows_, state_}) {
    if (fd >= 0) ::close(fd);
  }
}

std::uint64_t EgressFilter::key(std::uint32_t client, std::uint16_t port,
                                std::uint16_t client_port) {
  return static_cast<std::uint64_t>(client) << 32U | static_cast<std::uint64_t>(port) << 16U |
         client_port;
}

void EgressFilter::allow(std::uint64_t key, std::uint32_t next) noexcept {
  (void)::bpf_map_update_elem(flows_, &key, &next, BPF_ANY);
}

void EgressFilter::forget(std::uint64_t key) noexcept { (void)::bpf_map_delete_elem(flows_, &key); }

void EgressFilter::fresh() noexcept {
  __atomic_store_n(until_ns_, static_cast<std::uint64_t>(monotonic_ns() + kFreshNs),
                   __ATOMIC_RELEASE);
}

}  // namespace crane::proxy
