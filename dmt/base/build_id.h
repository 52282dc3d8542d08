// SPDX-License-Identifier: Apache-2.0
#pragma once
// Identifies the build of an ELF object by the first bytes of its build id.
//
// Threads: any; a pure function.

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crane {

// The build id in the `bytes` of a note segment; 0: there is none.
inline std::uint64_t build_id(const unsigned char* notes, std::size_t bytes) noexcept {
  const auto padded = [](std::uint32_t size) { return std::size_t{size + 3u} & ~std::size_t{3}; };
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t id = name + padded(note.n_namesz);
    std::uint64_t build = 0;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz >= sizeof build &&
        id + sizeof build <= bytes && std::memcmp(notes + name, "GNU", 4) == 0) {
      std::memcpy(&build, notes + id, sizeof build);
      return build;
    }
    at = id + padded(note.n_descsz);
  }
  return 0;
}

}  // namespace crane
