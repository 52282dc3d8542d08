// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of a log on huge pages: a device needs fewer translations for it.  The file stays where it
// is, on tmpfs; its pages are moved together (MADV_COLLAPSE, Linux 6.1), which needs no setting of
// the machine, only free memory that can be made contiguous.
//
// Threads: plain functions.

#include <cstddef>
#include <string>

#include "consensus/fabric/shm_region.h"
#include "dmt/base/result.h"

namespace crane::consensus {

// 2 MiB on x86-64; 0: the kernel has none that move.
std::size_t huge_page_bytes() noexcept;
// Fills the file's holes and moves all but what is shorter than a huge page; contents stay.  Pages
// that a device has registered cannot move.
// REQUIRES (asserted): `memory` begins at a multiple of huge_page_bytes().
// kUnsupported: this kernel, or this file system, does not do it; kFull: too little memory is free,
// or it cannot be made contiguous; some may have moved then.
Outcome move_to_huge_pages(const shm::Region& memory) noexcept;
// "4 KiB", "2 MiB".
std::string pages_text(std::size_t bytes);

}  // namespace crane::consensus
