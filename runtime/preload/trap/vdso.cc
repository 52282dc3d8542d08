// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/trap/vdso.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"
#include "dmt/base/valgrind.h"
#include "runtime/preload/ground/code.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/tsc_site.h"
#include "runtime/preload/trap/tsc_stub.h"
#include "runtime/preload/turn/vrandom.h"
#include "runtime/preload/turn/vtime.h"

namespace crane {
namespace {

// Inside Crane, and in a thread without a slot, time is the machine's, as for all real calls.
bool is_real() noexcept { return InsideCrane::inside() || self.slot == dmt::kNone; }

// A read by libc itself, perhaps under one of its locks, takes no turn (rule 5).
void read_from(const void* caller) noexcept {
  if (is_libc_or_trusted(caller)) self.clock_reads = 0;
}

long answer(int result) noexcept { return result == 0 ? 0 : -errno; }

// --- replacements of the vDSO's functions: results as the kernel's, errno is not touched ---------

long clock_time(clockid_t clock, struct timespec* time) noexcept {
  if (is_real()) return raw_syscall(SYS_clock_gettime, clock, time);
  read_from(__builtin_return_address(0));
  InsideCrane inside;
  const int saved = errno;
  const long result = answer(wrap::clock_gettime(clock, time));
  errno = saved;
  return result;
}

long day_time(struct timeval* time, void* zone) noexcept {
  if (is_real()) return raw_syscall(SYS_gettimeofday, time, zone);
  read_from(__builtin_return_address(0));
  InsideCrane inside;
  return wrap::gettimeofday(time, zone);
}

time_t seconds(time_t* time) noexcept {
  if (is_real()) return raw_syscall(SYS_time, time);
  read_from(__builtin_return_address(0));
  InsideCrane inside;
  return wrap::time(time);
}

long resolution(clockid_t clock, struct timespec* time) noexcept {
  if (is_real()) return raw_syscall(SYS_clock_getres, clock, time);
  InsideCrane inside;
  const int saved = errno;
  const long result = answer(wrap::clock_getres(clock, time));
  errno = saved;
  return result;
}

long processor(unsigned* cpu, unsigned* node, void*) noexcept {
  if (cpu != nullptr) *cpu = 0;
  if (node != nullptr) *node = 0;
  return 0;
}

// Makes libc call the kernel instead.
long no_randomness() noexcept { return -ENOSYS; }

struct Replacement {
  const char* name;
  std::uintptr_t function;
};

// --- patching ------------------------------------------------------------------------------------

struct Image {
  std::uintptr_t base = 0;  // base of its relative addresses
  std::uintptr_t end = 0;
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
};

Image image_at(std::uintptr_t address) noexcept {
  Image image;
  const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(address);
  const auto* parts = reinterpret_cast<const Elf64_Phdr*>(address + elf->e_phoff);
  const Elf64_Dyn* dynamic = nullptr;
  for (unsigned i = 0; i < elf->e_phnum; ++i) {
    const Elf64_Phdr& p = parts[i];
    if (p.p_type == PT_LOAD) {
      image.base = address + p.p_offset - p.p_vaddr;
      image.end = image.base + p.p_vaddr + p.p_memsz;
    } else if (p.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const Elf64_Dyn*>(address + p.p_offset);
    }
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const std::uintptr_t at = image.base + dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) image.symbols = reinterpret_cast<const Elf64_Sym*>(at);
    if (dynamic->d_tag == DT_STRTAB) image.names = reinterpret_cast<const char*>(at);
  }
  return image;
}

void patch(const Image& image) noexcept {
  const Replacement replacements[] = {{"__vdso_clock_gettime", address_of(clock_time)},
                                      {"__vdso_gettimeofday", address_of(day_time)},
                                      {"__vdso_time", address_of(seconds)},
                                      {"__vdso_clock_getres", address_of(resolution)},
                                      {"__vdso_getcpu", address_of(processor)},
                                      {"__vdso_getrandom", address_of(no_randomness)}};
  // The names follow the symbols in all known images.
  const auto* end = reinterpret_cast<const Elf64_Sym*>(image.names);
  for (const Elf64_Sym* s = image.symbols; s + 1 <= end; ++s) {
    for (const Replacement& r : replacements) {
      if (std::strcmp(image.names + s->st_name, r.name) == 0) {
        write_jump(image.base + s->st_value, r.function);
      }
    }
  }
}

const std::ptrdiff_t* rseq_offset = nullptr;

constexpr unsigned char kTscAndProcessor[] = {0x0f, 0x01, 0xf9};  // rdtscp

}  // namespace

void take_over_vdso() noexcept {
  const std::uintptr_t address = getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return;
  const Image image = image_at(address);
  if (image.symbols == nullptr || reinterpret_cast<const void*>(image.names) < image.symbols) {
    Message() << "the vDSO cannot be read: its callers get this machine's time";
    return;
  }
  // The kernel does not split this mapping, so the protection changes for all of it.
  const std::uintptr_t size = (image.end - address + kCodePage - 1) & ~(kCodePage - 1);
  long error = raw_syscall(SYS_mprotect, address, size, PROT_READ | PROT_WRITE | PROT_EXEC);
  if (error == 0) {
    patch(image);
    error = raw_syscall(SYS_mprotect, address, size, PROT_READ | PROT_EXEC);
  }
  if (error != 0) {
    Message() << "the vDSO cannot be changed (error " << -error
              << "): its callers get this machine's time";
  }
}

void forbid_tsc() noexcept {
  if (in_valgrind) return;  // Valgrind executes RDTSC itself
  const long error = raw_syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
  if (error != 0) Message() << "RDTSC returns this machine's time (error " << -error << ")";
}

void allow_tsc() noexcept { raw_syscall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE); }

void leave_rseq() noexcept {
  constexpr int kUnregister = 1;
  constexpr unsigned kSignature = 0x53053053;  // libc's registration signature on this processor
  constexpr std::size_t kBytes = 32;
  struct Area {
    std::uint32_t cpu_id_start, cpu_id;
  };
  // Looked up by name: the symbol is ld.so's, and this library links only libc.
  if (rseq_offset == nullptr) {
    rseq_offset = static_cast<const std::ptrdiff_t*>(real::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  }
  if (rseq_offset == nullptr) return;
  auto* area =
      reinterpret_cast<Area*>(static_cast<char*>(__builtin_thread_pointer()) + *rseq_offset);
  constexpr auto kFailed = static_cast<std::uint32_t>(RSEQ_CPU_ID_REGISTRATION_FAILED);
  if (area->cpu_id == kFailed) return;  // libc has not registered the area
  const long error = raw_syscall(SYS_rseq, area, kBytes, kUnregister, kSignature);
  if (error == 0) area->cpu_id = kFailed;
}

void replace_random_bytes() noexcept {
  constexpr std::size_t kBytes = 16;
  void* bytes = reinterpret_cast<void*>(getauxval(AT_RANDOM));
  if (bytes != nullptr) virtual_random(bytes, kBytes);
}

bool handle_tsc(const siginfo_t* info, void* context) noexcept {
  if (info->si_code != SI_KERNEL) return false;
  auto& interrupted = *static_cast<ucontext_t*>(context);
  auto* registers = interrupted.uc_mcontext.gregs;
  const auto address = static_cast<std::uintptr_t>(registers[REG_RIP]);
  const void* code = reinterpret_cast<const void*>(address);
  const bool plain = std::memcmp(code, tsc::kRead, sizeof tsc::kRead) == 0;
  if (!plain && std::memcmp(code, kTscAndProcessor, sizeof kTscAndProcessor) != 0) {
    return tsc::resume(address, interrupted);
  }
  const std::uintptr_t site = plain ? tsc::site_of(address) : address;
  registers[REG_RIP] = static_cast<greg_t>(site);  // for unwinders
  // The value counts nanoseconds.
  std::int64_t count = 0;
  if (is_real()) {
    struct timespec now {};
    raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    count = to_ns(now);
  } else {
    read_from(reinterpret_cast<const void*>(site));
    InsideCrane inside;
    const int saved = errno;
    count = virtual_now();
    if (plain && site == address) tsc::note_trap(site);
    errno = saved;
  }
  registers[REG_RAX] = count & 0xffffffff;
  registers[REG_RDX] = count >> 32;
  if (!plain) registers[REG_RCX] = 0;
  // If the place was changed meanwhile, int3 is at this address.
  registers[REG_RIP] =
      static_cast<greg_t>(address + (plain ? sizeof tsc::kRead : sizeof kTscAndProcessor));
  return true;
}

}  // namespace crane
