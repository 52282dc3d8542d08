// SPDX-License-Identifier: Apache-2.0
#pragma once
// A directory for something that is tried, gone afterwards, also when this process is killed: a
// child removes it when neither this process nor another that holds alive_fd() is left.
//
// Threads: one; the constructor forks, so it must be the only one.

#include <sys/types.h>

#include <string>

namespace crane::launcher {

class Scratch {
 public:
  // Made in `parent`, which exists.  path() is empty and error() says why: it cannot be made.
  explicit Scratch(const std::string& parent);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  int error() const { return error_; }
  // For a process that uses the directory and may outlive this one: it keeps this open.
  int alive_fd() const { return alive_; }

 private:
  std::string path_;
  int error_ = 0;
  int alive_ = -1;      // the end of a pipe: closed when no process has it any more
  pid_t remover_ = -1;  // waits for that
};

}  // namespace crane::launcher
