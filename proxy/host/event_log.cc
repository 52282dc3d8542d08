// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "dmt/base/read_text.h"

namespace crane::node {
namespace {

std::string milliseconds(std::uint64_t ns) {
  return fmt::format("{:.1f} ms", static_cast<double>(ns) / 1e6);
}

std::string election_text(const NodeStatus& s) {
  const consensus::ElectionStatus& e = s.log.election;
  std::string text = fmt::format("in view {}", s.view);
  if (e.at_ns == 0 || view_counter(e.view) != s.view) return text;
  return text + fmt::format(": {}, took {}", consensus::name(e.cause), milliseconds(e.took_ns));
}

void compare_roles(const NodeStatus& before, const NodeStatus& now, std::vector<Event>& all) {
  const bool led = now.leader < kReplicasMax;
  if (now.readiness.takes_clients && (!before.readiness.takes_clients || before.view != now.view)) {
    std::string text = election_text(now);
    if (now.last_adopted + now.last_reset > 0) {
      text += fmt::format("; {} connections were kept, {} were reset", now.last_adopted,
                          now.last_reset);
    }
    all.push_back({"leads", text});
  } else if (now.role == "follower" && led &&
             (before.leader != now.leader || before.view != now.view)) {
    all.push_back({"follows", fmt::format("replica {} in view {}", now.leader, now.view)});
  }
  if (before.no_quorum.empty() != now.no_quorum.empty()) {
    all.push_back(now.no_quorum.empty()
                      ? Event{"quorum", "a majority answers and has a leader again"}
                      : Event{"no quorum", now.no_quorum});
  }
  if (before.log.no_room.empty() != now.log.no_room.empty()) {
    all.push_back(now.log.no_room.empty() ? Event{"room", "there is room again"}
                                          : Event{"no room", now.log.no_room});
  }
}

void compare_servers(const NodeStatus& before, const NodeStatus& now, std::vector<Event>& all) {
  if (now.server_pid > 0 && now.server_pid != before.server_pid) {
    all.push_back({"server runs", fmt::format("pid {}", now.server_pid)});
  }
  if (now.server_exit >= 0 && before.server_exit < 0) {
    all.push_back({"server ended", fmt::format("with status {}", now.server_exit)});
  }
  // A server that has not begun serves nothing; "server runs" above reports its start.
  if (before.server_pid > 0 && before.not_serving.empty() != now.not_serving.empty()) {
    all.push_back(now.not_serving.empty() ? Event{"serves", "again; before: " + before.not_serving}
                                          : Event{"not serving", now.not_serving});
  }
  if (before.recovery.catches_up && !now.recovery.catches_up) {
    all.push_back({"caught up", fmt::format("at log index {}", now.applied)});
  }
  if (now.divergences > before.divergences) all.push_back({"differs", now.alarm});
  if (now.unhooked_calls > 0 && before.unhooked_calls == 0) {
    all.push_back({"unhooked call", "the server made one; crane-ctl status names it"});
  }
}

void compare_checkpoints(const NodeStatus& before, const NodeStatus& now, std::vector<Event>& all) {
  const replica::CheckpointStatus& c = now.checkpoint;
  if (c.taken > before.checkpoint.taken) {
    all.push_back(
        {"checkpoint", fmt::format("at log index {}; the server was held for {}", value(c.last),
                                   milliseconds(static_cast<std::uint64_t>(c.held_ns)))});
  }
  if (c.failed > before.checkpoint.failed) {
    all.push_back({"no checkpoint", fmt::format("at log index {}: {}", value(c.gave_up), c.why)});
  }
}

void compare_members(const NodeStatus& before, const NodeStatus& now, std::vector<Event>& all) {
  const auto find = [&before](ReplicaId id) -> const consensus::MemberStatus* {
    const auto& members = before.log.members;
    const auto found =
        std::find_if(members.begin(), members.end(), [id](const auto& m) { return m.id == id; });
    return found == members.end() ? nullptr : &*found;
  };
  // Only the leader reports events of other replicas.
  if (now.role != "leader" || before.role != "leader") return;
  for (const consensus::MemberStatus& m : now.log.members) {
    const consensus::MemberStatus* was = find(m.id);
    const unsigned id = value(m.id);
    if (was == nullptr) {
      all.push_back({"member", fmt::format("replica {} was added ({})", id, name(m.role))});
      continue;
    }
    if (was->role != m.role) {
      all.push_back({"member", fmt::format("replica {} is now a {}", id, name(m.role))});
    }
    if (id == now.replica || was->connected == m.connected) continue;
    const auto peer = now.peers.find(value(m.id));
    const bool drained = peer != now.peers.end() && peer->second.drained.value_or(false);
    all.push_back(m.connected ? Event{"replica is there", fmt::format("replica {}", id)}
                              : Event{"replica is gone",
                                      fmt::format("replica {}{}", id, drained ? ", drained" : "")});
  }
  for (const consensus::MemberStatus& m : before.log.members) {
    const auto& members = now.log.members;
    if (std::any_of(members.begin(), members.end(), [&m](const auto& n) { return n.id == m.id; })) {
      continue;
    }
    all.push_back({"member", fmt::format("replica {} was removed", value(m.id))});
  }
}

}  // namespace

std::vector<Event> events_between(const NodeStatus& before, const NodeStatus& now) {
  std::vector<Event> all;
  compare_roles(before, now, all);
  compare_servers(before, now, all);
  compare_checkpoints(before, now, all);
  compare_members(before, now, all);
  return all;
}

namespace {

// The last lines of the file, at most `bytes`.  `cut`: it has more.
std::string tail_of(const std::string& path, std::size_t bytes, bool& cut) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const auto size = static_cast<std::size_t>(in.tellg());
  const std::size_t from = size > bytes ? size - bytes : 0;
  cut = from > 0;
  in.seekg(static_cast<std::streamoff>(from));
  std::string text = rest_of(in);
  if (cut) text.erase(0, text.find('\n'));  // the rest of a line
  return text;
}

}  // namespace

NewestEvents newest_events(const std::string& path, std::size_t count, std::size_t bytes) {
  NewestEvents newest;
  bool cut = false;
  std::string text = tail_of(path, bytes, cut);
  if (!cut) text = tail_of(path + ".1", bytes - std::min(bytes, text.size()), cut) + text;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) newest.lines.push_back(std::move(line));
  }
  newest.all = !cut && newest.lines.size() <= count;
  if (newest.lines.size() > count) {
    newest.lines.erase(newest.lines.begin(),
                       newest.lines.end() - static_cast<std::ptrdiff_t>(count));
  }
  return newest;
}

EventLog::EventLog(std::string path, std::uint8_t replica, std::size_t bytes_max)
    : path_(std::move(path)), replica_(replica), bytes_max_(bytes_max) {}

EventLog::~EventLog() {
  if (fd_ >= 0) ::close(fd_);
}

void EventLog::open() {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) return complain("open");
  struct stat found {};
  bytes_ = ::fstat(fd_, &found) == 0 ? static_cast<std::size_t>(found.st_size) : 0;
}

void EventLog::complain(const char* what) {
  if (!complained_) {
    spdlog::warn("{}: cannot {} it ({}): crane-ctl events lacks events of this replica", path_,
                 what, std::strerror(errno));
  }
  complained_ = true;
}

void EventLog::observe(const NodeStatus& status, std::int64_t unix_ms) {
  if (!began_) {
    const char* const by = status.recovery.came_back_by;
    note({"begins", *by == '\0' ? fmt::format("pid {}", status.pid)
                                : fmt::format("pid {}, recovers by {} at log index {}", status.pid,
                                              by, status.restored_at)},
         unix_ms);
    last_.server_exit = -1;
    began_ = true;
  }
  for (const Event& event : events_between(last_, status)) note(event, unix_ms);
  last_ = status;
}

void EventLog::note(const Event& event, std::int64_t unix_ms) {
  if (fd_ < 0) open();
  if (fd_ < 0) return;
  const nlohmann::json line{
      {"unix_ms", unix_ms}, {"replica", replica_}, {"event", event.name}, {"text", event.text}};
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (bytes_ + text.size() > bytes_max_ && bytes_ > 0) {
    ::close(fd_);
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) complain("rename");
    open();
    if (fd_ < 0) return;
  }
  const ssize_t written = ::write(fd_, text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) complain("write");
  if (written > 0) bytes_ += static_cast<std::size_t>(written);
}

}  // namespace crane::node
