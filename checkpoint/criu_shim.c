// SPDX-License-Identifier: Apache-2.0
// Loaded into CRIU (get_criu.sh). It answers two questions that some machines refuse to CRIU
// although the dumped processes are fine (elsewhere the answers do not change), saves CRIU two slow
// steps while a server is paused, and lets other processes clean up after CRIU.
//
// 1. prlimit(2) on a process of another user needs CAP_SYS_RESOURCE, which containers and virtual
//    machines may withhold from root. /proc/PID/limits contains the same numbers.
// 2. Since Linux 6.16 SO_PASSCRED and SO_PASSSEC exist only for unix sockets; CRIU before 4.2
//    queries them on all sockets and gives up. On other sockets they never had an effect, so the
//    answer "off" is correct.
//
// 3. CRIU reads the kernel's connection tracking for a server's network even if that is external,
//    as Crane's always is. The kernel walks the table of the whole machine for it, twice: 20 ms.
//    The shim requests the list of dying connections instead, which is also empty, but at once.
// 4. CRIU passes the content of a container's tmpfs through tar, gzip and the shell between them.
//    Without gzip it is one program instead of three; checkpoints are packed anyway.
//
// 5. The names of directories that CRIU makes in /tmp, and leaves there when it is killed, contain
//    its process id instead of a random number (orphans.cc reads it).
// 6. CRIU tests the kernel with child processes that sleep until CRIU kills them. If CRIU is killed
//    first (with its supervisor, say) they end without it.
//
// CRIU makes all these calls through libc, prlimit also through libc's syscall(). The shim links no
// library, because it must work with every C library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

static long kernel(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static long as_libc(long result) {
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

// --- /proc/PID/limits: "Max open files            1024                 1048576              files"

enum { kNameWidth = 26, kBufferBytes = 4096 };

static const char* const kNames[] = {
    [RLIMIT_CPU] = "Max cpu time",
    [RLIMIT_FSIZE] = "Max file size",
    [RLIMIT_DATA] = "Max data size",
    [RLIMIT_STACK] = "Max stack size",
    [RLIMIT_CORE] = "Max core file size",
    [RLIMIT_RSS] = "Max resident set",
    [RLIMIT_NPROC] = "Max processes",
    [RLIMIT_NOFILE] = "Max open files",
    [RLIMIT_MEMLOCK] = "Max locked memory",
    [RLIMIT_AS] = "Max address space",
    [RLIMIT_LOCKS] = "Max file locks",
    [RLIMIT_SIGPENDING] = "Max pending signals",
    [RLIMIT_MSGQUEUE] = "Max msgqueue size",
    [RLIMIT_NICE] = "Max nice priority",
    [RLIMIT_RTPRIO] = "Max realtime priority",
    [RLIMIT_RTTIME] = "Max realtime timeout",
};

static const char* number(const char* text, rlim64_t* value) {
  while (*text == ' ') ++text;
  if (*text == 'u') {
    *value = RLIM64_INFINITY;
    while (*text >= 'a' && *text <= 'z') ++text;
    return text;
  }
  for (*value = 0; *text >= '0' && *text <= '9'; ++text) {
    *value = *value * 10 + (rlim64_t)(*text - '0');
  }
  return text;
}

static int starts_with(const char* line, const char* name) {
  while (*name != '\0' && *line == *name) ++line, ++name;
  return *name == '\0' && *line == ' ';
}

static void append(char** end, const char* text) {
  while (*text != '\0') *(*end)++ = *text++;
}

static long read_limits(pid_t pid, char* buffer) {
  char path[64], digits[16];
  char* end = path;
  int i = (int)sizeof digits - 1;
  digits[i] = '\0';
  for (unsigned left = (unsigned)pid; left != 0; left /= 10) digits[--i] = (char)('0' + left % 10);
  append(&end, "/proc/");
  append(&end, digits + i);
  append(&end, "/limits");
  *end = '\0';
  const long fd = kernel(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
  if (fd < 0) return fd;
  long size = 0;
  for (long got = 1; got > 0 && size<kBufferBytes - 1; size += got> 0 ? got : 0) {
    got = kernel(SYS_read, fd, (long)(buffer + size), kBufferBytes - 1 - size, 0, 0, 0);
  }
  kernel(SYS_close, fd, 0, 0, 0, 0, 0);
  buffer[size] = '\0';
  return size;
}

static int limits_from_proc(pid_t pid, unsigned resource, struct rlimit64* out) {
  char buffer[kBufferBytes];
  if (read_limits(pid, buffer) <= 0) return -1;
  for (const char* line = buffer; *line != '\0';) {
    if (starts_with(line, kNames[resource])) {
      number(number(line + kNameWidth, &out->rlim_cur), &out->rlim_max);
      return 0;
    }
    while (*line != '\0' && *line++ != '\n') {
    }
  }
  return -1;
}

static long ask_limits(pid_t pid, unsigned resource, const struct rlimit64* set,
                       struct rlimit64* get) {
  const long result = kernel(SYS_prlimit64, pid, resource, (long)set, (long)get, 0, 0);
  const int known = resource < sizeof kNames / sizeof kNames[0];
  if (result == -EPERM && pid > 0 && set == 0 && get != 0 && known &&
      limits_from_proc(pid, resource, get) == 0) {
    return 0;
  }
  return as_libc(result);
}

// --- functions that CRIU calls
// ----------------------------------------------------------------------------

int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64* set,
              struct rlimit64* get) {
  return (int)ask_limits(pid, (unsigned)resource, set, get);
}

int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit* set, struct rlimit* get) {
  _Static_assert(sizeof(struct rlimit) == sizeof(struct rlimit64), "the same on 64 bits");
  return (int)ask_limits(pid, (unsigned)resource, (const struct rlimit64*)set,
                         (struct rlimit64*)get);
}

long syscall(long call, ...) {
  long argument[6];
  va_list list;
  va_start(list, call);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(list, long);
  va_end(list);
  if (call == SYS_prlimit64) {
    return ask_limits((pid_t)argument[0], (unsigned)argument[1],
                      (const struct rlimit64*)argument[2], (struct rlimit64*)argument[3]);
  }
  return as_libc(
      kernel(call, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]));
}

int getsockopt(int fd, int level, int option, void* value, socklen_t* length) {
  const long result = kernel(SYS_getsockopt, fd, level, option, (long)value, (long)length, 0);
  if (result == -EOPNOTSUPP && level == SOL_SOCKET &&
      (option == SO_PASSCRED || option == SO_PASSSEC) && *length == sizeof(int)) {
    *(int*)value = 0;
    return 0;
  }
  return (int)as_libc(result);
}

// --- connection tracking ------------------------------------------------------------------------

enum {
  kGetAll = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET,
  kGetDying = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_DYING
};

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  struct {
    struct nlmsghdr head;
    struct nfgenmsg more;
  } asked;
  const struct iovec* part = message->msg_iov;
  if (message->msg_iovlen != 1 || part->iov_len != sizeof asked) goto unchanged;
  __builtin_memcpy(&asked, part->iov_base, sizeof asked);
  if (asked.head.nlmsg_len != sizeof asked || asked.head.nlmsg_type != kGetAll ||
      (asked.head.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) {
    goto unchanged;
  }
  asked.head.nlmsg_type = kGetDying;
  struct iovec other = {&asked, sizeof asked};
  struct msghdr instead = *message;
  instead.msg_iov = &other;
  return as_libc(kernel(SYS_sendmsg, fd, (long)&instead, flags, 0, 0, 0));
unchanged:
  return as_libc(kernel(SYS_sendmsg, fd, (long)message, flags, 0, 0, 0));
}

// --- directories in /tmp ------------------------------------------------------------------------

// "/tmp/.criu.mntns.XXXXXX" -> "/tmp/.criu.mntns.cr" and four digits to the base of 62; "cs" and so
// on if that exists.
char* mkdtemp(char* path) {
  static const char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  enum { kBase = 62, kVaried = 6, kMode = 0700 };
  char* end = path;
  while (*end != '\0') ++end;
  if (end - path < kVaried) {
    errno = EINVAL;
    return 0;
  }
  long left = kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
  for (int i = 1; i <= 4; ++i, left /= kBase) end[-i] = kDigits[left % kBase];
  end[-6] = 'c';
  long result = -EEXIST;
  for (char c = 'r'; c <= 'z' && result == -EEXIST; ++c) {
    end[-5] = c;
    result = kernel(SYS_mkdir, (long)path, kMode, 0, 0, 0, 0);
  }
  return as_libc(result) == 0 ? path : 0;
}

// --- programs that CRIU runs --------------------------------------------------------------------

enum { kArgumentsMax = 64, kPathMax = 4096 };

static int equal(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

// The archive was packed by a CRIU without this shim.
static int is_gzip(int fd) {
  unsigned char magic[2];
  return kernel(SYS_pread64, fd, (long)magic, sizeof magic, 0, 0, 0) == sizeof magic &&
         magic[0] == 0x1f && magic[1] == 0x8b;
}

int execvp(const char* file, char* const argv[]) {
  extern char** environ;
  const char* fewer[kArgumentsMax];
  int count = 0;
  const int plain = equal(file, "tar") && !is_gzip(0);
  for (char* const* word = argv; *word != 0; ++word) {
    if (plain && equal(*word, "--gzip")) continue;
    if (count == kArgumentsMax - 1) {
      errno = E2BIG;
      return -1;
    }
    fewer[count++] = *word;
  }
  fewer[count] = 0;
  const char* folders = "";
  for (char** variable = environ; *variable != 0; ++variable) {
    const char* text = *variable;
    if (text[0] == 'P' && text[1] == 'A' && text[2] == 'T' && text[3] == 'H' && text[4] == '=') {
      folders = text + 5;
    }
  }
  long result = -ENOENT;
  for (const char* name = file; *name != '\0'; ++name) {
    if (*name == '/') folders = "";  // a path: no search
  }
  do {
    char path[kPathMax];
    char* end = path;
    while (*folders != '\0' && *folders != ':' && end < path + kPathMax / 2) *end++ = *folders++;
    if (*folders == ':') ++folders;
    if (end != path) *end++ = '/';
    for (const char* name = file; *name != '\0' && end < path + kPathMax - 1;) *end++ = *name++;
    *end = '\0';
    const long failed = kernel(SYS_execve, (long)path, (long)fewer, (long)environ, 0, 0, 0);
    if (failed != -ENOENT && failed != -ENOTDIR) result = failed;
  } while (*folders != '\0');
  return (int)as_libc(result);
}

// --- children with which CRIU tests the kernel --------------------------------------------------

// Only these children of CRIU sleep. A child that lost its parent before it could request the
// signal has a parent of another process group.
unsigned sleep(unsigned seconds) {
  kernel(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
  const long parent = kernel(SYS_getppid, 0, 0, 0, 0, 0, 0);
  if (kernel(SYS_getpgid, parent, 0, 0, 0, 0, 0) != kernel(SYS_getpgid, 0, 0, 0, 0, 0, 0)) {
    kernel(SYS_exit_group, 1, 0, 0, 0, 0, 0);
  }
  struct timespec time = {seconds, 0};
  if (kernel(SYS_nanosleep, (long)&time, (long)&time, 0, 0, 0, 0) == 0) return 0;
  return (unsigned)time.tv_sec;
}
