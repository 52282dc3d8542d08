// SPDX-License-Identifier: Apache-2.0
#include "dmt/inodes.h"

#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/restart.h"

namespace crane::dmt {
namespace {

constinit Bound numbers_bound{kInodesMax, "files whose number is remembered",
                              "the oldest are forgotten: stat gives them new numbers"};
constinit Bound held_bound{kInodesHeldMax, "files whose number is never forgotten",
                           "later shared mappings and pipes may lose their numbers"};
constinit Bound paths_bound{kPathsBytes, "bytes of the paths of files",
                            "the oldest are forgotten: a restore may not find these files"};

// Numbers are consecutive: the record of number n is n modulo kInodesMax (DMT-N1).
InodeRecord& record_of(Layout& w, std::uint64_t number) noexcept {
  return w.inodes.records[number % kInodesMax];
}

std::uint32_t& bucket_of(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  const std::uint64_t mixed = (inode ^ (device << 32)) * 0x9e3779b97f4a7c15ull;
  return w.inodes.buckets[(mixed >> 40) % kInodeBuckets];
}

void leave_bucket(Layout& w, const InodeRecord& r) noexcept {
  std::uint32_t* link = &bucket_of(w, r.device, r.inode);
  while (*link != index_of(w, r) + 1) {
    CRANE_ASSERT(*link != 0);  // DMT-N2
    link = &w.inodes.records[*link - 1].next;
  }
  *link = r.next;
}

InodeRecord* known_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  std::uint32_t i = bucket_of(w, device, inode);
  while (i != 0) {
    InodeRecord& r = w.inodes.records[i - 1];
    if (r.inode == inode && r.device == device) return &r;
    i = r.next;
  }
  return nullptr;
}

InodeRecord& assign_number(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  if (w.inodes.last_number == 0) {
    w.inodes.last_number = 1;  // 0 and 1 are no inodes
    w.inodes.began_ns = w.scheduler.now_ns + w.scheduler.wall_offset_ns;
  }
  // At most kInodesHeldMax of the places are held.
  while (record_of(w, ++w.inodes.last_number).held) {
  }
  const std::uint64_t number = w.inodes.last_number;
  InodeRecord& r = record_of(w, number);
  if (r.number != 0) {
    numbers_bound.count_refusal();
    leave_bucket(w, r);
  }
  std::uint32_t& bucket = bucket_of(w, device, inode);
  r = {.inode = inode,
       .device = device,
       .number = number,
       .modified_ns = kNotModified,
       .accessed_ns = kNotModified,
       .path = 0,
       .path_bytes = 0,
       .next = bucket,
       .unseen = false,
       .held = false,
       .made = false};
  bucket = index_of(w, r) + 1;
  return r;
}

// The `next` of a record that is not yet placed again.
constexpr std::uint32_t kUnplaced = ~0U;

}  // namespace

InodeRecord& find_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  InodeRecord* const known = known_inode(w, device, inode);
  return known != nullptr ? *known : assign_number(w, device, inode);
}

std::uint64_t known_number(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  const InodeRecord* const known = known_inode(w, device, inode);
  return known != nullptr ? known->number : 0;
}

bool is_made_by_server(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  const InodeRecord* const known = known_inode(w, device, inode);
  return known != nullptr && known->made;
}

void hold_inode(Layout& w, InodeRecord& r) noexcept {
  if (r.held) return;
  if (w.inodes.held >= kInodesHeldMax) return held_bound.count_refusal();
  r.held = true;
  ++w.inodes.held;
}

// A path that would cross the end of the buffer starts at its beginning.
void remember_path(Layout& w, InodeRecord& r, std::string_view path) noexcept {
  InodeTable& t = w.inodes;
  const auto bytes = static_cast<std::uint32_t>(path.size());
  CRANE_ASSERT(bytes <= kPathsBytes);
  if (const std::uint64_t left = kPathsBytes - t.paths_end % kPathsBytes; left < bytes) {
    t.paths_end += left;
  }
  if (t.paths_end + bytes > kPathsBytes) paths_bound.count_refusal();
  std::memcpy(t.paths + t.paths_end % kPathsBytes, path.data(), bytes);
  r.path = t.paths_end;
  r.path_bytes = bytes;
  t.paths_end += bytes;
}

std::string_view path_of(const Layout& w, const InodeRecord& r) noexcept {
  const InodeTable& t = w.inodes;
  if (r.path_bytes == 0 || r.path + kPathsBytes < t.paths_end) return {};
  return {t.paths + r.path % kPathsBytes, r.path_bytes};
}

void rename_inodes(Layout& w, RenameInode rename, void* context) noexcept {
  InodeTable& t = w.inodes;
  (void)rename(context, "/", t.root_device, t.root_inode);
  for (std::uint32_t& bucket : t.buckets) bucket = 0;
  const std::uint64_t oldest = t.last_number > kInodesMax ? t.last_number - kInodesMax : 0;
  // Existing files come first, and within each group the youngest: the first record is kept.
  for (const bool there : {true, false}) {
    for (std::uint64_t number = t.last_number; number > oldest; --number) {
      InodeRecord& r = record_of(w, number);
      if (r.number == 0) continue;
      std::uint64_t device = r.device, inode = r.inode;
      if (!there && r.next != kUnplaced) continue;
      if (rename(context, path_of(w, r), device, inode) != there) {
        CRANE_ASSERT(there);  // the same result as in the first pass
        r.next = kUnplaced;
        continue;
      }
      if (InodeRecord* const known = known_inode(w, device, inode); known != nullptr) {
        if (!there || known->number > r.number) {
          r.number = 0;
          continue;
        }
        leave_bucket(w, *known);  // a held record, visited out of order
        known->number = 0;
      }
      std::uint32_t& bucket = bucket_of(w, device, inode);
      r.device = device;
      r.inode = inode;
      r.next = bucket;
      bucket = index_of(w, r) + 1;
    }
  }
}

Modified last_modified(const Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  // A look-up changes nothing.
  const InodeRecord* r = known_inode(const_cast<Layout&>(w), device, inode);
  if (r == nullptr || r->unseen) return {true, w.scheduler.now_ns + w.scheduler.wall_offset_ns};
  return {r->modified_ns != kNotModified, r->modified_ns};
}

InodeRecord& make_inode(Layout& w, std::uint64_t device, std::uint64_t inode) noexcept {
  InodeRecord* const stale = known_inode(w, device, inode);
  if (stale != nullptr) {
    leave_bucket(w, *stale);
    stale->number = 0;
  }
  InodeRecord& r = assign_number(w, device, inode);
  r.made = true;
  return r;
}

}  // namespace crane::dmt
