// SPDX-License-Identifier: Apache-2.0
// uname, sysconf, sysinfo, getauxval, times and getpagesize agree with each other.
#define _GNU_SOURCE
#include <limits.h>
#include <sys/auxv.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

#include "../small.h"

int main(void) {
  struct utsname u;
  struct sysinfo s;
  struct tms t;
  char host[256], random[16];
  CHECK_EQUAL(uname(&u), 0);
  CHECK_EQUAL(strcmp(u.sysname, "Linux"), 0);
  CHECK_EQUAL(gethostname(host, sizeof host), 0);
  CHECK_EQUAL(strcmp(host, u.nodename), 0);
  CHECK(atoi(u.release) >= 3);
  CHECK_EQUAL(sysconf(_SC_PAGESIZE), getpagesize());
  CHECK_EQUAL(getauxval(AT_PAGESZ), getpagesize());
  CHECK_EQUAL(getauxval(AT_UID), getuid());
  CHECK_EQUAL(getauxval(AT_EGID), getegid());
  CHECK_EQUAL(getauxval(AT_CLKTCK), sysconf(_SC_CLK_TCK));
  CHECK_EQUAL(getauxval(AT_SECURE), 0);
  CHECK(strstr((const char*)getauxval(AT_EXECFN), program_invocation_short_name) != NULL);
  CHECK(strcmp((const char*)getauxval(AT_PLATFORM), u.machine) == 0);
  memcpy(random, (const void*)getauxval(AT_RANDOM), sizeof random);
  errno = 0;
  CHECK(getauxval(12345) == 0 && errno == ENOENT);
  CHECK_EQUAL(sysconf(_SC_NPROCESSORS_ONLN), get_nprocs());
  CHECK_EQUAL(sysconf(_SC_NPROCESSORS_CONF), get_nprocs_conf());
  CHECK(get_nprocs() >= 1 && get_nprocs() <= get_nprocs_conf());
  CHECK_EQUAL(sysinfo(&s), 0);
  CHECK_EQUAL(s.totalram * s.mem_unit / (unsigned long)getpagesize(), sysconf(_SC_PHYS_PAGES));
  CHECK(s.freeram <= s.totalram && s.uptime >= 0 && s.procs > 0);
  CHECK(times(&t) != (clock_t)-1);
  CHECK(t.tms_utime >= 0 && t.tms_cutime == 0);
  CHECK(times(NULL) != (clock_t)-1);
  CHECK(sysconf(_SC_ARG_MAX) >= 131072 && sysconf(_SC_IOV_MAX) == IOV_MAX);
  CHECK_EQUAL(sysconf(_SC_LINE_MAX), 2048);
  CHECK_EQUAL(sysconf(_SC_VERSION), 200809);
  errno = 0;
  CHECK(sysconf(12345) == -1 && errno == EINVAL);
  return succeed();
}
