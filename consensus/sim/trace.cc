// SPDX-License-Identifier: Apache-2.0
#include "consensus/sim/trace.h"

#include <algorithm>

namespace crane::consensus::sim {

namespace {

constexpr std::size_t kLastMax = 40;

std::string formatted(const char* format, std::va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  return line;
}

std::string at(std::uint64_t now_ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%11.3f ms  ", static_cast<double>(now_ns) / 1e6);
  return text;
}

}  // namespace

Trace::Trace(std::FILE* out, bool all, unsigned replicas) : out_(out), all_(all), runs_(replicas) {}

void Trace::print(std::uint64_t now_ns, const std::string& line) {
  std::fprintf(out_, "%s%s\n", at(now_ns).c_str(), line.c_str());
}

void Trace::trace_line(std::uint64_t now_ns, const char* format, std::va_list arguments) {
  if (!is_enabled()) return;
  end_runs();
  print(now_ns, formatted(format, arguments));
}

void Trace::detail(std::uint64_t now_ns, const char* format, std::va_list arguments) {
  if (!is_enabled()) return;
  if (all_) return print(now_ns, formatted(format, arguments));
  last_.push_back(at(now_ns) + formatted(format, arguments));
  if (last_.size() > kLastMax) last_.pop_front();
}

void Trace::count(std::uint64_t now_ns, unsigned id, const char* what, std::uint64_t number) {
  if (!is_enabled()) return;
  auto& runs = runs_[id];
  auto run =
      std::find_if(runs.begin(), runs.end(), [what](const Run& r) { return r.what == what; });
  if (run == runs.end()) {
    runs.push_back({what, now_ns, number, number, 1});
    return;
  }
  run->last = number;
  ++run->times;
}

void Trace::end_runs() {
  for (std::size_t id = 0; id < runs_.size(); ++id) {
    for (const Run& r : runs_[id]) {
      std::string line = "replica " + std::to_string(id) + " " + r.what + " ";
      line += std::to_string(r.first);
      if (r.times > 1) {
        line += ".." + std::to_string(r.last) + " (" + std::to_string(r.times) + " times)";
      }
      print(r.begin_ns, line);
    }
    runs_[id].clear();
  }
}

void Trace::show_last() {
  if (!is_enabled() || all_) return;
  end_runs();
  std::fprintf(out_, "--- the last operations, one by one\n");
  for (const std::string& line : last_) std::fprintf(out_, "%s\n", line.c_str());
}

std::string text(View view) {
  if (view == View{0}) return "none";
  return std::to_string(view_counter(view)) + "." + std::to_string(value(view_owner(view)));
}

}  // namespace crane::consensus::sim
