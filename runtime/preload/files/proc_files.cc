// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/proc_files.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/layout.h"
#include "runtime/preload/core/scratch.h"
#include "runtime/preload/core/text.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/time/vtime.h"

namespace crane {
namespace {

constexpr std::uint64_t kPage = 4096, kPageKb = kPage / 1024;
constexpr std::uint64_t kMachinePages = 1 << 20;  // as sysconf(_SC_PHYS_PAGES)
constexpr std::uint64_t kProcessPages = 1 << 14, kResidentPages = 1 << 12, kSharedPages = 1 << 10;
constexpr std::int64_t kTicksPerSecond = 100;
constexpr std::size_t kTextMax = 4096;

class Text {
 public:
  Text& operator<<(const char* text) noexcept {
    put(text, std::strlen(text));
    return *this;
  }
  Text& operator<<(std::uint64_t value) noexcept {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[sizeof digits - ++count] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    put(digits + sizeof digits - count, count);
    return *this;
  }
  const char* data() const noexcept { return text_; }
  std::size_t size() const noexcept { return size_; }
  bool whole() const noexcept { return whole_; }

 private:
  void put(const char* text, std::size_t size) noexcept {
    whole_ = whole_ && size <= kTextMax - size_;
    if (!whole_) return;
    std::memcpy(text_ + size_, text, size);
    size_ += size;
  }
  char text_[kTextMax];
  std::size_t size_ = 0;
  bool whole_ = true;
};

std::uint64_t uptime_ticks(const Turn& turn) noexcept {
  return static_cast<std::uint64_t>(turn.w.scheduler.now_ns / (kNsPerSecond / kTicksPerSecond));
}

// The process' name, which it gave itself.
void write_name(Text& out) noexcept {
  char name[20] = "";
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, "/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  const long got = raw_syscall(SYS_read, fd, name, sizeof name - 1);
  raw_syscall(SYS_close, fd);
  if (got > 0) name[got - 1] = '\0';  // its line ends there
  out << name;
}

std::uint64_t own_pid() noexcept { return static_cast<std::uint64_t>(raw_syscall(SYS_getpid)); }

// Its controlling terminal and the group in the foreground.
void write_terminal(const dmt::Layout& w, Text& out) noexcept {
  const std::uint16_t terminal = w.processes[self.process].terminal;
  if (terminal == 0) {
    out << " 0 -1";
    return;
  }
  out << " " << terminal::device_number(terminal) << " "
      << std::uint64_t{w.terminals[terminal].group};
}

void write_stat(Turn& turn, Text& out) noexcept {
  out << own_pid() << " (";
  write_name(out);
  out << ") R " << static_cast<std::uint64_t>(raw_syscall(SYS_getppid)) << " "
      << static_cast<std::uint64_t>(raw_syscall(SYS_getpgid, 0)) << " "
      << static_cast<std::uint64_t>(raw_syscall(SYS_getsid, 0));
  write_terminal(turn.w, out);
  // Flags, faults, processor time: none.  One thread, began with the machine.
  out << " 0 0 0 0 0 0 0 0 0 20 0 1 0 0 " << kProcessPages * kPage << " " << kResidentPages
      << " 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
}

void write_statm(Turn&, Text& out) noexcept {
  out << kProcessPages << " " << kResidentPages << " " << kSharedPages << " 256 0 8192 0\n";
}

void write_status(Turn&, Text& out) noexcept {
  const auto user = static_cast<std::uint64_t>(raw_syscall(SYS_geteuid));
  const auto group = static_cast<std::uint64_t>(raw_syscall(SYS_getegid));
  out << "Name:\t";
  write_name(out);
  out << "\nState:\tR (running)\nTgid:\t" << own_pid() << "\nPid:\t" << own_pid() << "\nPPid:\t"
      << static_cast<std::uint64_t>(raw_syscall(SYS_getppid)) << "\nTracerPid:\t0\nUid:\t" << user
      << "\t" << user << "\t" << user << "\t" << user << "\nGid:\t" << group << "\t" << group
      << "\t" << group << "\t" << group << "\nFDSize:\t256\nVmPeak:\t" << kProcessPages * kPageKb
      << " kB\nVmSize:\t" << kProcessPages * kPageKb << " kB\nVmLck:\t0 kB\nVmHWM:\t"
      << kResidentPages * kPageKb << " kB\nVmRSS:\t" << kResidentPages * kPageKb
      << " kB\nVmSwap:\t0 kB\nThreads:\t1\nvoluntary_ctxt_switches:\t0\n"
         "nonvoluntary_ctxt_switches:\t0\n";
}

void write_rollup(Turn&, Text& out) noexcept {
  out << "00400000-7fffffffffff ---p 00000000 00:00 0 [rollup]\nSize: " << kProcessPages * kPageKb
      << " kB\nRss: " << kResidentPages * kPageKb << " kB\nPss: " << kResidentPages * kPageKb
      << " kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 0 kB\n"
         "Referenced: 0 kB\nAnonymous: 0 kB\nLazyFree: 0 kB\nAnonHugePages: 0 kB\nSwap: 0 kB\n";
}

void write_io(Turn&, Text& out) noexcept {
  out << "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n"
         "cancelled_write_bytes: 0\n";
}

void write_meminfo(Turn&, Text& out) noexcept {
  const std::uint64_t all = kMachinePages * kPageKb;
  out << "MemTotal: " << all << " kB\nMemFree: " << all << " kB\nMemAvailable: " << all
      << " kB\nBuffers: 0 kB\nCached: 0 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\n"
         "SwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 0 kB\nShmem: 0 kB\nSReclaimable: 0 kB\n"
         "CommitLimit: "
      << all << " kB\nCommitted_AS: 0 kB\nHugePages_Total: 0\nHugePages_Free: 0\n"
      << "Hugepagesize: 2048 kB\n";
}

void write_machine_stat(Turn& turn, Text& out) noexcept {
  const std::uint64_t idle = uptime_ticks(turn);
  out << "cpu  0 0 0 " << 2 * idle << " 0 0 0 0 0 0\ncpu0 0 0 0 " << idle
      << " 0 0 0 0 0 0\ncpu1 0 0 0 " << idle << " 0 0 0 0 0 0\nintr 0\nctxt 0\nbtime "
      << static_cast<std::uint64_t>(turn.w.scheduler.wall_offset_ns / kNsPerSecond)
      << "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
}

void write_load(Turn&, Text& out) noexcept { out << "0.00 0.00 0.00 1/1 1\n"; }

void write_uptime(Turn& turn, Text& out) noexcept {
  const std::uint64_t up = uptime_ticks(turn) / kTicksPerSecond;
  out << up << ".00 " << 2 * up << ".00\n";
}

void write_processors(Turn&, Text& out) noexcept {
  for (std::uint64_t i = 0; i < 2; ++i) {
    out << "processor\t: " << i
        << "\nvendor_id\t: GenuineIntel\nmodel name\t: virtual\ncpu MHz\t\t: 1000.000\n"
           "cache size\t: 16384 KB\nphysical id\t: 0\nsiblings\t: 2\ncore id\t\t: "
        << i << "\ncpu cores\t: 2\nflags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2\n\n";
  }
}

struct ProcFile {
  const char* name;
  void (*write)(Turn&, Text&) noexcept;
};
constexpr ProcFile kOfProcess[] = {
    {"stat", write_stat},    {"statm", write_statm}, {"status", write_status},
    {"smaps", write_rollup}, {"io", write_io},       {"smaps_rollup", write_rollup},
};
constexpr ProcFile kOfMachine[] = {
    {"meminfo", write_meminfo}, {"stat", write_machine_stat},  {"loadavg", write_load},
    {"uptime", write_uptime},   {"cpuinfo", write_processors},
};

template <std::size_t n>
const ProcFile* find(const ProcFile (&table)[n], const char* name) noexcept {
  for (const ProcFile& f : table) {
    if (std::strcmp(f.name, name) == 0) return &f;
  }
  return nullptr;
}

// What follows "self/" or the calling process' own number; null: it is another's.
const char* behind_self(const char* path) noexcept {
  if (std::strncmp(path, "self/", 5) == 0) return path + 5;
  std::uint32_t pid;
  const char* const at = parse_number(path, pid);
  return at != path && *at == '/' && pid == own_pid() ? at + 1 : nullptr;
}

}  // namespace

long open_proc_file(Turn& turn, const char* path, int flags) noexcept {
  constexpr std::size_t kTop = 6;
  if (path == nullptr || std::strncmp(path, "/proc/", kTop) != 0) return kNotOurs;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_PATH | O_DIRECTORY)) != 0) return kNotOurs;
  const char* own = behind_self(path + kTop);
  const ProcFile* file = own != nullptr ? find(kOfProcess, own) : find(kOfMachine, path + kTop);
  if (file == nullptr) return kNotOurs;
  const Scratch<Text> memory;
  Text& text = memory[0];
  file->write(turn, text);
  if (!text.whole()) return -ENOMEM;
  const long fd = raw_syscall(SYS_memfd_create, path + kTop,
                              (flags & O_CLOEXEC) != 0 ? unsigned{MFD_CLOEXEC} : 0U);
  if (fd < 0) return fd;
  const long put = raw_syscall(SYS_pwrite64, fd, text.data(), text.size(), 0);
  if (put == static_cast<long>(text.size())) return fd;
  raw_syscall(SYS_close, fd);
  return put < 0 ? put : -ENOMEM;
}

}  // namespace crane
