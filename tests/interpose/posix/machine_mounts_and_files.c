// SPDX-License-Identifier: Apache-2.0
// native: no
// Mounts, programs and counters in the kernel, and files below /proc/sys and /sys belong to the
// machine: changes fail as for an unprivileged process, whether through libc, through syscall(2),
// by a relative name or by a symbolic link. Reading is permitted, and a process may change its own
// files in /proc. chroot affects only the caller.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../small.h"

int pivot_root(const char* to, const char* old);  // no header declares it

static int fails(int error, long result) { return result == -1 && errno == error; }
#define DENIED(call) CHECK(fails(EPERM, (call)))
#define CLOSED(call) CHECK(fails(EACCES, (call)))

// The arguments are invalid, so that a call that reaches the kernel changes nothing.
static void mounts(void) {
  DENIED(mount("none", "/crane-none", "tmpfs", 0, NULL));
  DENIED(umount("/crane-none"));
  DENIED(umount2("/crane-none", MNT_DETACH));
  DENIED(syscall(SYS_mount, "none", "/crane-none", "tmpfs", 0UL, NULL));
  DENIED(syscall(SYS_umount2, "/crane-none", 0));
  DENIED(pivot_root("/crane-none", "/crane-none"));
  DENIED(syscall(SYS_pivot_root, "/crane-none", "/crane-none"));
  DENIED(fsopen("crane-none", 0));
  DENIED(fsconfig(-1, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
  DENIED(fsmount(-1, 0, 0));
  DENIED(fspick(AT_FDCWD, "/crane-none", 0));
  DENIED(move_mount(-1, "", -1, "", 0));
  DENIED(open_tree(AT_FDCWD, "/crane-none", 0));
  struct mount_attr attributes = {0};
  DENIED(mount_setattr(AT_FDCWD, "/crane-none", 0, &attributes, sizeof attributes));
  DENIED(syscall(SYS_open_tree, AT_FDCWD, "/crane-none", 0));
  DENIED(setns(-1, 0));
  DENIED(unshare(CLONE_NEWNS));
  DENIED(unshare(0x80));  // CLONE_NEWTIME
}

static void kernel(void) {
  DENIED(syscall(SYS_bpf, 5, NULL, 0));  // no attributes
  CLOSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL));
  DENIED(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY));
  DENIED(open_by_handle_at(-1, NULL, O_RDONLY));
}

// Opens files for writing, but does not write to them.
static void files(void) {
  const char* const name = "/proc/sys/kernel/hostname";
  CLOSED(open(name, O_WRONLY));
  CLOSED(open(name, O_RDWR | O_CREAT, 0644));
  CLOSED(open("/proc/self/root/proc/sys/kernel/hostname", O_WRONLY));
  CLOSED(syscall(SYS_openat, AT_FDCWD, name, O_WRONLY, 0));
  struct open_how how = {O_WRONLY, 0, 0};
  CLOSED(syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof how));
  CHECK(fopen(name, "r+") == NULL && errno == EACCES);
  CLOSED(open("/proc/1/../sys/kernel/hostname", O_WRONLY));
  CLOSED(open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY));
  CLOSED(truncate("/sys/kernel/mm/transparent_hugepage/enabled", 0));
  DENIED(chmod("/sys/kernel/mm/transparent_hugepage/enabled", 0644));
  DENIED(chown("/sys/kernel/mm/transparent_hugepage/enabled", 0, 0));
  const int seen = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY);
  DENIED(fchmod(seen, 0644));
  DENIED(fchown(seen, 0, 0));
  CHECK_EQUAL(close(seen), 0);
  const int directory = open("/proc/sys/kernel", O_RDONLY | O_DIRECTORY);
  CLOSED(openat(directory, "hostname", O_WRONLY));
  CHECK_EQUAL(fchdir(directory), 0);
  CLOSED(open("hostname", O_WRONLY));
  CHECK_EQUAL(chdir("/"), 0);
  CHECK_EQUAL(close(directory), 0);
  char link[] = "/tmp/machineXXXXXX";
  CHECK(mkdtemp(link) != NULL);
  char in[64];
  snprintf(in, sizeof in, "%s/l", link);
  CHECK_EQUAL(symlink(name, in), 0);
  CLOSED(open(in, O_WRONLY));
  CHECK_EQUAL(unlink(in), 0);
  CHECK_EQUAL(rmdir(link), 0);
  CLOSED(mkdir("/sys/kernel/crane-none", 0755));
  CLOSED(rmdir("/sys/kernel/crane-none/"));
}

static void own(void) {
  char b[8];
  const int name = open("/proc/sys/kernel/ostype", O_RDONLY);
  CHECK(name >= 0 && read(name, b, 5) == 5 && memcmp(b, "Linux", 5) == 0);
  CHECK_EQUAL(close(name), 0);
  const int score = open("/proc/self/oom_score_adj", O_RDWR);
  CHECK(score >= 0 && read(score, b, sizeof b) > 0);
  CHECK_EQUAL(close(score), 0);
  int ends[2];
  CHECK_EQUAL(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char c;
    _exit(read(ends[0], &c, 1) == 1 ? 42 : 1);
  }
  snprintf(b, sizeof b, "x");
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)child);
  const int of_child = open(path, O_WRONLY);
  CHECK(of_child >= 0);
  CHECK_EQUAL(close(of_child), 0);
  CLOSED(open("/proc/self/net/dev", O_WRONLY));
  CHECK_EQUAL(write(ends[1], "x", 1), 1);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 42 << 8);
}

static void private_root(void) {
  const pid_t child = fork();
  if (child == 0) _exit(chroot("/proc") == 0 && chdir("/") == 0 && access("/self", F_OK) == 0);
  int status;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 1 << 8);
  CHECK_EQUAL(access("/proc/self", F_OK), 0);
}

int main(void) {
  mounts();
  kernel();
  own();
  if (geteuid() != 0) return succeed();  // other users are refused these anyway, with other errors
  files();
  private_root();
  return succeed();
}
