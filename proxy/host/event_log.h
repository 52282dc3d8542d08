// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happened to a replica, for operators: one JSON object per line in DIR/GROUP/rN/events.jsonl,
// which crane-ctl events shows.
//
//   {"unix_ms":1700000000000,"replica":2,"event":"leads","text":"in view 5: ..."}
//
// Events are differences between one status of the node and the next one, so that what is told here
// and what crane-ctl status shows cannot disagree.
//
// Threads: one object, one thread.
// Errors: a line that cannot be written is said once in node.log, and the replica goes on.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/host/status.h"

namespace crane::node {

struct Event {
  std::string name, text;
};
// The events that lead from the first status to the second one: roles first, then the server,
// checkpoints and members.
std::vector<Event> events_between(const NodeStatus& before, const NodeStatus& now);

class EventLog {
 public:
  // A file that is full is kept as `path`.1, in place of the one before.
  static constexpr std::size_t kBytesMax = 1 << 20;

  EventLog(std::string path, std::uint8_t replica, std::size_t bytes_max = kBytesMax);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog();

  // `unix_ms`: the wall clock's time.
  void observe(const NodeStatus& status, std::int64_t unix_ms);
  void note(const Event& event, std::int64_t unix_ms);

 private:
  void open();
  void complain(const char* what);

  const std::string path_;
  const std::uint8_t replica_;
  const std::size_t bytes_max_;
  int fd_ = -1;
  std::size_t bytes_ = 0;
  bool complained_ = false;
  bool began_ = false;
  NodeStatus last_;
};

}  // namespace crane::node
