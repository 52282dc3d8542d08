// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/self/own_descriptors.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "dmt/segment.h"
#include "runtime/preload/ground/attach_error.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/own_variables.h"
#include "runtime/preload/self/thread.h"

namespace crane {
namespace {

constexpr int kSegmentAt = 0, kDoorbellAt = 1, kMessagesAt = 2, kDirectoryAt = 3, kSpareAt = 4;

int descriptor_base = 0;

// Writes dir(own_segment_path())/name to `out`.
void path_beside_segment(const char* name, char (&out)[kOwnPathMax]) noexcept {
  const char* slash = std::strrchr(own_segment_path(), '/');
  const std::size_t size =
      slash == nullptr ? 0 : static_cast<std::size_t>(slash - own_segment_path()) + 1;
  const std::size_t name_size = std::strlen(name);
  CRANE_ASSERT(size + name_size + 1 <= sizeof out);
  std::memcpy(out, own_segment_path(), size);
  std::memcpy(out + size, name, name_size + 1);
}

int pick_base() noexcept {
  // Above the numbers that a server reaches and below the kernel's limit, which is the same on all
  // replicas.
  struct rlimit limit {};
  raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  constexpr rlim_t kHighest = 1u << 20;
  const rlim_t top = limit.rlim_cur < kHighest ? limit.rlim_cur : kHighest;
  // CRIU uses descriptors above a process' highest while it restores the process.
  constexpr int kRoomForCriu = 256;
  return static_cast<int>(top) - (top >= 4 * kRoomForCriu ? kRoomForCriu : 2 * kOwnDescriptors);
}

// Moves `fd` to its place among our own; exec inherits it there.
void move_to(int fd, int place) noexcept {
  if (fd < 0 || fd == descriptor_base + place) return;
  raw_syscall(SYS_dup2, fd, descriptor_base + place);
  raw_syscall(SYS_close, fd);
}

int open_beside(const char* name, int flags) noexcept {
  char path[kOwnPathMax];
  path_beside_segment(name, path);
  return static_cast<int>(raw_syscall(SYS_openat, AT_FDCWD, path, flags, 0644));
}

// A check-in uses the spare place when the program has used up all other descriptors.
void put_spare() noexcept {
  raw_syscall(SYS_fcntl, descriptor_base + kDirectoryAt, F_DUPFD, descriptor_base + kSpareAt);
}

dmt::Attached attach(int fd) noexcept {
  const dmt::Attached attached = dmt::attach_segment(fd);
  switch (attached.state) {
    case dmt::Attach::kReady:
      return attached;
    case dmt::Attach::kAbsent:
      give_up("the segment does not exist", own_segment_path());
    case dmt::Attach::kCreating:
      give_up("the segment is not complete; was the program started by a node?",
              own_segment_path());
    case dmt::Attach::kWrongVersion:
      give_up("the segment is of another version; use libcrane.so and crane-node of one build",
              own_segment_path());
    case dmt::Attach::kTooSmall:
      give_up("the segment is too small", own_segment_path());
    case dmt::Attach::kSystem:
      give_up("the segment cannot be mapped", own_segment_path());
  }
  __builtin_unreachable();
}

long new_socket() noexcept {
  return raw_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

// The program may have used up all descriptors that it allows itself, so this raises the limit.
long socket_beyond_limit() noexcept {
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

// If no descriptor is free, uses the place of the spare one and sets `spare`.
long socket_for_check_in(bool& spare) noexcept {
  long fd = new_socket();
  if (fd == -EMFILE) fd = socket_beyond_limit();
  spare = fd == -EMFILE;
  if (!spare) return fd;
  raw_syscall(SYS_close, descriptor_base + kSpareAt);
  return new_socket();
}

}  // namespace

void open_own_descriptors() noexcept {
  const int inherited = variable_number("CRANE_SEGMENT_FD", -1);
  if (inherited >= 0) {
    descriptor_base = inherited;
    set_message_fd(descriptor_base + kMessagesAt);
    segment = attach(descriptor_base + kSegmentAt).layout;
    return;
  }
  descriptor_base = pick_base();
  const int fd = static_cast<int>(raw_syscall(SYS_openat, AT_FDCWD, own_segment_path(), O_RDWR, 0));
  if (fd < 0) give_up("the segment cannot be opened", own_segment_path());
  move_to(fd, kSegmentAt);
  move_to(open_beside("doorbell", O_RDWR | O_NONBLOCK), kDoorbellAt);
  const int log = open_beside("runtime.log", O_WRONLY | O_CREAT | O_APPEND);
  move_to(log, kMessagesAt);
  if (log >= 0) set_message_fd(descriptor_base + kMessagesAt);
  move_to(open_beside("", O_PATH | O_DIRECTORY), kDirectoryAt);
  put_spare();
  segment = attach(descriptor_base + kSegmentAt).layout;
}

void ring_doorbell() noexcept {
  const char byte = 1;
  raw_syscall(SYS_write, descriptor_base + kDoorbellAt, &byte, 1);
}

int own_descriptor_base() noexcept { return segment == nullptr ? 0 : descriptor_base; }

int own_descriptor_end() noexcept {
  if (segment == nullptr) return 0;
  const bool counts = without_turn().header.configuration.branch_event != 0;
  return descriptor_base + kOwnDescriptors + (counts ? kCounterDescriptors : 0);
}

void check_in(std::uint16_t process) noexcept {
  const dmt::CheckIn message{dmt::kLayoutVersion, process,
                             static_cast<std::uint32_t>(raw_syscall(SYS_getpid))};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  char path[kOwnPathMax];
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

}  // namespace crane
