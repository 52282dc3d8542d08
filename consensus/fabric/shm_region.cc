// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/file_mapping.hpp>

namespace crane::consensus::shm {
namespace bip = boost::interprocess;

namespace {

constexpr std::size_t kPage = 4096;

// Reserves address space for a mapping of `bytes` at a multiple of `align`; null on failure.
std::byte* reserve(std::size_t bytes, std::size_t align) noexcept {
  void* const got = ::mmap(nullptr, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  auto* const base = static_cast<std::byte*>(got);
  const std::size_t before = (align - reinterpret_cast<std::uintptr_t>(got) % align) % align;
  if (before != 0) ::munmap(base, before);
  ::munmap(base + before + bytes, align - before);
  return base + before;
}

}  // namespace

Result<Region> Region::create(const std::string& path, std::size_t bytes, Fill fill,
                              std::size_t align) noexcept {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    if (errno == EEXIST) return Error{Code::kExists, EEXIST, "create shared segment"};
    return system_error("create shared segment");
  }
  const bool sized = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  const Error why = sized ? Error{} : system_error("size shared segment");
  ::close(fd);
  if (!sized) return why;
  auto made = open(path, Access::kReadWrite, bytes, align);
  if (made && fill == Fill::kWhole && !made.value().back(0, bytes)) {
    return Error{Code::kFull, ENOSPC, "allocate shared segment"};
  }
  return made;
}

Result<Region> Region::open(const std::string& path, Access access, std::size_t bytes_min,
                            std::size_t align) noexcept {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Error{Code::kNotFound, ENOENT, "open shared segment"};
    return system_error("open shared segment");
  }
  if (static_cast<std::size_t>(info.st_size) < bytes_min) {
    return Error{Code::kDamaged, 0, "shared segment is too short"};
  }
  const std::size_t bytes = (static_cast<std::size_t>(info.st_size) + kPage - 1) / kPage * kPage;
  std::byte* const place = align == 0 ? nullptr : reserve(bytes, align);
  if (align != 0 && place == nullptr) return system_error("map shared segment");
  try {
    const auto mode = access == Access::kRead ? bip::read_only : bip::read_write;
    const bip::file_mapping file(path.c_str(), mode);
    Region out;
    // Writable even for read access: before a process writes to a peer's file, it allocates the
    // pages that the owner will copy to (ROOM-1).
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
      const Error why = system_error("open shared segment");
      if (place != nullptr) ::munmap(place, bytes);
      return why;
    }
    out.file_ = SparseFile(fd, static_cast<std::size_t>(info.st_size));
    out.region_ = place == nullptr ? bip::mapped_region(file, mode)
                                   : bip::mapped_region(file, mode, 0, 0, place, MAP_FIXED);
    return out;
  } catch (const bip::interprocess_exception& e) {
    if (place != nullptr) ::munmap(place, bytes);
    return Error{Code::kSystem, static_cast<int>(e.get_native_error()), "map shared segment"};
  }
}

bool Region::read(std::size_t offset, std::span<std::byte> out) const noexcept {
  if (offset > size() || out.size() > size() - offset) return false;
  while (!out.empty()) {
    const ssize_t got = ::pread(file_.fd(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<std::size_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void Region::clear() noexcept {
  constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  file_.forget();
  if (::fallocate(file_.fd(), kHole, 0, static_cast<off_t>(size())) == 0) return;
  std::fill_n(data(), size(), std::byte{0});
}

void Region::populate(std::size_t offset, std::size_t bytes) const noexcept {
#ifdef MADV_POPULATE_WRITE
  const std::size_t from = offset / kPage * kPage;
  const std::size_t to = std::min(offset + bytes, size());
  if (from < to) ::madvise(data() + from, to - from, MADV_POPULATE_WRITE);
#else
  static_cast<void>(offset);
  static_cast<void>(bytes);
#endif
}

}  // namespace crane::consensus::shm
