// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/server_run_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "checkpoint/descriptor.h"

namespace crane::node {

std::optional<std::uint64_t> ticks_of(std::string_view stat) noexcept {
  // The name in parentheses may contain any character; fields 14 to 17 are the times.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const char* at = stat.data() + name_end + 1;
  const char* const end = stat.data() + stat.size();
  std::uint64_t ticks = 0;
  for (int field = 2; field < 17; ++field) {
    at = std::find(at, end, ' ');
    if (at == end) return std::nullopt;
    ++at;
    if (field < 13) continue;
    std::uint64_t number = 0;
    if (std::from_chars(at, end, number).ec != std::errc()) return std::nullopt;
    ticks += number;
  }
  return ticks;
}

std::int64_t ServerRunTime::look(const std::map<std::uint32_t, pid_t>& processes) {
  std::uint64_t now = 0;
  for (const auto& [inside, host_pid] : processes) {
    const checkpoint::Descriptor fd(
        ::open(("/proc/" + std::to_string(host_pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    char text[1024];
    const ssize_t size = fd ? ::read(fd.get(), text, sizeof text) : -1;
    if (size <= 0) continue;  // it has ended
    now += ticks_of({text, static_cast<std::size_t>(size)}).value_or(0);
  }
  // When a process ends, its parent gets its ticks if the parent waits for it.
  const std::uint64_t more = now > before_ ? now - before_ : 0;
  before_ = now;
  run_ns_ += static_cast<std::int64_t>(more) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  return run_ns_;
}

}  // namespace crane::node
