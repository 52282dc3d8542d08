// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/core/init.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "dmt/processes.h"
#include "dmt/segment.h"
#include "runtime/preload/core/fixed_addresses.h"
#include "runtime/preload/core/inside.h"
#include "runtime/preload/core/libc_view.h"
#include "runtime/preload/core/real.h"
#include "runtime/preload/core/restore.h"
#include "runtime/preload/core/text.h"
#include "runtime/preload/core/turn.h"
#include "runtime/preload/files/stdio_streams.h"
#include "runtime/preload/processes/exec.h"
#include "runtime/preload/processes/family.h"
#include "runtime/preload/processes/fork.h"
#include "runtime/preload/signals/signals.h"
#include "runtime/preload/sockets/unreachable.h"
#include "runtime/preload/threads/soft_barrier_point.h"
#include "runtime/preload/trap/branch_slices.h"
#include "runtime/preload/trap/system_call_trap.h"
#include "runtime/preload/trap/tick_points.h"
#include "runtime/preload/trap/tsc_site.h"
#include "runtime/preload/trap/vdso.h"

extern char** environ;

namespace crane {
namespace {

constexpr std::size_t kPathMax = 512;
constexpr int kSegmentAt = 0, kDoorbellAt = 1, kMessagesAt = 2, kDirectoryAt = 3, kSpareAt = 4;

int descriptor_base = 0;
char segment_path[kPathMax];
char preload[kPathMax];

// What exec passes on; filled per exec.
char variable_preload[kPathMax + 16];
char variable_segment[kPathMax + 16];
char variable_descriptor[48], variable_slot[32], variable_process[32];
char variable_even[] = "CRANE_EVEN=";  // hide_own_variables

const char* variable(const char* name) noexcept {
  const std::size_t size = std::strlen(name);
  for (char** e = environ; e != nullptr && *e != nullptr; ++e) {
    if (std::strncmp(*e, name, size) == 0 && (*e)[size] == '=') return *e + size + 1;
  }
  return nullptr;
}

int number(const char* text, int otherwise) noexcept {
  if (text == nullptr || *text == '\0') return otherwise;
  std::uint32_t result;
  return *parse_number(text, result) == '\0' ? static_cast<int>(result) : otherwise;
}

// Who is woken does not preempt who wakes it: more is done between two hand-offs, by threads of the
// server and by its node (proxy/host/placement.h).  Threads and children inherit it.
void be_patient() noexcept {
  const sched_param none{};
  if (raw_syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER) {
    raw_syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
  }
}

[[noreturn]] void give_up(const char* what, const char* object) noexcept {
  { Message() << "cannot attach: " << what << ": " << object; }
  raw_syscall(SYS_exit_group, kExitCannotAttach);
  __builtin_unreachable();
}

// dir(segment_path)/name in `out`.
void path_beside_segment(const char* name, char (&out)[kPathMax]) noexcept {
  const char* slash = std::strrchr(segment_path, '/');
  const std::size_t size =
      slash == nullptr ? 0 : static_cast<std::size_t>(slash - segment_path) + 1;
  const std::size_t name_size = std::strlen(name);
  CRANE_ASSERT(size + name_size + 1 <= sizeof out);
  std::memcpy(out, segment_path, size);
  std::memcpy(out + size, name, name_size + 1);
}

int pick_base() noexcept {
  // Above what a server counts up to, below what the kernel allows us: the same on all replicas,
  // whose limits are the same.
  struct rlimit limit {};
  raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  constexpr rlim_t kHighest = 1u << 20;
  const rlim_t top = limit.rlim_cur < kHighest ? limit.rlim_cur : kHighest;
  // CRIU has descriptors of its own above a process' highest while it restores it.
  constexpr int kRoomForCriu = 256;
  return static_cast<int>(top) - (top >= 4 * kRoomForCriu ? kRoomForCriu : 2 * kOwnDescriptors);
}

// Moves `fd` to its place among our own; inherited by exec, which finds it there.
void move_to(int fd, int place) noexcept {
  if (fd < 0 || fd == descriptor_base + place) return;
  raw_syscall(SYS_dup2, fd, descriptor_base + place);
  raw_syscall(SYS_close, fd);
}

int open_beside(const char* name, int flags) noexcept {
  char path[kPathMax];
  path_beside_segment(name, path);
  return static_cast<int>(raw_syscall(SYS_openat, AT_FDCWD, path, flags, 0644));
}

// Its place is a check-in's when the program has used up all other descriptors.
void put_spare() noexcept {
  raw_syscall(SYS_fcntl, descriptor_base + kDirectoryAt, F_DUPFD, descriptor_base + kSpareAt);
}

dmt::Attached attach(int fd) noexcept {
  const dmt::Attached attached = dmt::attach_segment(fd);
  switch (attached.state) {
    case dmt::Attach::kReady:
      return attached;
    case dmt::Attach::kAbsent:
      give_up("the segment does not exist", segment_path);
    case dmt::Attach::kCreating:
      give_up("the segment is not complete; was the program started by a node?", segment_path);
    case dmt::Attach::kWrongVersion:
      give_up("the segment is of another version; use libcrane.so and crane-node of one build",
              segment_path);
    case dmt::Attach::kTooSmall:
      give_up("the segment is too small", segment_path);
    case dmt::Attach::kSystem:
      give_up("the segment cannot be mapped", segment_path);
  }
  __builtin_unreachable();
}

void open_own_descriptors() noexcept {
  const int inherited = number(variable("CRANE_SEGMENT_FD"), -1);
  if (inherited >= 0) {
    descriptor_base = inherited;
    set_message_fd(descriptor_base + kMessagesAt);
    segment = attach(descriptor_base + kSegmentAt).layout;
    return;
  }
  descriptor_base = pick_base();
  const int fd = static_cast<int>(raw_syscall(SYS_openat, AT_FDCWD, segment_path, O_RDWR, 0));
  if (fd < 0) give_up("the segment cannot be opened", segment_path);
  move_to(fd, kSegmentAt);
  move_to(open_beside("doorbell", O_RDWR | O_NONBLOCK), kDoorbellAt);
  const int log = open_beside("runtime.log", O_WRONLY | O_CREAT | O_APPEND);
  move_to(log, kMessagesAt);
  if (log >= 0) set_message_fd(descriptor_base + kMessagesAt);
  move_to(open_beside("", O_PATH | O_DIRECTORY), kDirectoryAt);
  put_spare();
  segment = attach(descriptor_base + kSegmentAt).layout;
}

void ring() noexcept {
  const char byte = 1;
  raw_syscall(SYS_write, descriptor_base + kDoorbellAt, &byte, 1);
}

void copy_text(const char* text, char* out, std::size_t room) noexcept {
  const std::size_t size = std::strlen(text);
  if (size + 1 > room) give_up("a variable of the environment is too long", text);
  std::memcpy(out, text, size + 1);
}

bool is_ours(const char* entry) noexcept {
  static constexpr const char* kNames[] = {
      "LD_PRELOAD=",    "CRANE_SEGMENT=", "CRANE_SEGMENT_FD=", "CRANE_SLOT=",
      "CRANE_PROCESS=", "CRANE_EVEN=",    "CRANE_CONTAINER="};
  for (const char* name : kNames) {
    if (begins_with(entry, name)) return true;
  }
  return false;
}

// The program has the environment that it was given: what is ours is added to it again at exec.
// The loader put the auxiliary vector behind the environment, and runtimes look for it behind the
// first null (Go's does): the gap is filled with pairs that say nothing.  That wants an even number
// of ours; otherwise the vector looks empty, and who looks reads /proc/self/auxv.
//
// LXC sets container=lxc.  CRANE_CONTAINER has the entry that was there before, or nothing.
void hide_own_variables() noexcept {
  char** out = environ;
  char** end = environ;
  const char* const before = variable("CRANE_CONTAINER");
  for (; *end != nullptr; ++end) {
    if (is_ours(*end)) continue;
    const bool replaces = before != nullptr && begins_with(*end, "container=");
    if (!replaces || *before != '\0') *out++ = replaces ? const_cast<char*>(before) : *end;
  }
  const std::uintptr_t type = (end - out) % 2 == 0 ? AT_IGNORE : AT_NULL;
  for (char** gap = out + 1; gap < end; gap += 2) {
    gap[0] = reinterpret_cast<char*>(type);
    gap[1] = nullptr;
  }
  *out = nullptr;
}

// The first operation of a program image: who it is, and what exec left over is cleared.
void start_image(bool after_exec) noexcept {
  Turn turn(after_exec ? Op::kExecDone : Op::kThreadStart);
  dmt::ProcessRecord& p = turn.w.processes[self.process];
  p.pid = static_cast<std::uint32_t>(raw_syscall(SYS_getpid));
  p.group = static_cast<std::uint32_t>(raw_syscall(SYS_getpgid, 0));
  p.session = static_cast<std::uint32_t>(raw_syscall(SYS_getsid, 0));
  turn.w.slots[self.slot].thread_id = self.thread_id;
  prepare_for_restores();
  publish_operation_names();
  if (after_exec) settle_after_exec();
  self.entry = add_thread(turn.w, real::pthread_self(), self.slot, false);
  self.entry->thread_id = self.thread_id;
}

void initialise(int count, char** arguments, char** environment) noexcept {
  real::init();
  register_atfork_handlers();
  const char* path = variable("CRANE_SEGMENT");
  if (path == nullptr) return;  // not started by a node: stay out of the way
  fix_addresses(count, arguments, environment);
  look_for_valgrind();
  copy_text(path, segment_path, sizeof segment_path);
  const char* loaded = variable("LD_PRELOAD");
  copy_text(loaded == nullptr ? "" : loaded, preload, sizeof preload);
  open_own_descriptors();
  const int process = number(variable("CRANE_PROCESS"), dmt::kMainProcess);
  if (process <= 0 || process >= static_cast<int>(dmt::kProcessesMax)) {
    give_up("not a process of this replica", "CRANE_PROCESS");
  }
  const auto index = static_cast<std::uint16_t>(process);
  const bool after_exec = variable("CRANE_SLOT") != nullptr;
  const int slot = number(variable("CRANE_SLOT"), without_turn().processes[index].main_slot);
  if (slot <= 0 || slot >= static_cast<int>(dmt::kSlotsMax)) {
    give_up("not a slot of this replica", "CRANE_SLOT");
  }
  dmt::set_doorbell(ring);
  if (!after_exec) check_in(index);  // else the process did, and the node watches it by its pid
  be_patient();
  install_trap();
  unreachable::prepare();
  signal_stack::arm(signal_stack::map());
  adopt_slot(static_cast<std::uint16_t>(slot), index);
  prepare_thread_end();
  arm_thread_end();
  install_fault_handlers();
  family::note_parent_death_signal();
  family::forget_children_in_kernel();
  take_over_vdso();
  take_over_libc_view();
  forbid_tsc();
  tsc::prepare_sites();
  ticks::prepare();
  install_probe_handler();
  branches::prepare();
  prepare_soft_barrier_points();
  register_exit_handlers();
  start_image(after_exec);
  hide_own_variables();
  replace_random_bytes();
  adopt_standard_streams();
  InsideCrane::set_outside();
}

}  // namespace

int own_descriptor_base() noexcept { return segment == nullptr ? 0 : descriptor_base; }

int own_descriptor_end() noexcept {
  if (segment == nullptr) return 0;
  const bool counts = without_turn().header.configuration.branch_event != 0;
  return descriptor_base + kOwnDescriptors + (counts ? kCounterDescriptors : 0);
}

static long new_socket() noexcept {
  return raw_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

// The program may have used up all the descriptors that it has allowed itself ..
static long socket_beyond_limit() noexcept {
  struct rlimit limit {};
  raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  const rlim_t ours = static_cast<rlim_t>(descriptor_base) + 2 * kOwnDescriptors;
  const struct rlimit wider = {ours, limit.rlim_max < ours ? ours : limit.rlim_max};
  if (limit.rlim_cur >= ours) return -EMFILE;
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &wider, nullptr) < 0) return -EMFILE;
  const long fd = new_socket();
  raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
  return fd;
}

// .. or all that there are: `spare` says whether the spare one's place was taken.
static long socket_for_check_in(bool& spare) noexcept {
  long fd = new_socket();
  if (fd == -EMFILE) fd = socket_beyond_limit();
  spare = fd == -EMFILE;
  if (!spare) return fd;
  raw_syscall(SYS_close, descriptor_base + kSpareAt);
  return new_socket();
}

void check_in(std::uint16_t process) noexcept {
  const dmt::CheckIn message{dmt::kLayoutVersion, process,
                             static_cast<std::uint32_t>(raw_syscall(SYS_getpid))};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  char path[kPathMax];
  path_beside_segment("checkin.sock", path);
  if (std::strlen(path) >= sizeof address.sun_path) {
    give_up("the path of the check-in socket is too long", path);
  }
  std::memcpy(address.sun_path, path, std::strlen(path) + 1);
  bool spare = false;
  const long fd = socket_for_check_in(spare);
  if (fd < 0) give_up("no descriptor for the check-in", path);
  long error = raw_syscall(SYS_connect, fd, &address, sizeof address);
  if (error < 0) {
    // After chroot our own descriptor of the directory still leads there.
    static constexpr char kThere[] = "/checkin.sock";
    char* out = address.sun_path;
    print_number(kDescriptorLinks, static_cast<unsigned>(descriptor_base + kDirectoryAt), out);
    std::memcpy(out + std::strlen(out), kThere, sizeof kThere);
    error = raw_syscall(SYS_connect, fd, &address, sizeof address);
  }
  if (error < 0) give_up("the node does not listen for check-ins", path);
  raw_syscall(SYS_sendto, fd, &message, sizeof message, MSG_NOSIGNAL, nullptr, 0);
  raw_syscall(SYS_close, fd);
  if (spare) put_spare();
}

void build_environment(char* const* given, char** out, std::uint16_t slot,
                       std::uint16_t process) noexcept {
  for (; given != nullptr && *given != nullptr; ++given) {
    if (!is_ours(*given)) *out++ = *given;
  }
  std::memcpy(variable_preload, "LD_PRELOAD=", 11);
  std::memcpy(variable_preload + 11, preload, std::strlen(preload) + 1);
  std::memcpy(variable_segment, "CRANE_SEGMENT=", 14);
  std::memcpy(variable_segment + 14, segment_path, std::strlen(segment_path) + 1);
  print_number("CRANE_SEGMENT_FD=", static_cast<unsigned>(descriptor_base), variable_descriptor);
  print_number("CRANE_SLOT=", slot, variable_slot);
  print_number("CRANE_PROCESS=", process, variable_process);
  *out++ = variable_preload;
  *out++ = variable_segment;
  *out++ = variable_descriptor;
  *out++ = variable_slot;
  *out++ = variable_process;
  *out++ = variable_even;
  *out = nullptr;
}

}  // namespace crane

// Before the constructors of all other libraries (-z initfirst), libc's included: an allocator
// reads the clock there, and others take random seeds. The loader gives constructors main's
// arguments.
__attribute__((constructor(101))) static void crane_initialise(int count, char** arguments,
                                                               char** environment) {
  if (environ == nullptr) environ = environment;
  crane::initialise(count, arguments, environment);
}
