// SPDX-License-Identifier: Apache-2.0
// crane-diff: are the recorded outputs, or schedules, of a group's replicas equal?
// Exit status: 0 equal, 1 different, 2 cannot tell: no verdict, a file that cannot be read, a
// command line that cannot be understood.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "dmt/base/join.h"
#include "proxy/record/output_compare.h"
#include "proxy/record/output_record.h"
#include "proxy/record/schedule_compare.h"
#include "proxy/record/schedule_record.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/version.h"

namespace {

namespace fs = std::filesystem;
using namespace crane;
using namespace crane::proxy;
using Json = nlohmann::json;
using setup::CommandLine;
using setup::Word;

constexpr int kEqual = 0, kDifferent = 1, kUndecided = 2, kCommandLine = 100;

constexpr const char* kFooter =
    "Recordings are made by crane-run --record DIR. Connections are numbered by their place in "
    "the\n"
    "group's log, so the same number is the same client on every replica. --schedule compares\n"
    "logical clock and schedule hash at every entry of the log that they all admitted.\n"
    "Exit status: 0 equal, 1 different, 2 unknown or cannot read.";

void complain(const std::string& object, const std::string& cause, const std::string& todo) {
  fmt::print(stderr, "crane-diff: cannot compare: {}: {}; {}\n", object, cause, todo);
}

std::string cause_of(const Error& error, std::uint32_t version) {
  if (error.code == Code::kSystem) return std::generic_category().message(error.detail);
  if (error.code == Code::kWrongVersion) {
    return fmt::format("recorded by another version of Crane (format {}, this one reads {})",
                       error.detail, version);
  }
  return error.what;
}

// A directory stands for the recordings in it, in the order of their replicas.
bool expand(const std::vector<std::string>& named, const char* suffix,
            std::vector<std::string>& paths) {
  for (const auto& name : named) {
    std::error_code error;
    const fs::file_status found = fs::status(name, error);
    if (!fs::exists(found)) {
      complain(name, error.message(), "name a recording, or the DIR of crane-run --record");
      return false;
    }
    if (!fs::is_directory(found)) {
      paths.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(name, error)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with("replica-") && file.ends_with(suffix)) {
        inside.push_back(entry.path().string());
      }
    }
    if (error || inside.empty()) {
      complain(name,
               error ? error.message() : fmt::format("holds no recording (replica-*{})", suffix),
               "name the DIR that was given to crane-run --record");
      return false;
    }
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  if (paths.size() >= 2) return true;
  complain(paths.empty() ? "nothing" : paths[0], "one recording alone cannot differ",
           "name at least two, or a directory with several");
  return false;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const auto b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::string printable(const std::vector<std::byte>& bytes, std::size_t from, std::size_t count) {
  std::string text;
  for (std::size_t i = from; i < std::min(bytes.size(), from + count); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    text += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '.';
  }
  return text;
}

// Prints sixteen bytes per line, and marks the first different byte.
void dump(const std::vector<std::byte>& bytes, std::uint64_t start, std::uint64_t mark) {
  if (start + bytes.size() <= mark) fmt::print("    (the output ends at byte {})\n", mark);
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    std::string digits;
    for (std::size_t i = line; i < std::min(bytes.size(), line + 16); ++i) {
      digits += start + i == mark ? '>' : ' ';
      digits += fmt::format("{:02x}", static_cast<unsigned>(bytes[i]));
    }
    fmt::print("    {:>10} {:<48}  |{}|\n", start + line, digits, printable(bytes, line, 16));
  }
}

void print_difference(const Difference& d, const std::vector<Recording>& all) {
  const std::string &left = all[d.left].path(), &right = all[d.right].path();
  if (d.kind == DifferenceKind::kEndsEarly) {
    fmt::print(
        "{}: {}{}\n", right, d.right_text,
        all[d.right].end() == RecordingEnd::kEndsEarly ? "; --prefix compares what it holds" : "");
    return;
  }
  const std::string connection = all[d.left].name_of(d.conn);
  if (d.kind != DifferenceKind::kBytes && d.kind != DifferenceKind::kLength) {
    fmt::print("{}: {}\n    {}: {}\n    {}: {}\n", connection, name(d.kind), left, d.left_text,
               right, d.right_text);
    return;
  }
  fmt::print("{}: first difference at byte {}{}\n", connection, d.offset,
             d.kind == DifferenceKind::kLength ? ", where one ends" : "");
  fmt::print("  {}\n", left);
  dump(d.left_bytes, d.context_offset, d.offset);
  fmt::print("  {}\n", right);
  dump(d.right_bytes, d.context_offset, d.offset);
}

void print_text(const Comparison& c, const std::vector<Recording>& all) {
  for (const auto& d : c.differences) print_difference(d, all);
  const std::string sizes =
      joined(c.bytes, [](std::uint64_t bytes) { return std::to_string(bytes); });
  if (c.shorter > 0) {
    fmt::print(
        "{} connections are cut short by a recording that ends early: equal as far as it "
        "goes\n",
        c.shorter);
  }
  if (c.equal()) {
    fmt::print("equal: {} recordings, {} connections, output bytes {}\n", c.recordings,
               c.connections, sizes);
  } else {
    fmt::print("different: {} of {} connections in {} recordings, output bytes {}\n", c.different,
               c.connections, c.recordings, sizes);
  }
}

Json to_json(const Difference& d, const std::vector<Recording>& all) {
  Json j{{"kind", name(d.kind)}, {"left", all[d.left].path()}, {"right", all[d.right].path()}};
  if (d.kind != DifferenceKind::kEndsEarly) j["connection"] = d.conn;
  if (d.kind == DifferenceKind::kBytes || d.kind == DifferenceKind::kLength) {
    j["offset"] = d.offset;
    j["context_offset"] = d.context_offset;
    j["left_hex"] = hex(d.left_bytes);
    j["right_hex"] = hex(d.right_bytes);
    j["left_text"] = printable(d.left_bytes, 0, d.left_bytes.size());
    j["right_text"] = printable(d.right_bytes, 0, d.right_bytes.size());
  } else {
    j["left_says"] = d.left_text;
    j["right_says"] = d.right_text;
  }
  return j;
}

void print_json(const Comparison& c, const std::vector<Recording>& all) {
  Json j{{"equal", c.equal()},   {"connections", c.connections}, {"different", c.different},
         {"shorter", c.shorter}, {"recordings", Json::array()},  {"differences", Json::array()}};
  for (const auto& r : all) {
    j["recordings"].push_back({{"path", r.path()},
                               {"replica", r.replica()},
                               {"bytes", r.bytes()},
                               {"connections", r.connections().size()},
                               {"ends_early", r.ends_early()}});
  }
  for (const auto& d : c.differences) j["differences"].push_back(to_json(d, all));
  fmt::print("{}\n", j.dump(1));
}

// --- schedules -------------------------------------------------------------------------------

std::string text_of(const std::optional<SchedulePoint>& p) {
  return p ? fmt::format("clock {}, hash {:016x}", p->clock, p->hash) : "did not admit it";
}

constexpr std::uint64_t kTurnsShown = 3;  // before the one that differs

std::string text_of(const std::optional<TurnRecord>& t, const RecordedSchedule& from) {
  return t ? from.names().text(*t) : "had admitted the entry already";
}

void print_text(const TurnDifference& d, const std::vector<RecordedSchedule>& all) {
  fmt::print("first different turn: {}\n", d.number);
  for (std::size_t i = 0; i < all.size(); ++i) {
    fmt::print("    {}: {}\n", all[i].file().path(), text_of(d.sides[i], all[i]));
  }
  // The turns before it, which are the same on all sides.
  for (std::uint64_t n = d.number - std::min<std::uint64_t>(d.number - 1, kTurnsShown);
       n < d.number; ++n) {
    if (const auto turn = all[0].turn(n)) {
      fmt::print("    turn {}, equal: {}\n", n, text_of(turn, all[0]));
    }
  }
}

void print_text(const ScheduleComparison& c, const std::vector<RecordedSchedule>& all) {
  if (c.difference) {
    const ScheduleDifference& d = *c.difference;
    fmt::print("first difference {} log index {}\n", d.at_rest ? "at rest after" : "at", d.index);
    for (std::size_t i = 0; i < all.size(); ++i) {
      fmt::print("    {}: {}\n", all[i].file().path(), text_of(d.sides[i]));
    }
    if (d.equal_before && !d.at_rest) {
      fmt::print("    equal before: log index {}, {}\n", d.equal_before->index,
                 text_of(d.equal_before));
    }
  }
  if (c.turn) print_text(*c.turn, all);
  for (const auto& why : c.unknown) fmt::print("{}\n", why);
  const std::string compared =
      c.common == 0
          ? "nothing compared"
          : fmt::format("{} recordings, {} log indexes compared, {} to {}{}", all.size(), c.common,
                        c.first, c.last, c.rest_compared ? " and at rest after it" : "");
  fmt::print(
      "schedule {}: {}{}\n", name(c.verdict), compared,
      c.verdict == Verdict::kUnknown && c.common > 0 ? ", all equal; --prefix accepts that" : "");
}

Json to_json(const std::optional<SchedulePoint>& p) {
  if (!p) return nullptr;
  return {{"index", p->index}, {"clock", p->clock}, {"hash", fmt::format("{:016x}", p->hash)}};
}

void print_json(const ScheduleComparison& c, const std::vector<RecordedSchedule>& all) {
  Json j{{"verdict", name(c.verdict)},
         {"compared", c.common},
         {"first", c.first},
         {"last", c.last},
         {"at_rest", c.rest_compared},
         {"unknown", c.unknown},
         {"recordings", Json::array()},
         {"difference", nullptr}};
  for (const auto& r : all) {
    j["recordings"].push_back({{"path", r.file().path()},
                               {"replica", r.file().replica()},
                               {"points", r.size()},
                               {"last", r.last()},
                               {"ends_early", r.file().ends_early()}});
  }
  if (c.difference) {
    Json sides = Json::array();
    for (const auto& side : c.difference->sides) sides.push_back(to_json(side));
    j["difference"] = {{"index", c.difference->index},
                       {"at_rest", c.difference->at_rest},
                       {"sides", sides},
                       {"equal_before", to_json(c.difference->equal_before)}};
  }
  if (c.turn) {
    Json sides = Json::array();
    for (std::size_t i = 0; i < all.size(); ++i) sides.push_back(text_of(c.turn->sides[i], all[i]));
    j["turn"] = {{"number", c.turn->number}, {"sides", sides}};
  }
  fmt::print("{}\n", j.dump(1));
}

// --- running ---------------------------------------------------------------------------------

// Opens the named recordings; empty after a complaint.
template <typename Kind>
std::vector<Kind> open_all(const std::vector<std::string>& named, const char* suffix,
                           std::uint32_t version) {
  std::vector<std::string> paths;
  std::vector<Kind> recordings;
  if (!expand(named, suffix, paths)) return recordings;
  for (const auto& path : paths) {
    auto recording = Kind::open(path);
    if (!recording.ok()) {
      complain(path, cause_of(recording.error(), version),
               "name files that crane-run --record wrote");
      return {};
    }
    recordings.push_back(std::move(recording).value());
  }
  return recordings;
}

int diff_schedules(const std::vector<std::string>& named, bool prefix, bool json) {
  const auto all = open_all<RecordedSchedule>(named, ".schedule", kScheduleVersion);
  if (all.empty()) return kUndecided;
  const ScheduleComparison c = compare_schedules(all, prefix);
  json ? print_json(c, all) : print_text(c, all);
  return c.verdict == Verdict::kEqual       ? kEqual
         : c.verdict == Verdict::kDifferent ? kDifferent
                                            : kUndecided;
}

int diff_outputs(const std::vector<std::string>& named, const CompareOptions& options, bool json) {
  const auto all = open_all<Recording>(named, ".out", kRecordingVersion);
  if (all.empty()) return kUndecided;
  const Comparison comparison = compare(all, options);
  json ? print_json(comparison, all) : print_text(comparison, all);
  return comparison.equal() ? kEqual : kDifferent;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> named;
  std::string format = "text";
  CompareOptions options;
  bool schedule = false;
  const setup::Program program{
      {"crane-diff",
       "Compares the recorded outputs of a group's replicas, connection by connection.",
       {{"recordings", &named, "recordings, or a directory with replica-*.out", {.required = true}},
        {"--schedule", Word::Flag{&schedule},
         "compare schedules (replica-*.schedule), not outputs"},
        {"-o,--output", &format, "text or json", {.choices = {"text", "json"}}},
        {"--prefix", Word::Flag{&options.prefix},
         "a replica that was killed may have less: compare what it has"},
        {"--context", &options.context_bytes, "bytes shown on each side (default {})"},
        {"--limit", &options.differences_max, "differences listed (default {})"}}},
      setup::version_text({{"recording", kRecordingVersion}, {"schedule file", kScheduleVersion}}),
      kFooter};
  const auto report = [](const std::string& mistake) {
    complain("command line", mistake, "see crane-diff --help");
  };
  if (const auto status = CommandLine(program).status_after(argc, argv, kCommandLine, report)) {
    return *status;
  }
  const bool json = format == "json";
  return schedule ? diff_schedules(named, options.prefix, json)
                  : diff_outputs(named, options, json);
}
