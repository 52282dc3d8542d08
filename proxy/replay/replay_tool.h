// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that looks at the server of a replay: a debugger or a profiler.  The server is held
// before its first operation until the tool is there.
//
// Threads: one.  The tool's process is a child of ours and ends at the latest with this object.

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "dmt/base/result.h"

namespace crane::node {

class ReplayTool {
 public:
  virtual ~ReplayTool() = default;
  // The server's first process; an error: `why` says what to do.
  virtual Outcome start(pid_t server, std::string& why) = 0;
  // It is there: the server may go on.
  virtual bool ready() = 0;
  // The replay is at its end, or differs: whoever waits in a debugger is told.
  virtual void at_end() {}
  // It still looks at the server, which has to stay as it is.
  virtual bool looks() { return false; }
  // Ctrl-C is meant for the tool.
  virtual bool interactive() const { return false; }
  virtual void stop() {}
};

// gdb, attached; `commands`: files for its -x, in their order.
std::unique_ptr<ReplayTool> make_gdb(std::vector<std::string> commands);
// Any debugger: its command is printed, and waited for.
std::unique_ptr<ReplayTool> make_waiting_for_debugger();
// perf record into `file`.
std::unique_ptr<ReplayTool> make_perf(std::string file);

}  // namespace crane::node
