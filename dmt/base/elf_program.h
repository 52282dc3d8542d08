// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the loader treats a program.  The loader maps libcrane.so only into a program that it loads
// with libraries, and libcrane.so sees only calls that pass through libc.
//
// Pure.  Threads: any.

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace crane {

enum class ElfProgram : std::uint8_t {
  kLibraries,   // names at least one library: libc, or one that needs libc
  kStatic,      // has no loader
  kNoLibrary,   // has a loader but no library, like a Go program built without cgo
  kUnreadable,  // the headers end too early
};

// `read_at(at, to, size)` reads `size` bytes of the file; false: the file has fewer.
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
