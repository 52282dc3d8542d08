// SPDX-License-Identifier: Apache-2.0
#include "dmt/segment.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <type_traits>
#include "dmt/scheduler.h"

namespace crane::dmt {

// DMT-L3
static_assert(std::is_trivially_destructible_v<Layout> && std::is_standard_layout_v<Layout>);

Layout& initialise_segment(void* memory, const Configuration& configuration) noexcept {
  Layout& w = *static_cast<Layout*>(memory);
  SegmentHeader& h = w.header;
  h.magic = kSegmentMagic;
  h.header_bytes = sizeof(SegmentHeader);
  h.total_bytes = sizeof(Layout);
  h.configuration = configuration;
  h.sequence.data_offset = offsetof(Layout, sequence_data);
  h.sequence.capacity = kSequenceBytes;
  h.output.data_offset = offsetof(Layout, output_data);
  h.output.capacity = kOutputBytes;
  initialise_scheduler(w);
  h.version.store(kLayoutVersion, std::memory_order_release);  // DMT-L2
  return w;
}

Attached attach_segment(int fd) noexcept {
  struct stat status;
  if (::fstat(fd, &status) != 0) return {Attach::kAbsent, nullptr, 0};
  if (static_cast<std::size_t>(status.st_size) < sizeof(SegmentHeader)) {
    return {Attach::kTooSmall, nullptr, 0};
  }
  // A segment of another version may have another size; it has at least its header.
  const auto size = static_cast<std::size_t>(status.st_size);
  const bool whole = size >= sizeof(Layout);
  const std::size_t mapped = whole ? sizeof(Layout) : sizeof(SegmentHeader);
  const int protection = whole ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = ::mmap(nullptr, mapped, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return {Attach::kSystem, nullptr, 0};
  const auto* header = static_cast<const SegmentHeader*>(memory);
  const std::uint32_t version = header->version.load(std::memory_order_acquire);
  const bool ours = version == kLayoutVersion && header->magic == kSegmentMagic &&
                    header->total_bytes == sizeof(Layout);
  if (whole && ours) return {Attach::kReady, static_cast<Layout*>(memory), version};
  ::munmap(memory, mapped);
  if (version == 0) return {Attach::kCreating, nullptr, 0};
  return {ours ? Attach::kTooSmall : Attach::kWrongVersion, nullptr, version};
}

}  // namespace crane::dmt
