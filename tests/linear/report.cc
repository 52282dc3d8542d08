// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace crane::linear {
namespace {

using Operations = std::vector<Operation>;

constexpr std::size_t kBefore = 4;  // operations shown from before the window
constexpr std::size_t kStatesShown = 8;
constexpr std::size_t kWindowShown = 24;  // operations

// The history as known at that moment: later answers had not arrived yet.
Operations until(const Operations& all, std::uint64_t moment_ns) {
  Operations some;
  for (const Operation& op : all) {
    if (op.called_ns > moment_ns) continue;
    some.push_back(op);
    if (op.returned_ns > moment_ns) some.back().returned_ns = kOpen;
  }
  return some;
}

bool fails(const Operations& operations, const Limits& limits) {
  return check(operations, limits).verdict == Verdict::kViolation;
}

std::vector<std::uint64_t> returns_of(const Operations& operations) {
  std::vector<std::uint64_t> moments;
  for (const Operation& op : operations) {
    if (!op.open()) moments.push_back(op.returned_ns);
  }
  std::sort(moments.begin(), moments.end());
  return moments;
}

std::string text(const State& state, Model model) {
  if (model == Model::kList) return fmt::format("[{}]", fmt::join(state.items, ","));
  return state.value == kNil ? "nil" : std::to_string(state.value);
}

std::string milliseconds(std::uint64_t at_ns, std::uint64_t origin_ns) {
  return fmt::format("{:+.3f}",
                     (static_cast<double>(at_ns) - static_cast<double>(origin_ns)) / 1e6);
}

void describe(std::string& to, const Operation& op, std::uint64_t origin_ns, const char* mark) {
  std::string asked = name(op.action);
  if (op.action == Action::kSet || op.action == Action::kPush) {
    asked += fmt::format(" {}", op.argument);
  }
  std::string last_answer = "ok";
  if (op.open()) {
    last_answer = "? (no answer: may have happened)";
  } else if (op.action == Action::kRange) {
    last_answer = fmt::format("[{}]", fmt::join(op.items, ","));
  } else if (op.action != Action::kSet) {
    last_answer = op.result == kNil ? "nil" : std::to_string(op.result);
  }
  fmt::format_to(std::back_inserter(to), "    client {:<5} {:<12} -> {:<8} [{} .. {}] ms{}\n",
                 op.client, asked, last_answer, milliseconds(op.called_ns, origin_ns),
                 op.open() ? "" : milliseconds(op.returned_ns, origin_ns), mark);
}

// Removes the reads that are not needed, oldest first.
void leave_reads_out(Operations& operations, std::uint64_t last_ns, const Limits& limits) {
  for (std::size_t i = 0; i < operations.size();) {
    const Operation op = operations[i];
    const auto place = operations.begin() + static_cast<std::ptrdiff_t>(i);
    if (op.reads()) {
      operations.erase(place);
      if (op.open() || (op.returned_ns != last_ns && fails(operations, limits))) continue;
      operations.insert(operations.begin() + static_cast<std::ptrdiff_t>(i), op);
    }
    ++i;
  }
}

// The latest moment before the call of `last` at which only open operations were in progress.
std::uint64_t last_quiet(const Operations& operations, const Operation& last) {
  std::uint64_t best = 0;
  for (const Operation& candidate : operations) {
    const std::uint64_t at = candidate.returned_ns;
    if (candidate.open() || at >= last.called_ns || at <= best) continue;
    const bool quiet =
        std::none_of(operations.begin(), operations.end(), [at](const Operation& op) {
          return !op.open() && op.called_ns <= at && op.returned_ns > at;
        });
    if (quiet) best = at;
  }
  return best;
}

}  // namespace

Window failing_window(const KeyHistory& key, const Limits& limits) {
  Window w;
  const std::vector<std::uint64_t> moments = returns_of(key.operations);
  const auto first = std::partition_point(moments.begin(), moments.end(), [&](std::uint64_t at) {
    return !fails(until(key.operations, at), limits);
  });
  if (first == moments.end()) return w;
  w.at_ns = *first;
  w.answers = static_cast<std::size_t>(first - moments.begin()) + 1;
  Operations all = until(key.operations, w.at_ns);
  leave_reads_out(all, w.at_ns, limits);
  std::sort(all.begin(), all.end(),
            [](const Operation& a, const Operation& b) { return a.called_ns < b.called_ns; });
  const Operation last = *std::find_if(
      all.begin(), all.end(), [&](const Operation& op) { return op.returned_ns == w.at_ns; });
  const std::uint64_t quiet = last_quiet(all, last);
  Operations before, window;
  for (const Operation& op : all) (op.called_ns <= quiet ? before : window).push_back(op);

  w.size = window.size();
  w.text = fmt::format("{} {}: answer {} of {} cannot be explained by any order\n", name(key.model),
                       key.key, w.answers, moments.size());
  std::vector<std::string> left;
  for (const State& s : states_after(before, kStatesShown, limits)) {
    left.push_back(text(s, key.model));
  }
  const std::size_t shown = std::min(before.size(), kBefore);
  if (shown > 0) {
    fmt::format_to(std::back_inserter(w.text), "  before the window, the last {} of {}:\n", shown,
                   before.size());
  }
  for (std::size_t i = before.size() - shown; i < before.size(); ++i) {
    describe(w.text, before[i], last.called_ns, "");
  }
  fmt::format_to(std::back_inserter(w.text), "  then it held {}; the window:\n",
                 left.empty() ? "?" : fmt::format("{}", fmt::join(left, " or ")));
  // The middle of a long window is the least useful.
  const std::size_t hidden = window.size() > kWindowShown ? window.size() - kWindowShown : 0;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const Operation& op = window[i];
    const bool culprit = op.returned_ns == last.returned_ns;
    const bool middle = i >= kWindowShown / 2 && i < kWindowShown / 2 + hidden;
    if (middle && i == kWindowShown / 2) {
      fmt::format_to(std::back_inserter(w.text), "    ... {} operations ...\n", hidden);
    }
    if (middle && !culprit) continue;
    describe(w.text, op, last.called_ns, culprit ? "  <-- no order gives this" : "");
  }
  return w;
}

}  // namespace crane::linear
