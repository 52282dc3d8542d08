// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "consensus/fabric/choices.h"
#include "dmt/base/assert.h"

namespace crane::consensus {
namespace {

constexpr int kMadvCollapse = 25;  // MADV_COLLAPSE, which glibc 2.36 does not name
constexpr int kTries = 3;          // another user may hold a page for a moment

}  // namespace

const char* name(HugePages choice) noexcept {
  switch (choice) {
    case HugePages::kAuto:
      return "auto";
    case HugePages::kRequire:
      return "require";
    case HugePages::kNever:
      return "never";
  }
  return "?";
}

std::size_t huge_page_bytes() noexcept {
  std::size_t bytes = 0;
  FILE* const file = std::fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%zu", &bytes) != 1) bytes = 0;
  std::fclose(file);
  return bytes;
}

Outcome move_to_huge_pages(const shm::Region& memory) noexcept {
  const std::size_t page = huge_page_bytes();
  if (page == 0) return Error{Code::kUnsupported, 0, "the kernel has no transparent huge pages"};
  CRANE_ASSERT(reinterpret_cast<std::uintptr_t>(memory.data()) % page == 0);
  const std::size_t whole = memory.size() / page * page;
  if (whole == 0) return Error{Code::kUnsupported, 0, "the memory is smaller than one huge page"};
  // On the NUMA node of the memory policy: a move keeps the node.
  memory.populate(0, memory.size());
  for (int i = 0; i < kTries; ++i) {
    if (::madvise(memory.data(), whole, kMadvCollapse) == 0) return Done{};
    if (errno != EAGAIN) break;
  }
  if (errno == EINVAL) {
    return Error{Code::kUnsupported, EINVAL,
                 "this needs Linux 6.1, and shmem_enabled must not be \"deny\""};
  }
  return Error{Code::kFull, errno, "too little memory is free, or it is too fragmented"};
}

std::string pages_text(std::size_t bytes) {
  return bytes >= 1U << 20 ? std::to_string(bytes >> 20) + " MiB"
                           : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace crane::consensus
