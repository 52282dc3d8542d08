// SPDX-License-Identifier: Apache-2.0
#pragma once
// What valgrind says of a running server, as it says it: each finding once, in one line.
//
// A finding is what was found and where: the same place found again, in another process of the
// server or on another way there, is no new one.
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
  // The next piece of what the server's processes wrote, cut anywhere.
  void take(std::string_view text);

  // What was found since the last call: "Possible data race during read of size 8 at work
  // (server.c:24), called from main (server.c:90)".
  std::vector<std::string> fresh();
  // Valgrind's own words, without the server's, since the last call.
  std::string report();

  std::uint64_t count() const noexcept { return count_; }      // of different findings
  std::uint64_t reports() const noexcept { return reports_; }  // of valgrind's

 private:
  // The report that a process is in the middle of.
  struct Open {
    std::string what;
    std::vector<std::string> frames;
  };
  void take_line(std::string_view line);
  void close(const Open& open);

  std::string rest_;                               // of a line that is not whole yet
  std::map<std::string, Open, std::less<>> open_;  // by process
  std::set<std::string> known_;
  std::vector<std::string> fresh_;
  std::string report_;
  std::uint64_t count_ = 0, reports_ = 0;
};

}  // namespace crane::node
