// SPDX-License-Identifier: Apache-2.0
#pragma once
// The system headers that the rows of interposed.def need for their parameters.

#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <utime.h>
#include <utmp.h>

// From <resolv.h>, whose macros use names of ours.
struct __res_state;
// Handles and mounts, which are only passed on.
struct file_handle;
struct mount_attr;
// From liburing and libaio, which need not be installed.
struct io_context;
struct io_uring;
struct io_uring_params;

namespace crane {

// The types that mark an argument in a row of interposed.def as a descriptor: Descriptor, or
// Directory when the path after it may be relative to it (own_arguments.h).
using Descriptor = int;
using Directory = int;
using InitRoutine = void (*)();
using StartRoutine = void* (*)(void*);
using AtForkHandler = void (*)();
using SignalHandler = void (*)(int);
using DirectoryFilter = int (*)(const struct dirent*);
using DirectoryFilter64 = int (*)(const struct dirent64*);
using DirectoryOrder = int (*)(const struct dirent**, const struct dirent**);
using DirectoryOrder64 = int (*)(const struct dirent64**, const struct dirent64**);
}  // namespace crane
