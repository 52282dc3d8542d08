// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that an operator asked for: it has its name when it is whole, and never stands for another
// file.  Where the file system can (O_TMPFILE), nothing is left of one whose program was killed;
// elsewhere .NAME.new-PID is.
//
// Threads: one.

#include <string>

#include "checkpoint/descriptor.h"

namespace crane::launcher {

class NewFile {
 public:
  // `path`: "-" is standard output, which must not be a terminal.  kExists, kBadArgument, ..
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Where to write it, mode 0600.
  Result<checkpoint::Descriptor> open();
  // All was written, and synced.
  Outcome name_it();
  bool is_stdout() const noexcept { return path_ == "-"; }
  // For messages.
  std::string shown() const { return is_stdout() ? "standard output" : path_; }

 private:
  std::string directory() const;

  const std::string path_;
  std::string temporary_;
  checkpoint::Descriptor fd_;
};

// A file to read, or, "-", standard input, and what messages call it.
Result<checkpoint::Descriptor> open_to_read(const std::string& path);
std::string shown_input(const std::string& path);

}  // namespace crane::launcher
