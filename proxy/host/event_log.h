// SPDX-License-Identifier: Apache-2.0
#pragma once
// The log of a replica's events, for operators: one JSON object per line in
// DIR/GROUP/rN/events.jsonl, which crane-ctl events shows.
//
//   {"unix_ms":1700000000000,"replica":2,"event":"leads","text":"in view 5: ..."}
//
// Events are differences between two successive statuses of the node, so that the log and crane-ctl
// status cannot disagree.
//
// Threads: one object, one thread.
// Errors: the first line that cannot be written is reported in node.log; the replica continues.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proxy/host/status.h"

namespace crane::node {

struct Event {
  std::string name, text;
};
// The events between two statuses: roles first, then the server, checkpoints and members.
std::vector<Event> events_between(const NodeStatus& before, const NodeStatus& now);

// The newest lines of an event log, at most `count` and about `bytes`, the oldest first.
struct NewestEvents {
  std::vector<std::string> lines;
  bool all = true;  // there are no older ones
};
NewestEvents newest_events(const std::string& path, std::size_t count, std::size_t bytes);

class EventLog {
 public:
  // Size at which the file is renamed to `path`.1, replacing an earlier one.
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
