// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shows in a file how far a node is that cannot answer requests yet (runtime/control/start_file.h).
//
// Threads: one.
// Errors: a file that cannot be written is reported in node.log; the node continues.

#include <cstdint>
#include <string>

#include "checkpoint/image.h"
#include "proxy/host/config.h"
#include "runtime/control/progress.h"

namespace crane::node {

class StartProgress {
 public:
  // `name`: of the operation.
  StartProgress(const Config& config, std::string name, std::string step);
  ~StartProgress();  // removes the file
  StartProgress(const StartProgress&) = delete;
  StartProgress& operator=(const StartProgress&) = delete;

  // The options of checkpoints in this directory that report to this object.
  checkpoint::Checkpoints::Options reported(const std::string& directory);

 private:
  static constexpr std::int64_t kEveryNs = 250'000'000;

  void step(std::uint64_t done, std::uint64_t of);
  void write(std::int64_t now_ns);

  const std::string path_;
  const int replica_;
  control::Operation operation_;
  control::ProgressMeter meter_;
  std::int64_t written_ns_ = 0;
  bool complained_ = false;
};

}  // namespace crane::node
