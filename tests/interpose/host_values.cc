// SPDX-License-Identifier: Apache-2.0
// native: no
// Values of the machine that a program can read without input are the same in every run.
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

namespace {

void bytes_on_the_stack() {
  unsigned char bytes[16];
  std::memcpy(bytes, reinterpret_cast<const void*>(getauxval(AT_RANDOM)), sizeof bytes);
  std::printf("AT_RANDOM");
  for (const unsigned b : bytes) std::printf(" %02x", b);
  std::printf("\n");
}

int processor_in_memory() {
  if (__rseq_size == 0) return -1;
  const auto* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  std::uint32_t words[2];
  std::memcpy(words, area, sizeof words);
  return static_cast<int>(words[1]);
}

void show(const char* who) {
  std::random_device device;
  std::printf("%s: rdtsc %llu random %08x processor %d\n", who,
              static_cast<unsigned long long>(__rdtsc()), device(), processor_in_memory());
}

}  // namespace

int main() {
  bytes_on_the_stack();
  show("main");
  std::thread([] { show("thread"); }).join();
  utsname u{};
  uname(&u);
  char host[65] = "";
  gethostname(host, sizeof host);
  std::printf("%s %s %s %s %s\n", u.sysname, u.release, u.version, u.machine,
              std::strcmp(host, u.nodename) == 0 ? "same name" : host);
  struct sysinfo s {};
  sysinfo(&s);
  std::printf("%ld s up, %lu of %lu units of %u free, load %lu, %d processes\n", s.uptime,
              s.freeram, s.totalram, s.mem_unit, s.loads[0], s.procs);
  struct statvfs v {};
  struct statfs f {};
  statvfs("/", &v);
  statfs("/", &f);
  std::printf("%lu of %lu blocks of %lu free; %ld of %ld\n", static_cast<unsigned long>(v.f_bfree),
              static_cast<unsigned long>(v.f_blocks), v.f_bsize, static_cast<long>(f.f_bavail),
              static_cast<long>(f.f_blocks));
  std::printf("%d: no such path\n", statvfs("/no/such/path", &v));
  std::printf("pages %ld %ld, cache line %ld\n", get_phys_pages(), sysconf(_SC_AVPHYS_PAGES),
              sysconf(_SC_LEVEL1_DCACHE_LINESIZE));
  return 0;
}
