// SPDX-License-Identifier: Apache-2.0
#pragma once
// The code of the loaded objects: which of it is libc's, ld.so's, the vDSO's or libcrane.so's.
//
// Threads: any.  find_object() takes ld.so's lock.

#include <cstddef>
#include <cstdint>

namespace crane {

struct LoadedText {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
  bool holds(std::uintptr_t address) const noexcept { return address - begin < size; }
};

struct LoadedObject {
  LoadedText text;
  const char* name = nullptr;  // null: no object was found; "": the program
  std::uintptr_t base = 0;
};
// The loaded object that has `address` in its text.
LoadedObject find_object(std::uintptr_t address) noexcept;

// Once, in the constructor; what follows REQUIRES it.
void find_loaded_texts() noexcept;

LoadedText libc_text() noexcept;
LoadedText own_text() noexcept;
// Code of ld.so, the vDSO or libcrane.so.
bool is_trusted(std::uintptr_t address) noexcept;
// The same, or libc's: it may hold locks that no turn may be awaited under.
bool is_libc_or_trusted(const void* address) noexcept;

}  // namespace crane
