// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/proc_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/processes.h"
#include "runtime/preload/files/proc_kernel.h"
#include "runtime/preload/files/proc_text.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/terminals/terminal.h"
#include "runtime/preload/turn/vrandom.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

constexpr std::uint64_t kPage = 4096, kPageKb = kPage / 1024;
constexpr std::uint64_t kMachinePages = 1 << 20;  // as sysconf(_SC_PHYS_PAGES)
constexpr std::uint64_t kProcessPages = 1 << 14, kResidentPages = 1 << 12, kSharedPages = 1 << 10;
constexpr std::int64_t kTicksPerSecond = 100;

// The process of the server that the file describes; for files of the machine, the calling process.
struct Subject {
  const dmt::Layout& w;
  std::uint32_t pid;
  std::uint16_t process;
};

std::uint64_t uptime_ticks(const dmt::Layout& w) noexcept {
  return static_cast<std::uint64_t>(w.scheduler.now_ns / (kNsPerSecond / kTicksPerSecond));
}

// Writes the name that the process gave itself.
void write_name(const Subject& of, ProcText& out) noexcept {
  char name[20] = "";
  const long fd =
      raw_syscall(SYS_openat, AT_FDCWD, ProcessFile(of.pid, "/comm").path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  const long got = raw_syscall(SYS_read, fd, name, sizeof name - 1);
  raw_syscall(SYS_close, fd);
  if (got > 0) name[got - 1] = '\0';  // without the newline
  out << name;
}

std::uint32_t own_pid() noexcept { return static_cast<std::uint32_t>(raw_syscall(SYS_getpid)); }

std::uint64_t parent_of(const Subject& of) noexcept {
  if (of.process == self.process) return static_cast<std::uint64_t>(raw_syscall(SYS_getppid));
  const std::uint16_t parent = of.w.processes[of.process].parent;
  return parent == dmt::kNoProcess ? 1 : of.w.processes[parent].pid;
}

const char* state_of(const Subject& of) noexcept {
  if (of.process == self.process) return "R (running)";
  const dmt::ProcessRecord& p = of.w.processes[of.process];
  if (p.state == dmt::ProcessState::kZombie) return "Z (zombie)";
  return p.stopped_by != 0 ? "T (stopped)" : "S (sleeping)";
}

// Writes the controlling terminal and its foreground group.
void write_terminal(const Subject& of, ProcText& out) noexcept {
  const std::uint16_t terminal = of.w.processes[of.process].terminal;
  if (terminal == 0) {
    out << " 0 -1";
    return;
  }
  out << " " << terminal::device_number(terminal) << " "
      << std::uint64_t{of.w.terminals[terminal].group};
}

void write_stat(const Subject& of, ProcText& out) noexcept {
  out << std::uint64_t{of.pid} << " (";
  write_name(of, out);
  out << ") ";
  out.put(state_of(of), 1);
  out << " " << parent_of(of) << " " << static_cast<std::uint64_t>(raw_syscall(SYS_getpgid, of.pid))
      << " " << static_cast<std::uint64_t>(raw_syscall(SYS_getsid, of.pid));
  write_terminal(of, out);
  // Flags, faults and processor time are 0. One thread, started with the machine.
  out << " 0 0 0 0 0 0 0 0 0 20 0 1 0 0 " << kProcessPages * kPage << " " << kResidentPages
      << " 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
}

void write_statm(const Subject&, ProcText& out) noexcept {
  out << kProcessPages << " " << kResidentPages << " " << kSharedPages << " 256 0 8192 0\n";
}

void write_status(const Subject& of, ProcText& out) noexcept {
  struct stat owner {};
  raw_syscall(SYS_newfstatat, AT_FDCWD, ProcessFile(of.pid, "").path, &owner, 0);
  out << "Name:\t";
  write_name(of, out);
  out << "\nState:\t" << state_of(of) << "\nTgid:\t" << std::uint64_t{of.pid} << "\nPid:\t"
      << std::uint64_t{of.pid} << "\nPPid:\t" << parent_of(of) << "\nTracerPid:\t0\nUid:";
  for (int i = 0; i < 4; ++i) out << "\t" << std::uint64_t{owner.st_uid};
  out << "\nGid:";
  for (int i = 0; i < 4; ++i) out << "\t" << std::uint64_t{owner.st_gid};
  out << "\nFDSize:\t256\nVmPeak:\t" << kProcessPages * kPageKb << " kB\nVmSize:\t"
      << kProcessPages * kPageKb << " kB\nVmLck:\t0 kB\nVmHWM:\t" << kResidentPages * kPageKb
      << " kB\nVmRSS:\t" << kResidentPages * kPageKb
      << " kB\nVmSwap:\t0 kB\nThreads:\t1\nvoluntary_ctxt_switches:\t0\n"
         "nonvoluntary_ctxt_switches:\t0\n";
}

void write_rollup(const Subject&, ProcText& out) noexcept {
  out << "00400000-7fffffffffff ---p 00000000 00:00 0 [rollup]\nSize: " << kProcessPages * kPageKb
      << " kB\nRss: " << kResidentPages * kPageKb << " kB\nPss: " << kResidentPages * kPageKb
      << " kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 0 kB\n"
         "Referenced: 0 kB\nAnonymous: 0 kB\nLazyFree: 0 kB\nAnonHugePages: 0 kB\nSwap: 0 kB\n";
}

void write_io(const Subject&, ProcText& out) noexcept {
  out << "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n"
         "cancelled_write_bytes: 0\n";
}

void write_meminfo(const Subject&, ProcText& out) noexcept {
  const std::uint64_t all = kMachinePages * kPageKb;
  out << "MemTotal: " << all << " kB\nMemFree: " << all << " kB\nMemAvailable: " << all
      << " kB\nBuffers: 0 kB\nCached: 0 kB\nSwapCached: 0 kB\nActive: 0 kB\nInactive: 0 kB\n"
         "SwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 0 kB\nShmem: 0 kB\nSReclaimable: 0 kB\n"
         "CommitLimit: "
      << all << " kB\nCommitted_AS: 0 kB\nHugePages_Total: 0\nHugePages_Free: 0\n"
      << "Hugepagesize: 2048 kB\n";
}

void write_machine_stat(const Subject& of, ProcText& out) noexcept {
  const std::uint64_t idle = uptime_ticks(of.w);
  out << "cpu  0 0 0 " << 2 * idle << " 0 0 0 0 0 0\ncpu0 0 0 0 " << idle
      << " 0 0 0 0 0 0\ncpu1 0 0 0 " << idle << " 0 0 0 0 0 0\nintr 0\nctxt 0\nbtime "
      << static_cast<std::uint64_t>(of.w.scheduler.wall_offset_ns / kNsPerSecond)
      << "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
}

void write_load(const Subject&, ProcText& out) noexcept { out << "0.00 0.00 0.00 1/1 1\n"; }

constexpr std::size_t kUuidBytes = 16;

// As RFC 4122 formats a random UUID.
void write_uuid(unsigned char (&bytes)[kUuidBytes], ProcText& out) noexcept {
  static constexpr char kDigits[] = "0123456789abcdef";
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  for (std::size_t i = 0; i < kUuidBytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out << "-";
    out.put(&kDigits[bytes[i] >> 4], 1);
    out.put(&kDigits[bytes[i] & 0xf], 1);
  }
  out << "\n";
}

void write_uptime(const Subject& of, ProcText& out) noexcept {
  const std::uint64_t up = uptime_ticks(of.w) / kTicksPerSecond;
  out << up << ".00 " << 2 * up << ".00\n";
}

void write_processors(const Subject&, ProcText& out) noexcept {
  for (std::uint64_t i = 0; i < 2; ++i) {
    out << "processor\t: " << i
        << "\nvendor_id\t: GenuineIntel\nmodel name\t: virtual\ncpu MHz\t\t: 1000.000\n"
           "cache size\t: 16384 KB\nphysical id\t: 0\nsiblings\t: 2\ncore id\t\t: "
        << i << "\ncpu cores\t: 2\nflags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2\n\n";
  }
}

// Writes the machine's boot identifier, one per start of the group.
void write_boot_id(const Subject&, ProcText& out) noexcept {
  unsigned char bytes[kUuidBytes];
  agreed_bytes(bytes);
  write_uuid(bytes, out);
}

void write_random_uuid(const Subject&, ProcText& out) noexcept {
  unsigned char bytes[kUuidBytes];
  virtual_random(bytes, sizeof bytes);
  write_uuid(bytes, out);
}

// --- the files, and how each is written ----------------------------------------------------------

// Exactly one of three is set: a constant text, a function that writes the text at each opening, or
// a function that rewrites the kernel's text without the replica's own values.
struct ProcFile {
  const char* name;
  const char* text;
  void (*write)(const Subject&, ProcText&) noexcept;
  long (*rewrite)(const char* path, ProcText&) noexcept;
};
constexpr ProcFile constant(const char* name, const char* text) {
  return {name, text, nullptr, nullptr};
}
constexpr ProcFile written(const char* name, void (*write)(const Subject&, ProcText&) noexcept) {
  return {name, nullptr, write, nullptr};
}
constexpr ProcFile rewritten(const char* name, long (*rewrite)(const char*, ProcText&) noexcept) {
  return {name, nullptr, nullptr, rewrite};
}

// Files of a process of the server.
constexpr ProcFile kOfProcess[] = {
    written("stat", write_stat),
    written("statm", write_statm),
    written("status", write_status),
    written("smaps", write_rollup),
    written("io", write_io),
    written("smaps_rollup", write_rollup),
    constant("arch_status", ""),
    constant("autogroup", "/autogroup-1 nice 0\n"),
    constant("numa_maps", ""),
    constant("oom_score", "0\n"),
    constant("sched", ""),
    constant("schedstat", "0 0 0\n"),
    constant("timerslack_ns", "50000\n"),
};

// Files of any process, also outside the server.
constexpr ProcFile kOfAnyProcess[] = {
    constant("cgroup", "0::/\n"),
    rewritten("maps", write_maps),
    rewritten("mountinfo", write_mountinfo),
    rewritten("mounts", write_mounts),
};

#define CRANE_NO_PRESSURE "avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
constexpr char kNoPressure[] = "some " CRANE_NO_PRESSURE "full " CRANE_NO_PRESSURE;
#undef CRANE_NO_PRESSURE

// Files of the machine, or of its network, which has none of the server's sockets.
constexpr ProcFile kOfMachine[] = {
    written("meminfo", write_meminfo),
    written("stat", write_machine_stat),
    written("loadavg", write_load),
    written("uptime", write_uptime),
    written("cpuinfo", write_processors),
    written("sys/kernel/random/boot_id", write_boot_id),
    written("sys/kernel/random/uuid", write_random_uuid),
    constant("sys/kernel/random/entropy_avail", "256\n"),
    constant("sys/kernel/ns_last_pid", "1\n"),
    constant("sys/kernel/pty/nr", "0\n"),
    constant("sys/fs/dentry-state", "0\t0\t45\t0\t0\t0\n"),
    constant("sys/fs/file-nr", "0\t0\t1048576\n"),
    constant("sys/fs/inode-nr", "0\t0\n"),
    constant("sys/fs/inode-state", "0\t0\t0\t0\t0\t0\t0\n"),
    constant("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"),
    constant("buddyinfo", ""),
    constant("diskstats", ""),
    constant("interrupts", ""),
    constant("locks", ""),
    constant("pagetypeinfo", ""),
    constant("schedstat", ""),
    constant("slabinfo", ""),
    constant("softirqs", ""),
    constant("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
    constant("timer_list", ""),
    constant("vmallocinfo", ""),
    constant("vmstat", ""),
    constant("zoneinfo", ""),
    constant("pressure/cpu", kNoPressure),
    constant("pressure/io", kNoPressure),
    constant("pressure/memory", kNoPressure),
    constant("net/netlink", ""),
    constant("net/netstat", ""),
    constant("net/packet", ""),
    constant("net/protocols", ""),
    constant("net/snmp", ""),
    constant("net/snmp6", ""),
    constant("net/sockstat", ""),
    constant("net/sockstat6", ""),
    constant("net/softnet_stat", ""),
    constant("net/unix", ""),
};

template <std::size_t n>
const ProcFile* find(const ProcFile (&table)[n], const char* name) noexcept {
  for (const ProcFile& f : table) {
    if (std::strcmp(f.name, name) == 0) return &f;
  }
  return nullptr;
}

// Returns the part of `path` after the prefix `text`, or null.
const char* behind(const char* path, const char* text) noexcept {
  return begins_with(path, text) ? path + std::strlen(text) : nullptr;
}

// Returns the part after the name of a process, and the process; null: there is none.
const char* behind_process(const char* path, std::uint32_t& pid) noexcept {
  pid = own_pid();
  for (const char* self_name : {"self/", "thread-self/"}) {
    if (const char* const name = behind(path, self_name)) return name;
  }
  const char* const at = parse_number(path, pid);
  return at != path && *at == '/' ? at + 1 : nullptr;
}

constexpr ProcFile kMounts = rewritten("mounts", write_mounts);
constexpr ProcFile kFdinfo = rewritten("fdinfo", write_fdinfo);
constexpr ProcFile kCounter = constant("counter", "0\n");

const ProcFile* find_of_process(const char* name, Subject& of) noexcept {
  if (const ProcFile* const file = find(kOfAnyProcess, name)) return file;
  if (behind(name, "fdinfo/") != nullptr) return &kFdinfo;
  // The network files of all the server's processes are the machine's.
  if (behind(name, "net/") != nullptr) return find(kOfMachine, name);
  of.process = of.pid == own_pid() ? self.process : dmt::find_process(of.w, of.pid);
  return of.process != dmt::kNoProcess ? find(kOfProcess, name) : nullptr;
}

const ProcFile* find_file(const char* path, Subject& of) noexcept {
  if (std::strcmp(path, "/etc/mtab") == 0) return &kMounts;
  path = behind(path, "/proc/");
  if (path == nullptr) return nullptr;
  if (const char* const name = behind_process(path, of.pid)) return find_of_process(name, of);
  return std::strcmp(path, "mounts") == 0 ? &kMounts : find(kOfMachine, path);
}

long write_file(const Subject& of, const ProcFile& file, const char* path, int flags) noexcept {
  const Scratch<ProcText> memory;
  ProcText& text = memory[0];
  text.begin(file.name, (flags & O_CLOEXEC) != 0);
  long error = 0;
  if (file.text != nullptr) text << file.text;
  if (file.write != nullptr) file.write(of, text);
  if (file.rewrite != nullptr) error = file.rewrite(path, text);
  const long fd = text.finish();
  if (error == 0 || fd < 0) return fd;
  raw_syscall(SYS_close, fd);
  return error;
}

}  // namespace

long open_proc_file(Turn& turn, const char* path, int flags) noexcept {
  if (path == nullptr || path[0] != '/') return kNotOurs;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_PATH | O_DIRECTORY)) != 0) return kNotOurs;
  const SysFile sort = sort_of(path);
  if (sort == SysFile::kHidden) return -ENOENT;
  Subject of{turn.w, 0, self.process};
  const ProcFile* const file = sort == SysFile::kCounter ? &kCounter : find_file(path, of);
  // If this kernel lacks the file, or the program may not read it, the kernel returns the error.
  if (file == nullptr || raw_syscall(SYS_access, path, R_OK) < 0) return kNotOurs;
  return write_file(of, *file, path, flags);
}

}  // namespace crane
