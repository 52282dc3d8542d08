// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file that an operator requested.  It gets its name when it is complete, and never replaces
// another file.  If the program is killed, it leaves no file on file systems with O_TMPFILE, and
// .NAME.new-PID on others.
//
// Threads: one.

#include <string>

#include "checkpoint/descriptor.h"

namespace crane::launcher {

class NewFile {
 public:
  // `path`: "-" is standard output, which must not be a terminal.
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // A descriptor to write to; the file has mode 0600.  Fails with kExists, kBadArgument, ...
  Result<checkpoint::Descriptor> open();
  // Gives the file its name.  REQUIRES: its content was written and synced.
  Outcome name_it();
  bool is_stdout() const noexcept { return path_ == "-"; }
  // The name for messages.
  std::string shown() const { return is_stdout() ? "standard output" : path_; }

 private:
  std::string directory() const;

  const std::string path_;
  std::string temporary_;
  checkpoint::Descriptor fd_;
};

// Opens a file to read; "-" is standard input.  shown_input() is its name for messages.
Result<checkpoint::Descriptor> open_to_read(const std::string& path);
std::string shown_input(const std::string& path);

}  // namespace crane::launcher
