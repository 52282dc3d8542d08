// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/line_up.h"

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

bool parse_line_up(const std::string& text, LineUp& line_up) {
  const auto first = text.find(':');
  const auto second = first == std::string::npos ? first : text.find(':', first + 1);
  if (second == std::string::npos) return false;
  line_up.function = text.substr(0, first);
  return is_name(line_up.function) &&
         read_number(text.substr(first + 1, second - first - 1), kCountMost, line_up.count) &&
         line_up.count >= 1 &&
         read_number(text.substr(second + 1), kTimeoutMostUs, line_up.timeout_us);
}

std::string text_of(const LineUp& l) {
  return l.function + ":" + std::to_string(l.count) + ":" + std::to_string(l.timeout_us);
}

Outcome check_line_ups(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    LineUp ignored;
    if (parse_line_up(word, ignored)) continue;
    return failure(Status::kUsage, "--line-up", word, "not a function, a count and a time",
                   "write it as FUNCTION:8:5000 (threads, microseconds)");
  }
  if (words.size() > dmt::kLineUpPointsMax) {
    return failure(Status::kUsage, "--line-up", words[dmt::kLineUpPointsMax],
                   "there are " + std::to_string(words.size()) + " of them",
                   "name at most " + std::to_string(dmt::kLineUpPointsMax) + " functions");
  }
  return Done{};
}

std::vector<LineUp> chosen_line_ups(const std::vector<std::string>& words, const Profile& profile,
                                    bool parallel) {
  std::vector<LineUp> all;
  for (const auto& word : words) {
    LineUp l;
    if (!parse_line_up(word, l)) continue;
    l.origin = "--line-up";
    all.push_back(std::move(l));
  }
  for (const LineUp& l : profile.line_ups) {
    const bool named = std::any_of(
        all.begin(), all.end(), [&](const LineUp& other) { return other.function == l.function; });
    if (!parallel || named || all.size() == dmt::kLineUpPointsMax) continue;
    all.push_back(l);
    all.back().origin = "the profile " + profile.name;
  }
  return all;
}

}  // namespace crane::setup
