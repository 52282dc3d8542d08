// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process that runs an analysis replica's server: crane-replay --follow, which reads the inputs
// that the node writes to files (the spool).
//
// It has the lowest priority on the machine: all other processes get the processor first, and the
// kernel kills it first when memory is full.
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
  std::string directory;  // the spool's directory
  int replica = 0;
  std::string tool;    // valgrind's tool
  std::string report;  // file for the tool's reports
  std::string place_dir, place_name;
  std::string log;  // file for the log of crane-replay
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
  // Readable when there is a message or when the process has ended; -1: it does not run.
  int fd() const noexcept { return output_; }
  // Passes the process' messages (follow.h) to `take`.  False: the process has ended, see
  // how_ended().
  bool receive(const std::function<void(const nlohmann::json&)>& take);
  // The status as from wait(2).
  int how_ended() const noexcept { return status_; }
  // Asks the process to end, kills it if it does not end in time, and removes its files.
  void stop();

 private:
  [[noreturn]] void run(int engine_output) const;
  void clean_up();

  const EngineOptions options_;
  pid_t pid_ = -1;
  int output_ = -1;
  int status_ = 0;
  std::string rest_;  // incomplete line
};

}  // namespace crane::node
