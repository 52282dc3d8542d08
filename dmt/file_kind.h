// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the scheduler and the node ask of a file by its kind: one table with a row per kind.  What
// the wrappers ask besides stands in runtime/preload/files/file_ops.h.
//
// Threads / Processes: everything here REQUIRES the turn.

#include <cstddef>
#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

struct KindOfFile {
  FileKind kind;
  const char* name;  // in the report of a thread that waits on one
  // The level that the state gives now.
  Readiness (*readiness)(const Layout& w, const FileRecord& f) noexcept;
  // What the end of the last reference means outside the file itself.
  void (*close)(Layout& w, std::uint32_t file) noexcept;
  // Whether what happens outside of the server may make it ready.
  bool (*comes_from_outside)(const FileRecord& f) noexcept;
  // A rise wakes one of the threads that wait: a listener's connection is for one accept.
  bool wakes_one = false;
  // Where its open files are counted, if they are.
  std::uint32_t SchedulerState::*count = nullptr;
};

const KindOfFile& kind_of(const FileRecord& f) noexcept;

inline bool is_pipe_end(FileKind kind) noexcept {
  return kind == FileKind::kPipeRead || kind == FileKind::kPipeWrite;
}

// Of a table whose rows begin with their kind: that adding a kind without its row does not compile.
template <typename Row, std::size_t kRows>
consteval bool has_row_for_each_kind(const Row (&rows)[kRows]) {
  if (kRows != static_cast<std::size_t>(FileKind::kEnd)) return false;
  for (std::size_t i = 0; i < kRows; ++i) {
    if (rows[i].kind != static_cast<FileKind>(i)) return false;
  }
  return true;
}

}  // namespace crane::dmt
