// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/control/schema.h"

namespace crane::control {
namespace {

std::string left_text(std::int64_t ms) {
  if (ms < 1000) return "less than 1 s left";
  const std::int64_t s = (ms + 500) / 1000;
  return (s < 120 ? std::to_string(s) + " s" : std::to_string((s + 30) / 60) + " min") + " left";
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  double size = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; size >= 999.95 && unit + 1 < std::size(kUnits); size /= 1000) ++unit;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string text_of(const Progress& p, Unit unit) {
  if (p.of == 0) return "";
  std::string text;
  if (unit == Unit::kEntries) {
    text = grouped(p.done) + " of " + grouped(p.of) + " entries";
  } else {
    const std::uint64_t percent = static_cast<std::uint64_t>(
        100.0 * static_cast<double>(std::min(p.done, p.of)) / static_cast<double>(p.of));
    text = std::to_string(percent) + " %, " + size_text(p.done) + " of " + size_text(p.of);
  }
  return p.left_ms < 0 ? text : text + ", " + left_text(p.left_ms);
}

nlohmann::json to_json(const Progress& p) {
  return {{"done", p.done},
          {"of", p.of},
          {"per_s", p.per_s},
          {"left_ms", p.left_ms < 0 ? nlohmann::json() : nlohmann::json(p.left_ms)}};
}

Progress progress_in(const nlohmann::json& json) {
  Progress p{number_in(json, "done"), number_in(json, "of"), number_in(json, "per_s")};
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t left = number_in(json, "left_ms", kMost);
  if (left < kMost) p.left_ms = static_cast<std::int64_t>(left);
  return p;
}

void ProgressMeter::step(std::uint64_t done, std::uint64_t of, std::int64_t now_ns) noexcept {
  if (done < done_) *this = {};  // the next step of an operation
  done_ = done;
  of_ = std::max(of, done);
  if (used_ != 0 && now_ns - samples_[(used_ - 1) % kSamples].at_ns < kEveryNs) return;
  samples_[used_++ % kSamples] = {done_, of_ - done_, now_ns};
}

Progress ProgressMeter::progress() const noexcept {
  Progress p{done_, of_};
  if (used_ < 2) return p;
  const Sample& now = samples_[(used_ - 1) % kSamples];
  const Sample& then = samples_[used_ <= kSamples ? 0 : used_ % kSamples];
  const double seconds = static_cast<double>(now.at_ns - then.at_ns) / 1e9;
  p.per_s = static_cast<std::uint64_t>(static_cast<double>(now.done - then.done) / seconds);
  const std::uint64_t rest = of_ - done_;
  if (rest == 0) p.left_ms = 0;
  if (then.rest <= now.rest || rest == 0) return p;
  const double shrinks = static_cast<double>(then.rest - now.rest) / seconds;
  p.left_ms = static_cast<std::int64_t>(static_cast<double>(rest) * 1000 / shrinks);
  return p;
}

}  // namespace crane::control
