// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/notify.h"

#include <linux/kcmp.h>

#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/own_descriptors.h"
#include "runtime/preload/self/scratch.h"

namespace crane::notify {
namespace {

using dmt::FileEvent;

constexpr char kDeleted[] = " (deleted)";
constexpr std::size_t kDeletedSize = sizeof kDeleted - 1;
constexpr char kMemory[] = "/memfd:";

std::uint32_t kind_of(const struct stat& s) noexcept { return S_ISDIR(s.st_mode) ? IN_ISDIR : 0; }

// The number of an existing directory.
std::uint64_t number_at(dmt::Layout& w, int directory, const char* path) noexcept {
  struct stat s {};
  return look(directory, path, 0, s) ? known_inode_number(w, s) : 0;
}

// The kernel uses its inode number as the name of a file that was opened without a name.
bool is_nameless(const char* name, const struct stat& s) noexcept {
  if (*name != '#') return false;
  std::uint64_t number = 0;
  for (++name; *name >= '0' && *name <= '9'; ++name) {
    number = number * 10 + static_cast<std::uint64_t>(*name - '0');
  }
  return *name == '\0' && number == s.st_ino;
}

// Finds the directory and name of an open file from its current link, if it has one. The name is
// stored in `path`.
void find_name(dmt::Layout& w, int fd, const struct stat& s, const Scratch<char>& path,
               FileEvent& e) noexcept {
  const long got = read_link_of(static_cast<unsigned>(fd), path.data(), path.size() - 1);
  if (got <= 1 || got == static_cast<long>(path.size()) - 1 || path[0] != '/') return;
  auto size = static_cast<std::size_t>(got);
  path[size] = '\0';
  struct stat there {};
  const bool ends_so = size > kDeletedSize &&
                       std::memcmp(path.data() + size - kDeletedSize, kDeleted, kDeletedSize) == 0;
  if (ends_so && !look(AT_FDCWD, path.data(), AT_SYMLINK_NOFOLLOW, there)) {
    size -= kDeletedSize;
    path[size] = '\0';
    e.is_unlinked = true;
    if (std::strncmp(path.data(), kMemory, sizeof kMemory - 1) == 0) return;
  }
  char* const slash = std::strrchr(path.data(), '/');
  const char* const name = slash + 1;
  if (e.is_unlinked && is_nameless(name, s)) return;
  *slash = '\0';
  e.directory = number_at(w, AT_FDCWD, slash == path.data() ? "/" : path.data());
  e.name = {name, static_cast<std::size_t>(path.data() + size - name)};
}

// Fills `e` with the file, directory and name of a descriptor. False: it is not open, or a filter
// of the process may forbid the calls.
bool describe(dmt::Layout& w, int fd, struct stat& s, const Scratch<char>& path,
              FileEvent& e) noexcept {
  if (self.filters != nullptr || !look(fd, "", AT_EMPTY_PATH, s)) return false;
  e.file = known_inode_number(w, s);
  find_name(w, fd, s, path, e);
  return true;
}

void report_event(dmt::Layout& w, FileEvent e, std::uint32_t mask) noexcept {
  e.mask = mask;
  dmt::report_file_event(w, e);
}

// --- other descriptors of the file -------------------------------------------------------------

struct entry64 {
  std::uint64_t inode, offset;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];
};

bool leaves(const ClosedRange& closing_range, int fd) noexcept {
  if (fd < closing_range.first || fd > closing_range.last) return false;
  return !closing_range.on_exec || (raw_syscall(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC) != 0;
}

// Calls `visit(directory, name, fd)` for the descriptors of a process until it returns true.
template <typename Visit>
bool any_of_process(long pid, Visit visit) noexcept {
  constexpr std::size_t kRoom = 4096;
  const ProcessFile list(static_cast<std::uint32_t>(pid), "/fd");
  const long directory =
      raw_syscall(SYS_openat, AT_FDCWD, list.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (directory < 0) return false;
  const Scratch<char> room(kRoom);
  bool found = false;
  long got;
  while (!found && (got = raw_syscall(SYS_getdents64, directory, room.data(), kRoom)) > 0) {
    for (long at = 0; !found && at < got;) {
      const char* const entry = room.data() + at;
      std::uint16_t bytes;
      std::memcpy(&bytes, entry + offsetof(entry64, bytes), sizeof bytes);
      const char* const name = entry + offsetof(entry64, name);
      std::uint32_t fd;
      const char* const end = parse_number(name, fd);
      at += bytes;
      if (end == name || *end != '\0' || static_cast<long>(fd) == directory) continue;
      found = visit(static_cast<int>(directory), name, static_cast<int>(fd));
    }
  }
  raw_syscall(SYS_close, directory);
  return found;
}

// Whether any descriptor of the server that stays open satisfies `is_it(pid, directory, name, fd)`.
template <typename Condition>
bool any_open_elsewhere(const dmt::Layout& w, const ClosedRange& closing_range, int leaver,
                        Condition is_it) noexcept {
  const long own = raw_syscall(SYS_getpid);
  const bool here = any_of_process(own, [&](int directory, const char* name, int fd) {
    if (fd == leaver || is_own_descriptor(fd) || (fd < leaver && leaves(closing_range, fd)))
      return false;
    return is_it(own, directory, name, fd);
  });
  if (here) return true;
  for (std::uint16_t i = 1; i < dmt::kProcessesMax; ++i) {
    const dmt::ProcessRecord& p = w.processes[i];
    if (i == self.process || p.state != dmt::ProcessState::kAlive || p.pid == 0) continue;
    const bool there = any_of_process(p.pid, [&](int directory, const char* name, int fd) {
      return is_it(static_cast<long>(p.pid), directory, name, fd);
    });
    if (there) return true;
  }
  return false;
}

// Whether another descriptor has the same open file.
bool is_shared(const dmt::Layout& w, const ClosedRange& closing_range, int fd) noexcept {
  const long own = raw_syscall(SYS_getpid);
  return any_open_elsewhere(w, closing_range, fd, [&](long pid, int, const char*, int other) {
    return raw_syscall(SYS_kcmp, own, pid, KCMP_FILE, fd, other) == 0;
  });
}

// Whether any descriptor has the file open.
bool is_file_open(const dmt::Layout& w, const ClosedRange& closing_range, int fd,
                  const struct stat& s) noexcept {
  return any_open_elsewhere(w, closing_range, fd, [&](long, int directory, const char* name, int) {
    struct stat other {};
    return look(directory, name, 0, other) && other.st_dev == s.st_dev && other.st_ino == s.st_ino;
  });
}

constexpr ClosedRange kNone = {0, -1};

// Ends the watches of a file that has no name any more, unless it is open.
void end_watches_if_closed(dmt::Layout& w, std::uint64_t number, const ClosedRange& closing_range,
                           int fd, const struct stat& s) noexcept {
  if (number == 0 || !dmt::is_file_watched(w, number)) return;
  if (self.filters == nullptr && is_file_open(w, closing_range, fd, s)) return;
  dmt::report_file_end(w, number);
}

void report_closed(dmt::Layout& w, const ClosedRange& closing_range, int fd) noexcept {
  const long flags = raw_syscall(SYS_fcntl, fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || !is_plain(fd)) return;
  const Scratch<char> path(PATH_MAX);
  struct stat s {};
  FileEvent e;
  if (!describe(w, fd, s, path, e)) return;
  if (!dmt::is_file_watched(w, e.file) && !dmt::is_file_watched(w, e.directory)) return;
  if (is_shared(w, closing_range, fd)) return;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  report_event(w, e, (writes ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE) | kind_of(s));
  if (s.st_nlink == 0 || (S_ISDIR(s.st_mode) && e.is_unlinked)) {
    end_watches_if_closed(w, e.file, closing_range, fd, s);
  }
}

// Finds the name and directory of `path`, which is not an open file.
void find_name(dmt::Layout& w, const Name& name, FileEvent& e) noexcept {
  const Scratch<char> memory(PATH_MAX);
  if (name.path == nullptr || !parent_of(name.path, memory)) return;
  e.directory = number_at(w, name.directory, memory.data());
  std::size_t size = std::strlen(name.path);
  while (size > 1 && name.path[size - 1] == '/') --size;
  std::size_t begin = size;
  while (begin > 0 && name.path[begin - 1] != '/') --begin;
  e.name = {name.path + begin, size - begin};
}

// Reports that the link count of a file has changed.
void report_link_count(dmt::Layout& w, const Before& b) noexcept {
  if (b.is_known && !S_ISDIR(b.status.st_mode)) {
    report_event(w, {.file = known_inode_number(w, b.status)}, IN_ATTRIB);
  }
}

// Ends the watches of the file if that was its last name.
void end_watches_if_last_name(dmt::Layout& w, const Before& b) noexcept {
  if (!b.is_known || (!S_ISDIR(b.status.st_mode) && b.status.st_nlink > 1)) return;
  end_watches_if_closed(w, known_inode_number(w, b.status), kNone, -1, b.status);
}

void report_move(dmt::Layout& w, const Name& from, const Name& to, const Before& file,
                 const Before* replaced) noexcept {
  const std::uint32_t kind = kind_of(file.status);
  FileEvent e{.cookie = dmt::new_move_cookie(w)};
  find_name(w, from, e);
  report_event(w, e, IN_MOVED_FROM | kind);
  find_name(w, to, e);
  report_event(w, e, IN_MOVED_TO | kind);
  if (replaced != nullptr) report_link_count(w, *replaced);
  report_event(w, {.file = known_inode_number(w, file.status)}, IN_MOVE_SELF);
}

}  // namespace

void report_descriptor_event(dmt::Layout& w, int fd, std::uint32_t events) noexcept {
  if (!is_plain(fd) || is_own_descriptor(fd)) return;
  const Scratch<char> path(PATH_MAX);
  struct stat s {};
  FileEvent e;
  if (describe(w, fd, s, path, e)) report_event(w, e, events | kind_of(s));
}

void report_opening(dmt::Layout& w, int fd, int flags, bool is_new) noexcept {
  if ((flags & O_PATH) != 0) return;
  const Scratch<char> path(PATH_MAX);
  struct stat s {};
  FileEvent e;
  if (!describe(w, fd, s, path, e)) return;
  if (is_new && !e.is_unlinked) report_event(w, e, IN_CREATE);
  report_event(w, e, IN_OPEN | kind_of(s));
  if ((flags & O_TRUNC) != 0 && !is_new) report_event(w, e, IN_MODIFY);
}

void report_closing(dmt::Layout& w, const ClosedRange& closing_range) noexcept {
  if (closing_range.first == closing_range.last) {
    if (!is_own_descriptor(closing_range.first))
      report_closed(w, closing_range, closing_range.first);
    return;
  }
  // The kernel lists the lowest descriptor first.
  any_of_process(raw_syscall(SYS_getpid), [&](int, const char*, int fd) {
    if (!is_own_descriptor(fd) && leaves(closing_range, fd)) report_closed(w, closing_range, fd);
    return false;
  });
}

void report_name(dmt::Layout& w, int directory, const char* path, std::uint32_t event) noexcept {
  FileEvent e;
  find_name(w, {directory, path}, e);
  report_event(w, e, event);
}

void report_path(dmt::Layout& w, int directory, const char* path, int flags,
                 std::uint32_t events) noexcept {
  if (path == nullptr) return report_descriptor_event(w, directory, events);
  if (self.filters != nullptr) return;
  const int follow = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
  const long fd = raw_syscall(SYS_openat, directory, path, O_PATH | O_CLOEXEC | follow, 0);
  if (fd < 0) return;
  report_descriptor_event(w, static_cast<int>(fd), events);
  raw_syscall(SYS_close, fd);
}

void look_before(const dmt::Layout& w, int directory, const char* path, Before& out) noexcept {
  if (!is_watched(w, IN_ALL_EVENTS)) return;
  out.is_known = look(directory, path, AT_SYMLINK_NOFOLLOW, out.status);
}

void removed(dmt::Layout& w, int directory, const char* path, const Before& file) noexcept {
  if (!file.is_known) return;
  report_link_count(w, file);
  end_watches_if_last_name(w, file);  // as Linux: before the event of the directory
  report_name(w, directory, path, IN_DELETE | kind_of(file.status));
}

void moved(dmt::Layout& w, const Name& from, const Name& to, const Before& file,
           const Before& target, bool exchanged) noexcept {
  if (!file.is_known) return;
  const bool replaces = target.is_known && !exchanged;
  const bool is_same = target.is_known && target.status.st_dev == file.status.st_dev &&
                       target.status.st_ino == file.status.st_ino;
  if (is_same) return;  // two names of one file: the call changed nothing
  report_move(w, from, to, file, replaces ? &target : nullptr);
  if (exchanged && target.is_known) report_move(w, to, from, target, nullptr);
  if (replaces) end_watches_if_last_name(w, target);
}

void linked(dmt::Layout& w, const Name& from, int flags, const Name& to) noexcept {
  if (!is_watched(w, IN_CREATE | IN_ATTRIB)) return;
  struct stat s {};
  const int follow = (flags & AT_SYMLINK_FOLLOW) != 0 ? 0 : AT_SYMLINK_NOFOLLOW;
  if (look(from.directory, from.path, follow | (flags & AT_EMPTY_PATH), s)) {
    report_event(w, {.file = known_inode_number(w, s)}, IN_ATTRIB);
  }
  report_name(w, to.directory, to.path, IN_CREATE);
}

void report_later(Op op, int fd, std::uint32_t events) noexcept {
  Turn turn(op);
  by_descriptor(turn.w, fd, events);
}

void report_place_later(Op op, int directory, const char* path, int flags,
                        std::uint32_t events) noexcept {
  Turn turn(op);
  by_place(turn.w, directory, path, flags, events);
}

}  // namespace crane::notify
