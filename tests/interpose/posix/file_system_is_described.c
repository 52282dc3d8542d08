// SPDX-License-Identifier: Apache-2.0
// statvfs and statfs describe the file system of a name or a descriptor, plausibly and equally;
// pathconf and fpathconf return its limits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "../small.h"

int main(void) {
  struct statvfs v, u;
  struct statfs s;
  const int d = open("/tmp", O_RDONLY);
  CHECK_EQUAL(statvfs("/tmp", &v), 0);
  CHECK_EQUAL(fstatvfs(d, &u), 0);
  CHECK_EQUAL(v.f_bsize, u.f_bsize);
  CHECK_EQUAL(v.f_namemax, 255);
  CHECK_EQUAL(v.f_fsid, u.f_fsid);
  CHECK(v.f_frsize > 0 && v.f_blocks > 0 && v.f_bfree <= v.f_blocks && v.f_bavail <= v.f_bfree);
  CHECK(v.f_ffree <= v.f_files);
  CHECK_EQUAL(v.f_flag & ST_RDONLY, 0);
  CHECK_EQUAL(statfs("/tmp", &s), 0);
  CHECK_EQUAL(s.f_blocks, v.f_blocks);
  CHECK_EQUAL(s.f_namelen, 255);
  CHECK(statvfs("/not/there", &v) == -1 && errno == ENOENT);
  CHECK(fstatvfs(-1, &v) == -1 && errno == EBADF);
  CHECK_EQUAL(pathconf("/tmp", _PC_NAME_MAX), 255);
  CHECK_EQUAL(fpathconf(d, _PC_PATH_MAX), PATH_MAX);
  CHECK_EQUAL(fpathconf(d, _PC_PIPE_BUF), PIPE_BUF);
  CHECK_EQUAL(pathconf("/tmp", _PC_NO_TRUNC), 1);
  CHECK(pathconf("/tmp", _PC_LINK_MAX) > 8);
  CHECK(pathconf("/tmp", 12345) == -1 && errno == EINVAL);
  CHECK(pathconf("/not/there", _PC_LINK_MAX) == -1 && errno == ENOENT);
  return succeed();
}
