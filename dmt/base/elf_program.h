// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the loader makes of a program: libcrane.so comes only into one that is loaded with
// libraries, and sees the calls only of one that has libc.
//
// Pure.  Threads: any.

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace crane {

enum class ElfProgram : std::uint8_t {
  kLibraries,   // one is named at least: libc, or one that needs it
  kStatic,      // no loader
  kNoLibrary,   // a loader, and no library: as Go builds without cgo
  kUnreadable,  // its headers end too early
};

// `read_at(at, to, size)`: so many bytes of the file; false: there are fewer.
template <typename ReadAt>
ElfProgram elf_program(const Elf64_Ehdr& elf, ReadAt&& read_at) noexcept {
  bool dynamic = false, libraries = false;
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(elf.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
      return ElfProgram::kUnreadable;
    }
    dynamic = dynamic || segment.p_type == PT_INTERP;
    if (segment.p_type != PT_DYNAMIC) continue;
    Elf64_Dyn entry;
    for (std::uint64_t at = 0; at + sizeof entry <= segment.p_filesz; at += sizeof entry) {
      if (!read_at(segment.p_offset + at, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
      libraries = libraries || entry.d_tag == DT_NEEDED;
    }
  }
  if (!dynamic) return ElfProgram::kStatic;
  return libraries ? ElfProgram::kLibraries : ElfProgram::kNoLibrary;
}

}  // namespace crane
