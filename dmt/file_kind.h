// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the scheduler and the node handle each kind of file: one table with a row per kind.  The
// table of the wrappers is runtime/preload/files/file_ops.h.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

struct KindOfFile {
  FileKind kind;
  const char* name;  // for reports of threads that wait on such a file
  // The readiness that follows from the state.
  Readiness (*readiness)(const Layout& w, const FileRecord& f) noexcept;
  // Executes the effects of closing the last reference on other objects than the file.
  void (*close)(Layout& w, std::uint32_t file) noexcept;
  // Whether an event outside the server may make it ready.
  bool (*has_external_input)(const FileRecord& f) noexcept;
  // When the file becomes ready, only one waiter wakes: one accept gets a listener's connection.
  bool wakes_one = false;
  // The counter of open files of this kind, if there is one.
  std::uint32_t SchedulerState::*count = nullptr;
};

const KindOfFile& kind_of(const FileRecord& f) noexcept;

inline bool is_pipe_end(FileKind kind) noexcept {
  return kind == FileKind::kPipeRead || kind == FileKind::kPipeWrite;
}

// Checks that the rows begin with the kinds in order, so that a kind without a row does not
// compile.
template <typename Row, std::size_t kRows>
consteval bool has_row_for_each_kind(const Row (&rows)[kRows]) {
  if (kRows != static_cast<std::size_t>(FileKind::kEnd)) return false;
  for (std::size_t i = 0; i < kRows; ++i) {
    if (rows[i].kind != static_cast<FileKind>(i)) return false;
  }
  return true;
}

}  // namespace crane::dmt
