// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/control/schema.h"
#include "runtime/launcher/child.h"
#include "runtime/launcher/doctor/machine.h"

namespace crane::launcher {
namespace {

constexpr int kLimitMs = 60'000;  // for crane-node, which gives each device some seconds
// Returns the last line that begins with '[' when the child has ended.  Kills a child that is late.

std::string output_of(const Child& child, bool& late) {
  const std::int64_t end = now_ms() + kLimitMs;
  std::string text;
  Lines lines;
  bool more = true;
  while (more && now_ms() < end) {
    pollfd ready{child.out, POLLIN, 0};
    poll(&ready, 1, static_cast<int>(end - now_ms()));
    // Libraries print their complaints to the same pipe; the answer contains the problem.
    more = lines.read_from(child.out, [&text](const std::string& line) {
      if (!line.empty() && line[0] == '[') text = line;
    });
  }
  late = more;
  if (late) kill(child.pid, SIGKILL);
  while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return text;
}

}  // namespace

Devices parse_devices(const std::string& text) {
  Devices devices;
  const auto all = nlohmann::json::parse(text, nullptr, false);
  if (!all.is_array()) {
    devices.problem = "crane-node --check-devices gave no readable answer";
    return devices;
  }
  for (const auto& one : all) {
    devices.found.push_back({control::text_in(one, "device"), control::text_in(one, "driver"),
                             control::text_in(one, "problem"), one.value("rounds", 0U),
                             one.value("late_rounds", 0U)});
  }
  return devices;
}

Devices look_at_devices(const std::string& node) {
  Child child;
  if (!spawn_child({node, "--check-devices"}, ParentDeathPolicy::kParent, child)) {
    return {{}, std::string("crane-node cannot be run: ") + strerror(errno)};
  }
  bool late = false;
  const std::string text = output_of(child, late);
  if (child.out >= 0) close(child.out);
  return late ? Devices{{}, "crane-node --check-devices did not end in time"} : parse_devices(text);
}

}  // namespace crane::launcher
