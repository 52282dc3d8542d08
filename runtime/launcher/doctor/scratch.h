// SPDX-License-Identifier: Apache-2.0
#pragma once
// A directory for trials, which is removed afterwards, also when this process is killed: a child
// removes it when no process holds alive_fd() any more.
//
// Threads: one; the constructor forks, so it must be the only one.

#include <sys/types.h>

#include <string>

namespace crane::launcher {

class Scratch {
 public:
  // Creates the directory in `parent`, which must exist.  On failure path() is empty and error() is
  // the errno.
  explicit Scratch(const std::string& parent);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  int error() const { return error_; }
  // A process that uses the directory and may outlive this one must keep this descriptor open.
  int alive_fd() const { return alive_; }

 private:
  std::string path_;
  int error_ = 0;
  int alive_ = -1;      // write end of a pipe
  pid_t remover_ = -1;  // child that waits until all write ends are closed
};

}  // namespace crane::launcher
