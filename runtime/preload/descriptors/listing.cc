// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/descriptors/listing.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/own_descriptors.h"

namespace crane {
namespace {

constexpr std::size_t kPage = 4096, kListingBytes = 64 * 1024;

// Directories that getdents64 has begun to read.
Listing* begun[dmt::kFdsMax];
static_assert(sizeof(Listing) <= kPage);

struct dirent64* entry_at(const Listing& l, std::uint32_t offset) noexcept {
  return reinterpret_cast<struct dirent64*>(l.entries + offset);
}

// Doubles the room, or maps the first; 0 or a negative error number.
int grow(Listing& l) noexcept {
  const std::size_t bytes = l.entries == nullptr ? kListingBytes : 2 * l.capacity;
  const long at = l.entries == nullptr
                      ? reinterpret_cast<long>(map_pages(bytes))
                      : raw_syscall(SYS_mremap, l.entries, l.capacity, bytes, MREMAP_MAYMOVE);
  if (at <= 0) return -ENOMEM;
  l.entries = reinterpret_cast<std::byte*>(at);
  l.capacity = bytes;
  return 0;
}

unsigned char type_of(mode_t mode) noexcept { return static_cast<unsigned char>(IFTODT(mode)); }

// Fills in the number and type of the file if it still exists.
void describe(dmt::Layout& w, int fd, struct dirent64& e) noexcept {
  constexpr ino64_t kGone = 1;
  struct stat s {};
  const long error =
      raw_syscall(SYS_newfstatat, fd, static_cast<char*>(e.d_name), &s, AT_SYMLINK_NOFOLLOW);
  if (error < 0) {
    e.d_ino = kGone;
    return;
  }
  e.d_type = type_of(s.st_mode);
  e.d_ino = inode_number(w, {fd, e.d_name, AT_SYMLINK_NOFOLLOW}, s);
}

void forget(int fd) noexcept {
  drop_listing(*begun[fd]);
  raw_syscall(SYS_munmap, begun[fd], kPage);
  begun[fd] = nullptr;
}

// Returns the rest of the directory. Null: an error is in `error`, or nothing is left.
Listing* begun_at(int fd, int& error) noexcept {
  const long position = raw_syscall(SYS_lseek, fd, 0, SEEK_CUR);
  if (begun[fd] != nullptr && position != 0) return begun[fd];
  if (begun[fd] != nullptr) forget(fd);
  auto* const l = static_cast<Listing*>(map_pages(kPage));
  if (l == nullptr) {
    error = -ENOMEM;
    return nullptr;
  }
  begun[fd] = l;
  error = read_listing(*l, fd);
  if (error == 0) return l;
  forget(fd);
  return nullptr;
}

}  // namespace

namespace {

// Whether `fd` is /proc/self/fd or /proc/self/fdinfo, under any name.
bool is_descriptor_directory(int fd) noexcept {
  char path[64];
  const long n = read_link_of(static_cast<unsigned>(fd), path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  constexpr char kProc[] = "/proc/";
  if (std::strncmp(path, kProc, sizeof kProc - 1) != 0) return false;
  const char* last = std::strrchr(path, '/');
  return std::strcmp(last, "/fd") == 0 || std::strcmp(last, "/fdinfo") == 0;
}

bool is_own_name(const char* name) noexcept {
  std::uint32_t fd;
  return *parse_number(name, fd) == '\0' && is_own_descriptor(static_cast<int>(fd));
}

}  // namespace

int read_listing(Listing& l, int fd) noexcept {
  for (;;) {
    // Half of the room is kept for the order: an entry has at least 24 bytes.
    if (l.used + kPage > l.capacity / 2) {
      if (const int error = grow(l); error < 0) return error;
    }
    const long got = raw_syscall(SYS_getdents64, fd, l.entries + l.used, l.capacity / 2 - l.used);
    if (got < 0) return static_cast<int>(got);
    if (got == 0) break;
    l.used += static_cast<std::size_t>(got);
  }
  l.order = reinterpret_cast<std::uint32_t*>(l.entries + l.capacity / 2);
  const bool lists_descriptors = is_descriptor_directory(fd);
  for (std::size_t at = 0; at < l.used;
       at += entry_at(l, static_cast<std::uint32_t>(at))->d_reclen) {
    const char* name = entry_at(l, static_cast<std::uint32_t>(at))->d_name;
    if (lists_descriptors && is_own_name(name)) continue;  // hides our own descriptors (rule 16)
    l.order[l.count++] = static_cast<std::uint32_t>(at);
  }
  std::sort(l.order, l.order + l.count, [&](std::uint32_t a, std::uint32_t b) {
    return std::strcmp(entry_at(l, a)->d_name, entry_at(l, b)->d_name) < 0;
  });
  l.complete = true;
  return 0;
}

void drop_listing(Listing& l) noexcept {
  if (l.entries != nullptr) raw_syscall(SYS_munmap, l.entries, l.capacity);
  l = {};
}

struct dirent64* next_of(Listing& l, int fd, dmt::Layout* w) noexcept {
  if (l.next >= l.count) return nullptr;
  struct dirent64* const e = entry_at(l, l.order[l.next++]);
  e->d_off = static_cast<off64_t>(l.next);
  if (w != nullptr) describe(*w, fd, *e);
  return e;
}

ssize_t read_directory(int fd, void* out, std::size_t size, dmt::Layout* w) noexcept {
  if (fd < 0 || fd >= static_cast<int>(dmt::kFdsMax)) {
    return raw_syscall(SYS_getdents64, fd, out, size);
  }
  int error = 0;
  Listing* const l = begun_at(fd, error);
  if (l == nullptr) return error;
  auto* to = static_cast<std::byte*>(out);
  std::size_t used = 0;
  while (l->next < l->count) {
    const std::size_t bytes = entry_at(*l, l->order[l->next])->d_reclen;
    if (used + bytes > size) return used == 0 ? -EINVAL : static_cast<ssize_t>(used);
    std::memcpy(to + used, next_of(*l, fd, w), bytes);
    used += bytes;
  }
  if (used == 0) forget(fd);
  return static_cast<ssize_t>(used);
}

}  // namespace crane
