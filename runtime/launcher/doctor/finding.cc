// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "runtime/control/schema.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

std::ptrdiff_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [verdict](const Finding& f) { return f.verdict == verdict; });
}

std::string counted(std::ptrdiff_t count, const char* what) {
  return fmt::format("{} {} {}", count, count == 1 ? "thing is" : "things are", what);
}

// "costs: ..." in indented lines of at most kColumns.
std::string explained(const char* what, const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  if (text.empty()) return "";
  std::string lines, line = std::string(indent, ' ') + what;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line = std::string(indent + 1, ' ');
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

const char* name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kLimited:
      return "limited";
    case Verdict::kMissing:
      return "missing";
  }
  return "?";
}

Verdict Report::verdict() const {
  Verdict gravest = Verdict::kOk;
  for (const Finding& f : findings) gravest = std::max(gravest, f.verdict);
  return gravest;
}

std::string Report::headline() const {
  const auto missing = count_of(findings, Verdict::kMissing);
  const auto limited = count_of(findings, Verdict::kLimited);
  std::string line = subject + (missing != 0 ? " cannot run" : " can run");
  line += subject != kThisMachine ? " here" : missing != 0 ? " a group" : " groups";
  if (missing != 0) line += "; " + counted(missing, "missing");
  if (limited != 0) line += "; " + counted(limited, "limited");
  return line + (missing + limited == 0 ? "; all is well" : "");
}

std::string Report::text() const {
  std::size_t width = 0;
  for (const Finding& f : findings) width = std::max(width, f.area.size());
  constexpr std::size_t kBeforeArea = 11, kBehindArea = 2;
  std::string text = headline() + "\n\n";
  for (const Finding& f : findings) {
    text += fmt::format("  {:<7}  {:<{}}  {}\n", name(f.verdict), f.area, width, f.seen);
    const std::size_t indent = kBeforeArea + width + kBehindArea;
    text += explained("costs:", f.costs, indent) + explained("mend:", f.mend, indent);
  }
  return text;
}

Json Report::json() const {
  Json all = Json::array();
  for (const Finding& f : findings) {
    all.push_back({{"area", f.area},
                   {"verdict", name(f.verdict)},
                   {"seen", f.seen},
                   {"costs", or_null(f.costs)},
                   {"mend", or_null(f.mend)},
                   {"measures", f.measures}});
  }
  return {{"version", control::kVersion},
          {"subject", subject},
          {"verdict", name(verdict())},
          {"headline", headline()},
          {"findings", all}};
}

}  // namespace crane::launcher
