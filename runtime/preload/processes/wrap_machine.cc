// SPDX-License-Identifier: Apache-2.0
// Calls that affect the machine: the server gets the result of a process without the privilege
// (MACHINE-1), which is equal on all replicas.
#include <cerrno>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/turn/turn.h"

namespace crane::wrap {

int sethostname(const char*, size_t) { return fail(EPERM); }
int setdomainname(const char*, size_t) { return fail(EPERM); }
int reboot(int) { return fail(EPERM); }
int swapon(const char*, int) { return fail(EPERM); }
int swapoff(const char*) { return fail(EPERM); }
int acct(const char*) { return fail(EPERM); }
int init_module(void*, unsigned long, const char*) { return fail(EPERM); }
int delete_module(const char*, unsigned) { return fail(EPERM); }
int quotactl(int, const char*, int, caddr_t) { return fail(EPERM); }
int iopl(int) { return fail(EPERM); }
int ioperm(unsigned long, unsigned long, int) { return fail(EPERM); }
int vhangup() { return fail(EPERM); }

// Mounts: a mount by one replica's server would change the machine, or make its replica differ from
// the others.
int mount(const char*, const char*, const char*, unsigned long, const void*) { return fail(EPERM); }
int umount(const char*) { return fail(EPERM); }
int umount2(const char*, int) { return fail(EPERM); }
int pivot_root(const char*, const char*) { return fail(EPERM); }
int fsopen(const char*, unsigned) { return fail(EPERM); }
int fsconfig(int, unsigned, const char*, const void*, int) { return fail(EPERM); }
int fsmount(int, unsigned, unsigned) { return fail(EPERM); }
int fspick(int, const char*, unsigned) { return fail(EPERM); }
int move_mount(int, const char*, int, const char*, unsigned) { return fail(EPERM); }
int open_tree(int, const char*, unsigned) { return fail(EPERM); }
int mount_setattr(int, const char*, unsigned, struct mount_attr*, size_t) { return fail(EPERM); }

// fanotify reports, and may block, file operations of all processes; handles open files without
// their names, also outside a container.
int fanotify_init(unsigned, unsigned) { return fail(EPERM); }
int fanotify_mark(int, unsigned, uint64_t, int, const char*) { return fail(EPERM); }
int open_by_handle_at(int, struct file_handle*, int) { return fail(EPERM); }

// Allows reads and sizes; refuses to clear the buffer or change the console.
int klogctl(int what, char* b, int n) {
  constexpr int kClose = 0, kOpen = 1, kReadAll = 3, kSizeUnread = 9, kSizeBuffer = 10;
  for (const int harmless : {kClose, kOpen, kReadAll, kSizeUnread, kSizeBuffer}) {
    if (what == harmless) return real::klogctl(what, b, n);
  }
  return fail(EPERM);
}

int adjtimex(struct timex* t) {
  const bool changes = is_readable(t, sizeof *t) && t->modes != 0;
  return changes ? fail(EPERM) : real::adjtimex(t);
}
int clock_adjtime(clockid_t c, struct timex* t) {
  const bool changes = is_readable(t, sizeof *t) && t->modes != 0;
  return changes ? fail(EPERM) : real::clock_adjtime(c, t);
}

}  // namespace crane::wrap
