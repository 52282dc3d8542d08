// SPDX-License-Identifier: Apache-2.0
// Mappings of shared memory and named semaphores: records what is needed to give the
// synchronisation objects in them one name in all processes (runtime/preload/self/mapping.h).
// Private memory is not recorded: allocators map it at any time, without a turn.
#include <cstring>

#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/mapping.h"

namespace crane::wrap {
namespace {

constexpr std::size_t kPage = 4096;

bool is_shared(int flags) noexcept {
  const int type = flags & MAP_TYPE;
  return type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
}

// The table of mappings is full: fails as the kernel does at its own limit.
void* no_room(Turn& turn) noexcept {
  turn.result(ENOMEM);
  errno = ENOMEM;
  return MAP_FAILED;
}

}  // namespace

void* mmap(void* a, size_t n, int protection, int flags, int fd, off_t at) {
  if (!is_shared(flags)) {
    // The parts left on both sides may be one more mapping.
    const bool cuts = (flags & MAP_FIXED) != 0 && cuts_mapping(a, n);
    if (cuts && !has_room_for_mappings()) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
    void* made = real::mmap(a, n, protection, flags, fd, at);
    if ((flags & MAP_FIXED) != 0 && made != MAP_FAILED && touches_mapping(made, n)) {
      remove_mapping(made, n);
    }
    return made;
  }
  Turn turn(Op::mmap);
  if (!has_room_for_mappings()) return no_room(turn);
  void* made = real::mmap(a, n, protection, flags, fd, at);
  turn.result(made == MAP_FAILED ? errno : 0);
  if (made == MAP_FAILED) return made;
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  add_mapping(turn.w, made, n,
              anonymous ? dmt::new_object(turn.w, own_slot()) : identity_of_file(turn, fd),
              anonymous ? 0 : static_cast<std::uint64_t>(at));
  return made;
}

void* mmap64(void* a, size_t n, int protection, int flags, int fd, off64_t at) {
  return wrap::mmap(a, n, protection, flags, fd, at);
}

// Which pages are in memory depends on the machine, so all mapped pages are reported as present.
int mincore(void* a, size_t n, unsigned char* v) {
  const int result = real::mincore(a, n, v);
  if (result == 0) std::memset(v, 1, (n + kPage - 1) / kPage);
  return result;
}

int munmap(void* a, size_t n) {
  // Removed before the memory is unmapped, because another thread may get the addresses at once.
  if (touches_mapping(a, n)) {
    // The parts left on both sides may be one more mapping.
    if (cuts_mapping(a, n) && !has_room_for_mappings()) return fail(ENOMEM);
    remove_mapping(a, n);
  }
  return real::munmap(a, n);
}

void* mremap(void* a, size_t n, size_t wanted, int flags, void* to) {
  if (!touches_mapping(a, n)) return real::mremap(a, n, wanted, flags, to);
  Turn turn(Op::mremap);
  if (!has_room_for_mappings()) return no_room(turn);
  void* made = real::mremap(a, n, wanted, flags, to);
  turn.result(made == MAP_FAILED ? errno : 0);
  if (made != MAP_FAILED) move_mapping(turn.w, a, n, made, wanted);
  return made;
}

void* shmat(int id, const void* a, int flags) {
  Turn turn(Op::shmat);
  if (!has_room_for_mappings()) return no_room(turn);
  void* made = real::shmat(id, a, flags);
  const bool failed = made == MAP_FAILED;
  turn.result(failed ? errno : 0);
  if (failed) return made;
  struct shmid_ds status;
  const bool known = raw_syscall(SYS_shmctl, id, IPC_STAT, &status) == 0;
  const std::size_t size = known ? status.shm_segsz : kPage;
  add_mapping(turn.w, made, size, identity_of_segment(id), 0);
  return made;
}

// --- named semaphores  ---------------------------------------------------------------------------

namespace {

// libc maps a named semaphore itself: one page of a file.
void add_semaphore(Turn& turn, const char* name, const sem_t* s) noexcept {
  char path[300] = "/dev/shm/sem.";
  std::size_t n = 13;
  while (*name == '/') ++name;
  while (*name != '\0' && n + 1 < sizeof path) path[n++] = *name++;
  path[n] = '\0';
  const long fd = raw_syscall(SYS_open, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  add_mapping(turn.w, s, sizeof *s, identity_of_file(turn, static_cast<int>(fd)), 0);
  raw_syscall(SYS_close, fd);
}

}  // namespace

sem_t* sem_open(const char* p, int flags, mode_t m, unsigned v) {
  Turn turn(Op::sem_open);
  if (!has_room_for_mappings()) {
    no_room(turn);
    return SEM_FAILED;
  }
  sem_t* made;
  {
    const OutsideCrane outside;
    made = real::sem_open(p, flags, m, v);
  }
  regain(turn);
  turn.result(made == SEM_FAILED ? errno : 0);
  if (made != SEM_FAILED) add_semaphore(turn, p, made);
  return made;
}

int sem_close(sem_t* s) {
  Turn turn(Op::sem_close);
  int result;
  {
    const OutsideCrane outside;
    result = real::sem_close(s);
  }
  regain(turn);
  return finish_int(turn, result < 0 ? -errno : result);
}

int sem_unlink(const char* p) {
  return at_turn(Op::sem_unlink, [=] { return real::sem_unlink(p); });
}

}  // namespace crane::wrap
