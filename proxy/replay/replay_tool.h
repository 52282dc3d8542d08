// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that observes the server of a replay: a debugger or a profiler.  The server is held
// before its first operation until the tool is ready.
//
// Threads: one.  The tool's process is a child of this process and does not outlive this object.

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::node {

class ReplayTool {
 public:
  virtual ~ReplayTool() = default;
  // `server`: its first process.  On an error, `why` contains the advice.
  virtual Outcome start(pid_t server, std::string& why) = 0;
  // The tool is ready: the server may continue.
  virtual bool ready() = 0;
  // The replay has ended or differs: notifies the user of a debugger.
  virtual void at_end() {}
  // The tool still observes the server, which must stay as it is.
  virtual bool looks() { return false; }
  // Ctrl-C is for the tool.
  virtual bool interactive() const { return false; }
  virtual void stop() {}
};

// Attaches gdb.  `commands` are files for its option -x, in order.
std::unique_ptr<ReplayTool> make_gdb(std::vector<std::string> commands);
// Any debugger: prints a command for it and waits until it attaches.
std::unique_ptr<ReplayTool> make_waiting_for_debugger();
// perf record into `file`.
std::unique_ptr<ReplayTool> make_perf(std::string file);

}  // namespace crane::node
