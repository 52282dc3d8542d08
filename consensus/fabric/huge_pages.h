// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves a log's memory to huge pages, so that a device needs fewer translations.  The file stays on
// tmpfs; the kernel collapses its pages (MADV_COLLAPSE, Linux 6.1).  This needs no setting of the
// machine, only free memory that can be made contiguous.
//
// Threads: plain functions.

#include <cstddef>
#include <string>

#include "consensus/fabric/shm_region.h"
#include "dmt/base/result.h"

namespace crane::consensus {

// 2 MiB on x86-64; 0: the kernel has no transparent huge pages.
std::size_t huge_page_bytes() noexcept;
// Fills the file's holes and moves all of it but a rest shorter than a huge page; contents stay.
// Pages that a device has registered cannot move.
// REQUIRES (asserted): `memory` begins at a multiple of huge_page_bytes().
// kUnsupported: this kernel or file system cannot do it. kFull: too little memory is free, or it
// cannot be made contiguous; some pages may have moved.
Outcome move_to_huge_pages(const shm::Region& memory) noexcept;
// "4 KiB", "2 MiB".
std::string pages_text(std::size_t bytes);

}  // namespace crane::consensus
