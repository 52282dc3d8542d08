// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/health.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "dmt/base/ids.h"
#include "runtime/control/verdict.h"

namespace crane::node {
namespace {

// A longer time is surely a mistake, and would not fit in nanoseconds.
constexpr std::int64_t kLagMostSeconds = 1'000'000;

// The verdict, with the details that it leaves out.
std::string reason_of(const control::Verdict& verdict, const NodeStatus& s) {
  const std::string& more = !s.no_quorum.empty()     ? s.no_quorum
                            : !s.log.no_room.empty() ? s.log.no_room
                                                     : s.not_serving;
  return more.empty() ? verdict.text : verdict.text + ": " + more;
}

// True: the replica would be ready if its lag were 0.  The caller applies the limit of the request.
bool late_only(const NodeStatus& s) {
  control::Readiness near = s.readiness;
  near.lag_ms = 0;
  return control::why_not_ready(near).empty();
}

HealthAnswer no(std::string reason) { return {503, std::move(reason)}; }

}  // namespace

HealthAnswer health(const NodeStatus& s) {
  const control::Verdict verdict = verdict_of(s);
  if (verdict.sound) return {};
  if (verdict.serving) return no("replicas differ: " + s.alarm);
  return no(reason_of(verdict, s));
}

HealthAnswer leads(const NodeStatus& s) {
  if (s.role != "leader") return no(fmt::format("this replica is a {}", s.role));
  const control::Verdict verdict = verdict_of(s);
  return verdict.serving ? HealthAnswer{} : no(reason_of(verdict, s));
}

HealthAnswer follows(const NodeStatus& s, std::optional<std::int64_t> lag_ns) {
  if (s.role != "follower") return no(fmt::format("this replica is a {}", s.role));
  if (s.leader >= kReplicasMax) return no("no leader is known");
  if (!s.no_quorum.empty()) return no(s.no_quorum);
  if (const std::string why = control::why_not_ready(s.readiness); !why.empty() && !late_only(s)) {
    return no("it " + why);
  }
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
