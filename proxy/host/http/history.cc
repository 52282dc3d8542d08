// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/history.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "dmt/sequence/entry.h"
#include "proxy/clients/encode.h"

namespace crane::node {
namespace {

nlohmann::json or_null(std::int64_t number) {
  return number < 0 ? nlohmann::json() : nlohmann::json(number);
}

}  // namespace

void History::add(const NodeStatus& s, std::int64_t unix_ms) {
  const Before now{s.now_ns, inputs_of(s), s.bytes_in, s.bytes_out, s.commit_times};
  const Before then = std::exchange(before_, now);
  if (then.at_ns == 0 || now.at_ns <= then.at_ns) return;
  const double seconds = static_cast<double>(now.at_ns - then.at_ns) / 1e9;
  const auto rate = [seconds](std::uint64_t to, std::uint64_t from) {
    return static_cast<double>(to - std::min(to, from)) / seconds;
  };
  Sample sample;
  sample.unix_ms = unix_ms;
  sample.inputs_per_s = rate(now.inputs, then.inputs);
  sample.received_per_s = rate(now.received, then.received);
  sample.sent_per_s = rate(now.sent, then.sent);
  const LatencyHistogram taken = now.commit_times.since(then.commit_times);
  if (taken.total() > 0) {
    sample.p50_us = taken.quantile_ns(0.5) / 1000;
    sample.p99_us = taken.quantile_ns(0.99) / 1000;
  }
  sample.connections = s.connections;
  sample.lag_ms = s.lag_ns / 1'000'000;
  sample.leads = s.role == "leader";
  samples_.push_back(sample);
  if (samples_.size() > kSamples) samples_.pop_front();
}

nlohmann::json History::columns() const {
  const auto column = [this](auto value) {
    nlohmann::json list = nlohmann::json::array();
    for (const Sample& sample : samples_) list.push_back(value(sample));
    return list;
  };
  return {{"unix_ms", column([](const Sample& s) { return s.unix_ms; })},
          {"inputs_per_s", column([](const Sample& s) { return s.inputs_per_s; })},
          {"received_bytes_per_s", column([](const Sample& s) { return s.received_per_s; })},
          {"sent_bytes_per_s", column([](const Sample& s) { return s.sent_per_s; })},
          {"commit_p50_us", column([](const Sample& s) { return or_null(s.p50_us); })},
          {"commit_p99_us", column([](const Sample& s) { return or_null(s.p99_us); })},
          {"connections", column([](const Sample& s) { return s.connections; })},
          {"lag_ms", column([](const Sample& s) { return s.lag_ms; })},
          {"leads", column([](const Sample& s) { return s.leads; })}};
}

}  // namespace crane::node
