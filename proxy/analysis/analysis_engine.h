// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process that runs an analysis replica's server: crane-replay --follow, on the spool.
//
// It is what the machine can best do without: others get the processor first, and when memory
// ends it goes first.
//
// Threads: one.

#include <sys/types.h>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dmt/base/result.h"

namespace crane::node {

struct EngineOptions {
  std::string program;    // crane-replay
  std::string directory;  // of the spool
  int replica = 0;
  std::string tool;    // of valgrind
  std::string report;  // gets what the tool says
  std::string place_dir, place_name;
  std::string log;  // of crane-replay itself
};

class Engine {
 public:
  explicit Engine(EngineOptions options) : options_(std::move(options)) {}
  ~Engine() { stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Outcome start();
  bool running() const noexcept { return pid_ > 0; }
  pid_t pid() const noexcept { return pid_; }
  // Readable when it has said something, or has ended; -1: it does not run.
  int fd() const noexcept { return said_; }
  // Hands over what it has said (follow.h).  False: it has ended, how_ended() tells.
  bool hear(const std::function<void(const nlohmann::json&)>& take);
  // As wait(2) gives it.
  int how_ended() const noexcept { return status_; }
  // Ends it, in order if it does so in time, and removes what it leaves behind.
  void stop();

 private:
  [[noreturn]] void run(int said) const;
  void clean_up();

  const EngineOptions options_;
  pid_t pid_ = -1;
  int said_ = -1;
  int status_ = 0;
  std::string rest_;  // of a line
};

}  // namespace crane::node
