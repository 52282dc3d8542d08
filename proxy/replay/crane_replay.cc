// SPDX-License-Identifier: Apache-2.0
// crane-replay: runs a replica's recorded history again, offline, and compares its server's actions
// with the recording.
#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "dmt/sequence/entry.h"
#include "proxy/analysis/follow.h"
#include "proxy/record/history_record.h"
#include "proxy/record/output_record.h"
#include "proxy/record/schedule_record.h"
#include "proxy/replay/replay_bisect.h"
#include "proxy/replay/replay_setup.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/version.h"

namespace {

using namespace crane;
using namespace crane::node;
using Json = nlohmann::json;
using setup::CommandLine;
using setup::Word;

constexpr const char* kFooter =
    "crane-replay bisect ONE OTHER names the first turn at which two recordings differ.\n"
    "Histories are recorded by crane-run --record DIR. The server runs in a container, "
    "directories\n"
    "and network of its own; the recorded group is neither contacted nor touched.\n"
    "Exit status: 0 equal, 1 different, 2 equal as far as it goes and the recording ends early,\n"
    "3 the recording cannot be used, 4 it cannot be replayed here, 5 the replay failed,\n"
    "100 the command line cannot be understood.";

struct Words {
  std::string directory, from, record, output = "text", perf, valgrind, log;
  int replica = -1;
  std::uint64_t to = 0;
  std::string place_dir, place_name;
  bool gdb = false, wait = false, verbose = false, trace = false, follow = false;
  std::vector<std::string> commands;
};

int end(ReplayStatus status) { return static_cast<int>(status); }

void complain(const std::string& text) {
  fmt::print(stderr, "crane-replay: cannot replay: {}\n", text);
}

std::string text_of(const std::optional<TurnRecord>& turn, const proxy::TurnNames& names) {
  return turn ? names.text(*turn) : "had already admitted the entry";
}

const char* name(ReplayStatus verdict) {
  return verdict == ReplayStatus::kEqual       ? "equal"
         : verdict == ReplayStatus::kDifferent ? "different"
                                               : "unknown";
}

void print_text(const ReplayReport& r, const LoadedRecording& loaded, bool in_valgrind) {
  if (r.difference) {
    fmt::print("{} log index {}: {}\n",
               r.difference->part == proxy::ReplayPart::kOutput ? "first difference after"
                                                                : "first difference at",
               r.difference->index, r.difference->text);
  }
  if (r.turn) {
    const proxy::TurnNames& names = loaded.schedule->names();
    fmt::print("first different turn: {}\n    here: {}\n    recorded: {}\n", r.turn->number,
               text_of(r.turn->sides[0], names), text_of(r.turn->sides[1], names));
  }
  if (r.difference && in_valgrind) {
    fmt::print(
        "valgrind's addresses and clock changed the server's behaviour; it got entries up to {}\n",
        r.last);
  }
  if (r.verdict == ReplayStatus::kEndsEarly) {
    fmt::print(
        "{}: the recording ends early (its replica was killed, or still runs): equal as far "
        "as it goes\n",
        loaded.history->file().path());
  }
  fmt::print(
      "replay {}: replica {}, entries {} to {}, {} log indexes, {} output bytes and {} "
      "digests compared{}; {:.1f} s of the group's time in {:.1f} s\n",
      name(r.verdict), loaded.replica, r.first, r.last, r.points, r.bytes, r.digests,
      r.rest_compared ? ", and at rest" : "", static_cast<double>(r.recorded_ns) / 1e9,
      static_cast<double>(r.took_ns) / 1e9);
}

void print_json(const ReplayReport& r, const LoadedRecording& loaded) {
  Json j{{"verdict", name(r.verdict)},
         {"replica", loaded.replica},
         {"first", r.first},
         {"last", r.last},
         {"compared", {{"indexes", r.points}, {"bytes", r.bytes}, {"digests", r.digests}}},
         {"equal_to", r.equal_to},
         {"at_rest", r.rest_compared},
         {"recorded_s", static_cast<double>(r.recorded_ns) / 1e9},
         {"took_s", static_cast<double>(r.took_ns) / 1e9},
         {"reports", r.valgrind.count},
         {"difference", nullptr},
         {"turn", nullptr}};
  if (r.difference)
    j["difference"] = {{"index", r.difference->index}, {"text", r.difference->text}};
  if (r.turn) {
    const proxy::TurnNames& names = loaded.schedule->names();
    j["turn"] = {{"number", r.turn->number},
                 {"here", text_of(r.turn->sides[0], names)},
                 {"recorded", text_of(r.turn->sides[1], names)}};
  }
  fmt::print("{}\n", j.dump(1, ' ', false, Json::error_handler_t::replace));
}

std::unique_ptr<ReplayTool> tool_of(const Words& words) {
  if (words.gdb || !words.commands.empty()) return make_gdb(words.commands);
  if (words.wait) return make_waiting_for_debugger();
  if (!words.perf.empty()) return make_perf(words.perf);
  return nullptr;
}

void print_reports(const Words& words, const ValgrindReports& reports) {
  std::FILE* file = words.log.empty() ? stderr : std::fopen(words.log.c_str(), "we");
  if (file == nullptr) {
    complain(words.log + ": " + std::strerror(errno) + "; name another file with --log");
    file = stderr;
  }
  fmt::print(file, "{}", reports.text);
  if (file != stderr) std::fclose(file);
  fmt::print(stderr, "crane-replay: {}: {} reports\n", words.valgrind, reports.count);
}

int replay(const Words& words) {
  LoadedRecording loaded;
  if (const auto problem = load_recording(words.directory, words.replica, loaded); !problem) {
    complain(problem.error().text);
    return end(status_of(problem));
  }
  ReplayRequest request;
  request.from = words.from;
  request.to = words.to;
  request.record = words.record;
  request.trace = words.trace;
  request.verbose = words.verbose;
  request.valgrind = words.valgrind;
  request.tool = tool_of(words);
  const ReplayReport report = run_replay(loaded, std::move(request));
  if (!words.valgrind.empty()) print_reports(words, report.valgrind);
  if (!report.problem) {
    complain(report.problem.error().text);
    return end(status_of(report.problem));
  }
  words.output == "json" ? print_json(report, loaded)
                         : print_text(report, loaded, !words.valgrind.empty());
  return end(report.verdict);
}

int follow(const Words& words) {
  FollowRequest request;
  request.directory = words.directory;
  request.replica = words.replica;
  request.valgrind = words.valgrind;
  request.log = words.log;
  request.place_dir = words.place_dir;
  request.place_name = words.place_name;
  request.json = words.output == "json";
  request.verbose = words.verbose;
  return end(follow_history(request));
}

// --- two recordings ---------------------------------------------------------------------------

std::string text_of(const std::optional<proxy::SchedulePoint>& p) {
  return p ? fmt::format("clock {}, hash {:016x}", p->clock, p->hash) : "did not admit it";
}

int print_bisection(const BisectReport& r, const std::string (&named)[2]) {
  if (!r.comparison.difference) {
    for (const auto& why : r.comparison.unknown) fmt::print("{}\n", why);
    fmt::print("schedule {}: {} log indexes compared, {} to {}\n", name(r.comparison.verdict),
               r.comparison.common, r.comparison.first, r.comparison.last);
    return end(r.comparison.verdict == proxy::Verdict::kEqual ? ReplayStatus::kEqual
                                                              : ReplayStatus::kEndsEarly);
  }
  const proxy::ScheduleDifference& d = *r.comparison.difference;
  fmt::print("first difference {} log index {}\n", d.at_rest ? "at rest after" : "at", d.index);
  for (std::size_t i = 0; i < 2; ++i) fmt::print("    {}: {}\n", named[i], text_of(d.sides[i]));
  if (r.turn) {
    fmt::print("first different turn: {}\n", r.turn->number);
    for (std::size_t i = 0; i < 2; ++i) fmt::print("    {}: {}\n", named[i], r.sides[i]);
  } else {
    fmt::print("first different turn: unknown: {}\n", r.why_not);
  }
  return end(ReplayStatus::kDifferent);
}

std::string version() {
  return setup::version_text({{"entry", kEntryFormatVersion},
                              {"recording", proxy::kRecordingVersion},
                              {"schedule file", proxy::kScheduleVersion},
                              {"history", proxy::kHistoryVersion}});
}

// The exit status of a program that ends after its command line; nullopt: continue.
std::optional<int> status_after(const setup::Program& program, int argc, char** argv) {
  const auto report = [&program](const std::string& mistake) {
    complain("command line: " + mistake + "; see " + program.command.name + " --help");
  };
  return CommandLine(program).status_after(argc, argv, end(ReplayStatus::kUsage), report);
}

int bisect_main(int argc, char** argv) {
  std::string named[2];
  bool verbose = false;
  const setup::Program program{
      {"crane-replay bisect",
       "Names the first turn at which two replicas' recordings differ.",
       {{"one",
         &named[0],
         "a replica's recording: DIR/replica-0.schedule, or a DIR",
         {.required = true}},
        {"other", &named[1], "the recording to compare it with", {.required = true}},
        {"-v,--verbose", Word::Flag{&verbose}, "show the logs of the nodes"}}},
      version(),
      "If the recordings have no turns (crane-run --trace), both histories run again up to the\n"
      "first log index that differs. Exit status: 0 equal, 1 different, 2 nothing to compare,\n"
      "3 a recording cannot be used, 100 the command line cannot be understood."};
  if (const auto status = status_after(program, argc, argv)) return *status;
  const BisectReport report = bisect(named[0], named[1], verbose);
  if (report.problem.ok()) return print_bisection(report, named);
  complain(report.problem.error().text);
  return end(status_of(report.problem));
}

std::vector<Word> words_of(Words& w) {
  return {
      {"recording", &w.directory, "the DIR of crane-run --record", {.required = true}},
      {"--replica",
       &w.replica,
       "the replica to replay (default: the first with a whole history)",
       {.bounds = {{0, 126}}}},
      {"--from", &w.from, "start, or a checkpoint: its directory or VIEW.INDEX"},
      {"--to", &w.to, "the last entry of the log that the server gets"},
      {"--record", &w.record, "record the replay, for crane-diff"},
      {"--trace", Word::Flag{&w.trace}, "with --record: every turn"},
      {"--gdb", Word::Flag{&w.gdb}, "attach gdb before the server's first operation"},
      {"--gdb-commands",
       &w.commands,
       "the same in a batch, with commands of FILE",
       {.is_file = true}},
      {"--wait", Word::Flag{&w.wait}, "the same with any debugger, once it attaches"},
      {"--perf", &w.perf, "perf record into FILE", {.excludes = {"--gdb", "--wait"}}},
      {"--valgrind",
       &w.valgrind,
       "run the server in it; memcheck or helgrind",
       {.choices = {"memcheck", "helgrind"}, .excludes = {"--gdb", "--wait"}}},
      {"--log", &w.log, "with --valgrind: FILE for its reports"},
      {"--follow",
       Word::Flag{&w.follow},
       "with --valgrind and --replica: follow a history that is still being recorded",
       {.needs = {"--valgrind", "--replica"}, .excludes = {"--from", "--to", "--record"}}},
      {"--place-dir", &w.place_dir, ""},
      {"--place-name", &w.place_name, ""},
      {"-o,--output", &w.output, "text or json", {.choices = {"text", "json"}}},
      {"-v,--verbose", Word::Flag{&w.verbose}, "show the log of the node"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  setup::set_program("crane-replay");
  ::signal(SIGPIPE, SIG_IGN);
  if (argc > 1 && std::string_view(argv[1]) == "bisect") return bisect_main(argc - 1, argv + 1);
  Words words;
  const setup::Program program{
      {"crane-replay",
       "Runs a replica's recorded history again, offline and as fast as its server can.",
       words_of(words)},
      version(),
      kFooter};
  if (const auto status = status_after(program, argc, argv)) return *status;
  return words.follow ? follow(words) : replay(words);
}
