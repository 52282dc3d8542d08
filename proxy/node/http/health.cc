// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/http/health.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "dmt/base/ids.h"

namespace crane::node {
namespace {

// A longer time than that is none that a person means, and would not fit in nanoseconds.
constexpr std::int64_t kLagMostSeconds = 1'000'000;

HealthAnswer no(std::string reason) { return {503, std::move(reason)}; }

}  // namespace

HealthAnswer health(const NodeStatus& s) {
  if (s.leader >= kReplicasMax) return no("no leader is known");
  if (!s.no_quorum.empty()) return no(s.no_quorum);
  if (!s.not_serving.empty()) return no(s.not_serving);
  if (s.role == "leader" && !s.log.no_room.empty()) return no("inputs wait: " + s.log.no_room);
  if (!s.alarm.empty()) return no("replicas differ: " + s.alarm);
  return {};
}

HealthAnswer leads(const NodeStatus& s) {
  if (s.role != "leader") return no(fmt::format("this replica is a {}", s.role));
  if (!s.no_quorum.empty()) return no(s.no_quorum);
  if (!s.not_serving.empty()) return no(s.not_serving);
  if (!s.log.no_room.empty()) return no("inputs wait: " + s.log.no_room);
  if (!s.takes_clients) return no("it leads, and its server does not know that yet");
  return {};
}

HealthAnswer follows(const NodeStatus& s, std::optional<std::int64_t> lag_ns) {
  if (s.role != "follower") return no(fmt::format("this replica is a {}", s.role));
  if (s.leader >= kReplicasMax) return no("no leader is known");
  if (!s.no_quorum.empty()) return no(s.no_quorum);
  if (s.log.needs_checkpoint) return no("it lacks entries that left the log");
  if (s.recovery.catches_up || s.log.fetching) return no("it catches up with the others");
  if (!s.not_serving.empty()) return no(s.not_serving);
  if (lag_ns && s.lag_ns > *lag_ns) {
    return no(fmt::format("its server is {} ms behind", s.lag_ns / 1'000'000));
  }
  return {};
}

HealthAnswer ready(const NodeStatus& s, std::optional<std::int64_t> lag_ns) {
  return s.role == "leader" ? leads(s) : follows(s, lag_ns);
}

std::optional<std::int64_t> parse_lag(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number < 0 || number > kLagMostSeconds) return std::nullopt;
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (unit == "s") return number * 1'000'000'000;
  if (unit == "ms") return number * 1'000'000;
  if (unit == "us") return number * 1'000;
  return std::nullopt;
}

}  // namespace crane::node
