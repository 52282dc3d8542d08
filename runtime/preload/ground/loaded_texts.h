// SPDX-License-Identifier: Apache-2.0
#pragma once
// The code of the loaded objects: libc's, ld.so's, the vDSO's and libcrane.so's.
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
  const char* name = nullptr;  // null: no object; "": the program
  std::uintptr_t base = 0;
};
// Returns the loaded object that has `address` in its text.
LoadedObject find_object(std::uintptr_t address) noexcept;

// Called once, in the constructor; the functions below REQUIRE it.
void find_loaded_texts() noexcept;

LoadedText libc_text() noexcept;
LoadedText own_text() noexcept;
// Whether the code is ld.so's, the vDSO's or libcrane.so's.
bool is_trusted(std::uintptr_t address) noexcept;
// Whether the code is trusted or libc's: such code may hold locks, so it must not wait for a turn.
bool is_libc_or_trusted(const void* address) noexcept;

}  // namespace crane
