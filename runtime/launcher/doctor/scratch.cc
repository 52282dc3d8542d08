// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace crane::launcher {
namespace {

// `alive`: the read end of the pipe.
[[noreturn]] void remove_at_the_end(const std::string& path, int alive) {
  setsid();  // Ctrl-C is not for this process
  for (const int signo : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(signo, SIG_IGN);
  char none = 0;
  while (read(alive, &none, 1) != 0) continue;
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  _exit(0);
}

}  // namespace

Scratch::Scratch(const std::string& parent) {
  std::string path = parent + "/.crane-doctor-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    error_ = errno;
    return;
  }
  path_ = path;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // only the destructor removes the directory then
  alive_ = ends[1];
  remover_ = fork();
  if (remover_ == 0) {
    close(ends[1]);
    remove_at_the_end(path, ends[0]);
  }
  close(ends[0]);
}

Scratch::~Scratch() {
  if (alive_ >= 0) close(alive_);
  if (remover_ > 0) {
    while (waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace crane::launcher
