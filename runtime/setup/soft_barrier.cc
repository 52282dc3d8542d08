// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/soft_barrier.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "dmt/tuning.h"
#include "runtime/setup/profile.h"

namespace crane::setup {
namespace {

constexpr std::uint32_t kCountMost = dmt::kSlotsMax;
constexpr std::uint32_t kTimeoutMostUs = 1'000'000'000;

bool read_number(const std::string& text, std::uint32_t most, std::uint32_t& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end && number <= most;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() < dmt::kFunctionNameBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$';
         });
}

}  // namespace

bool parse_soft_barrier(const std::string& text, SoftBarrier& soft_barrier) {
  const auto first = text.find(':');
  const auto second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second == std::string::npos) return false;
  soft_barrier.function = text.substr(0, first);
  return is_name(soft_barrier.function) &&
         read_number(text.substr(first + 1, second - first - 1), kCountMost, soft_barrier.count) &&
         soft_barrier.count >= 1 &&
         read_number(text.substr(second + 1), kTimeoutMostUs, soft_barrier.timeout_us);
}

std::string text_of(const SoftBarrier& l) {
  return l.function + ":" + std::to_string(l.count) + ":" + std::to_string(l.timeout_us);
}

Outcome check_soft_barriers(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    SoftBarrier ignored;
    if (parse_soft_barrier(word, ignored)) continue;
    return failure(Status::kUsage, "--soft-barrier", word, "not a function, a count and a time",
                   "write it as FUNCTION:8:5000 (threads, microseconds)");
  }
  if (words.size() > dmt::kSoftBarrierPointsMax) {
    return failure(Status::kUsage, "--soft-barrier", words[dmt::kSoftBarrierPointsMax],
                   "there are " + std::to_string(words.size()) + " functions",
                   "name at most " + std::to_string(dmt::kSoftBarrierPointsMax) + " functions");
  }
  return Done{};
}

std::vector<SoftBarrier> chosen_soft_barriers(const std::vector<std::string>& words,
                                              const Profile& profile, bool parallel) {
  std::vector<SoftBarrier> all;
  for (const auto& word : words) {
    SoftBarrier l;
    if (!parse_soft_barrier(word, l)) continue;
    l.origin = "--soft-barrier";
    all.push_back(std::move(l));
  }
  for (const SoftBarrier& l : profile.soft_barriers) {
    const bool named = std::any_of(all.begin(), all.end(), [&](const SoftBarrier& other) {
      return other.function == l.function;
    });
    if (!parallel || named || all.size() == dmt::kSoftBarrierPointsMax) continue;
    all.push_back(l);
    all.back().origin = "the profile " + profile.name;
  }
  return all;
}

}  // namespace crane::setup
