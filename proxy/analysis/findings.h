// SPDX-License-Identifier: Apache-2.0
#pragma once
// Extracts valgrind's findings from the output of a running server: each finding once, in one line.
//
// A finding is identified by its kind and place.  The same place in another process of the server,
// or on another path, is not a new finding.
//
// Threads: one object, one thread.  Pure: no I/O.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace crane::node {

class Findings {
 public:
  // The next piece of the output of the server's processes, cut anywhere.
  void take(std::string_view text);

  // The findings since the last call: "Possible data race during read of size 8 at work
  // (server.c:24), called from main (server.c:90)".
  std::vector<std::string> fresh();
  // Valgrind's output since the last call, without the server's.
  std::string report();

  std::uint64_t count() const noexcept { return count_; }      // different findings
  std::uint64_t reports() const noexcept { return reports_; }  // valgrind's reports

 private:
  // The incomplete report of a process.
  struct Open {
    std::string what;
    std::vector<std::string> frames;
  };
  void take_line(std::string_view line);
  void close(const Open& open);

  std::string rest_;                               // incomplete line
  std::map<std::string, Open, std::less<>> open_;  // by process
  std::set<std::string> known_;
  std::vector<std::string> fresh_;
  std::string report_;
  std::uint64_t count_ = 0, reports_ = 0;
};

}  // namespace crane::node
