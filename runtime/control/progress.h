// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a long operation is: for an operator as text, for programs as JSON.
//
// The time left follows from how fast the rest shrinks, not from how fast it is worked on, because
// the whole may grow meanwhile: a group adds entries while a replica runs those that it missed.
//
// Threads: one.  Pure: no clock, no I/O.

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::control {

struct Progress {
  std::uint64_t done = 0, of = 0;
  std::uint64_t per_s = 0;    // in the last seconds
  std::int64_t left_ms = -1;  // -1: not known
};

enum class Unit : std::uint8_t { kEntries, kBytes };
constexpr const char* name(Unit unit) noexcept {
  return unit == Unit::kEntries ? "entries" : "bytes";
}

// "12,400 of 24,272 entries, 3 s left", "1.2 GB of 3.4 GB, 35 %"; "": the whole is not known.
std::string text_of(const Progress& progress, Unit unit);
nlohmann::json to_json(const Progress& progress);
// Absent or invalid fields have their defaults.
Progress progress_in(const nlohmann::json& json);

// "12,400"
std::string grouped(std::uint64_t number);
// "12.3 MB"
std::string size_text(std::uint64_t bytes);

// Something that a replica does and that takes long.
struct Operation {
  std::string name;  // checkpoint, give, fetch
  std::string step;  // for an operator; may be empty
  Progress progress;
  Unit unit = Unit::kBytes;
};

class ProgressMeter {
 public:
  void step(std::uint64_t done, std::uint64_t of, std::int64_t now_ns) noexcept;
  Progress progress() const noexcept;

  static constexpr std::int64_t kEveryNs = 250'000'000;
  static constexpr std::size_t kSamples = 9;  // the last two seconds

 private:
  struct Sample {
    std::uint64_t done = 0, rest = 0;
    std::int64_t at_ns = 0;
  };
  std::uint64_t done_ = 0, of_ = 0;
  std::array<Sample, kSamples> samples_{};
  std::size_t used_ = 0;  // samples ever taken
};

}  // namespace crane::control
