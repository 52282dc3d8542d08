// SPDX-License-Identifier: Apache-2.0
// Commit latencies on machines that are described by LogGP numbers; eval/papers/scale.py asks.
//
//   bench-scale < QUESTIONS > ANSWERS
//
// QUESTIONS is a JSON array of {rule, replicas, bytes, machine}, ANSWERS one of microseconds.
// Rules: mu, dare, apus (eval/strategies); core (consensus/core); dare_read; write_bound and
// read_bound (DARE's closed formulas).  A machine has read, write, write_inline and message, each
// [o us, L us, G us/KB], and G_m us/KB, o_p us, o_store us.  All of it is computed, not measured.
#include <cstdio>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "eval/papers/model.h"

namespace {

using namespace crane::eval;
using nlohmann::json;

constexpr unsigned kCoreEntries = 21;

double per_byte(double us_per_kb) { return us_per_kb * 1e6 / 1024; }

LogGp machine_of(const json& m) {
  const auto operation = [&](const char* name) {
    const json& o = m.at(name);
    return LogGp::Operation{us(o[0]), us(o[1]), per_byte(o[2])};
  };
  LogGp costs;
  costs.read = operation("read");
  costs.write = operation("write");
  costs.write_inline = operation("write_inline");
  costs.message = operation("message");
  costs.G_m = per_byte(m.at("G_m"));
  costs.o_p = us(m.at("o_p"));
  costs.o_store = us(m.at("o_store"));
  return costs;
}

Pico answer(const json& question) {
  const std::string rule = question.at("rule");
  const LogGp costs = machine_of(question.at("machine"));
  const std::uint8_t n = question.at("replicas");
  const std::size_t bytes = question.at("bytes");
  if (rule == "mu") return strategy_latency(Rule::kMu, costs, n, bytes);
  if (rule == "dare") return strategy_latency(Rule::kDare, costs, n, bytes);
  if (rule == "apus") return strategy_latency(Rule::kApus, costs, n, bytes);
  if (rule == "core") return core_latency(costs, n, bytes, kCoreEntries);
  if (rule == "dare_read") return dare_read_latency(costs, n);
  if (rule == "write_bound") return dare_write_bound(costs, n, bytes);
  if (rule == "read_bound") return dare_read_bound(costs, n);
  throw std::invalid_argument("no rule " + rule);
}

}  // namespace

int main() {
  try {
    json answers = json::array();
    for (const json& question : json::parse(std::cin)) {
      answers.push_back(static_cast<double>(answer(question)) / kMicro);
    }
    std::puts(answers.dump().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-scale: %s\n", error.what());
    return 2;
  }
  return 0;
}
