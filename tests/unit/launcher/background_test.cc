// SPDX-License-Identifier: Apache-2.0
// GOAL    A group in the background: its command line, the report to the process that the user
//         started, its signals, and the files with which its crane-run reports about itself.
// METHOD  Plain functions; real signals, files and child processes of the test.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/launcher/ctl/starter.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/run/background.h"
#include "runtime/launcher/run/end_signals.h"
#include "runtime/launcher/run_files.h"
#include "runtime/setup/messages.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/crane-background-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path + "/" + name);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

Parsed parse(std::vector<const char*> words, Options& options, Outcome& problem) {
  words.insert(words.begin(), "crane-run");
  return parse_options(static_cast<int>(words.size()), words.data(), options, problem);
}

bool has_hang_up() {
  const sigset_t set = end_signals();
  return sigismember(&set, SIGHUP) == 1;
}

// Runs `body` in a child process; returns its exit status.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("--detach without a value starts a group in the background", "[launcher]") {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--background", "--", "redis-server"},
        {"--detach", "--", "redis-server"},
        {"--detach", "-n", "3", "--", "redis-server"},
        {"--detach", "fsync", "--detach", "--", "redis-server", "--detach"}}) {
    Options o;
    Outcome p = Done{};
    REQUIRE(parse(words, o, p) == Parsed::kRun);
    CHECK(o.background);
    CHECK(o.program[0] == "redis-server");
    CHECK(std::find(o.words.begin(), o.words.end(), "--background") != o.words.end());
  }
}

TEST_CASE("--detach with a value is about the server's threads", "[launcher]") {
  Options o;
  Outcome p = Done{};
  REQUIRE(parse({"--detach", "computation", "--", "apache2", "--detach", "-x"}, o, p) ==
          Parsed::kRun);
  CHECK_FALSE(o.background);
  CHECK(o.detach == std::vector<std::string>{"computation"});
  CHECK(o.program == std::vector<std::string>{"apache2", "--detach", "-x"});
  Options wrong;
  CHECK(parse({"--detach", "computaton", "--", "apache2"}, wrong, p) == Parsed::kProblem);
}

TEST_CASE("a group of several hosts, or one that is stopped, has no background", "[launcher]") {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--detach", "--hosts", "a,b,c", "--", "redis-server"},
        {"--detach", "--stop", "--name", "shop"}}) {
    Options o;
    Outcome p = Done{};
    CHECK(parse(words, o, p) == Parsed::kProblem);
    CHECK(setup::status_of(p) == setup::Status::kUsage);
  }
}

TEST_CASE("a report through the pipe keeps its content", "[launcher]") {
  const auto up = parse_report(text_of(StartReport{true, 0, "two\nlines\n"}));
  REQUIRE(up);
  CHECK(up->up);
  CHECK(up->text == "two\nlines\n");
  for (const int status : {0, 1, 105, 143}) {
    const auto ended = parse_report(text_of(StartReport{false, status, {}}));
    REQUIRE(ended);
    CHECK_FALSE(ended->up);
    CHECK(ended->status == status);
  }
  for (const char* damaged : {"", "E", "E\n", "E10", "Ex\n", "E1x\n", "?1\n"}) {
    CAPTURE(damaged);
    CHECK_FALSE(parse_report(damaged));
  }
}

TEST_CASE("the introduction names directory, log and three commands", "[launcher]") {
  const std::string text = introduction_of("/run/crane/shop");
  for (const char* part :
       {"group shop runs", "/run/crane/shop\n", "/run/crane/shop/runtime.log",
        "crane-ctl status shop", "crane-ctl logs -f shop", "crane-ctl stop shop"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the first process ends as the one in the background reports", "[launcher]") {
  const auto start = [](int status) {
    return in_child([status] {
      Background background;
      if (const auto first = background.leave()) return *first;
      ::_exit(background.ended(status));
    });
  };
  CHECK(start(0) == 0);
  CHECK(start(105) == 105);
  CHECK(in_child([] {
          Background background;
          if (const auto first = background.leave()) return *first;
          background.up("", -1);
          ::_exit(background.ended(7));  // after the group was up it is not the first one's concern
        }) == 0);
  CHECK(in_child([] {
          setup::copy_messages_to(::open("/dev/null", O_WRONLY));
          setup::print_only_to_copy();
          Background background;
          if (const auto first = background.leave()) return *first;
          ::kill(::getpid(), SIGKILL);
          return 0;
        }) == static_cast<int>(setup::Status::kSystem));
}

TEST_CASE("an ignored SIGHUP ends no group", "[launcher]") {
  CHECK(in_child([] {
          ::signal(SIGHUP, SIG_DFL);
          return has_hang_up() ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          ::signal(SIGHUP, SIG_IGN);
          const sigset_t set = end_signals();
          const bool others = sigismember(&set, SIGINT) == 1 && sigismember(&set, SIGTERM) == 1;
          return !has_hang_up() && others ? 0 : 1;
        }) == 0);
  CHECK(std::string(why_it_ends(SIGHUP)) != why_it_ends(SIGTERM));
}

TEST_CASE("an exit note keeps its content", "[launcher]") {
  const auto note = parse_exit_note(text_of(ExitNote{143, 1'700'000'000'123}));
  REQUIRE(note);
  CHECK(note->status == 143);
  CHECK(note->unix_ms == 1'700'000'000'123);
  CHECK(description_of(*note).rfind("exit status 143, at 2023-11-1", 0) == 0);
  for (const char* damaged : {"", "{", "[]", R"({"status":"3","unix_ms":1})", R"({"status":3})"}) {
    CAPTURE(damaged);
    CHECK_FALSE(parse_exit_note(damaged));
  }
}

TEST_CASE("messages are in runtime.log, and the exit status outlives its file", "[launcher]") {
  const Scratch home;
  home.write("runtime.log", "an earlier start\n");
  home.write("exit_status", "{\"status\":9,\"unix_ms\":9}\n");
  {
    RunFiles files;
    files.open(home.path);
    CHECK_FALSE(read_exit_note(home.path));  // it runs
    const int reader = ::open((home.path + "/exit_status").c_str(), O_RDONLY | O_CLOEXEC);
    setup::print_message("a message of this test");
    files.ended(3);
    fs::remove(home.path + "/exit_status");
    const auto note = read_exit_note(reader);
    ::close(reader);
    REQUIRE(note);
    CHECK(note->status == 3);
  }
  setup::print_message("a message after it");
  const std::string log = home.read("runtime.log");
  CHECK(log.rfind("an earlier start\n", 0) == 0);
  CHECK(log.find(": a message of this test\n") != std::string::npos);
  CHECK(log.find("a message after it") == std::string::npos);
}

TEST_CASE("the crane-run of a group is the process that holds its lock", "[launcher]") {
  const Scratch home;
  CHECK(crane_run_of(home.path) == 0);
  const std::string own = "{\"pid\":" + std::to_string(::getpid()) + "}";
  home.write("lock", "");
  home.write("state.json", own);
  CHECK(crane_run_of(home.path) == 0);  // the lock is free
  const int lock = ::open((home.path + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  CHECK(crane_run_of(home.path) == ::getpid());
  home.write("state.json", "{\"pid\":1}");  // another process has the pid of a crane-run that died
  CHECK(crane_run_of(home.path) == 0);
  for (const char* damaged : {"", "{", R"({"pid":null})", R"({"pid":-1})", R"({"pid":1e300})"}) {
    home.write("state.json", damaged);
    CHECK(crane_run_of(home.path) == 0);
  }
  ::close(lock);
}

TEST_CASE("a stopped crane-run supervises no group", "[launcher]") {
  const Scratch place;
  const std::string home = place.path + "/shop";
  fs::create_directory(home);
  const auto supervision = [&] { return supervision_of(place.path, "shop"); };
  CHECK(supervision() == Supervision::kPresent);  // no crane-run started it
  place.write("shop/running.json", "{}");
  place.write("shop/lock", "");
  CHECK(supervision() == Supervision::kGone);
  const int lock = ::open((home + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  const pid_t child = ::fork();  // has the lock, too
  if (child == 0) {
    for (;;) ::pause();
  }
  ::close(lock);
  place.write("shop/state.json", "{\"pid\":" + std::to_string(child) + "}");
  CHECK(supervision() == Supervision::kPresent);
  int status = 0;
  ::kill(child, SIGSTOP);
  CHECK(::waitpid(child, &status, WUNTRACED) == child);
  CHECK(supervision() == Supervision::kStopped);
  ::kill(child, SIGCONT);
  CHECK(::waitpid(child, &status, WCONTINUED) == child);
  CHECK(supervision() == Supervision::kPresent);
  ::kill(child, SIGKILL);
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(supervision() == Supervision::kGone);
}

namespace {

// A process in the place of a crane-run, which is stopped (SIGSTOP).  It leaves a note at SIGTERM
// if it handles that.
struct StoppedRun {
  Scratch scratch;
  CraneRun run;

  explicit StoppedRun(bool handles) {
    scratch.write(kExitStatus, "");
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGTERM, SIG_DFL);  // not that of the test's framework
      sigset_t term;
      sigemptyset(&term);
      sigaddset(&term, SIGTERM);
      sigprocmask(handles ? SIG_BLOCK : SIG_UNBLOCK, &term, nullptr);
      raise(SIGSTOP);
      int signo = 0;
      sigwait(&term, &signo);
      RunFiles files;
      files.open(scratch.path);
      files.ended(7);
      _exit(0);
    }
    REQUIRE(waitpid(pid, nullptr, WUNTRACED) == pid);
    run.pid = pid;
    run.note = checkpoint::Descriptor(open((scratch.path + "/" + kExitStatus).c_str(), O_RDONLY));
    run.pidfd = checkpoint::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
  // Ends it, so that no process has its pid.
  void reap() {
    kill(run.pid, SIGKILL);
    waitpid(run.pid, nullptr, 0);
    reaped = true;
  }
  bool reaped = false;
  ~StoppedRun() {
    if (!reaped) reap();
  }
};

}  // namespace

TEST_CASE("stop: a stopped crane-run continues, ends, and leaves its exit status") {
  StoppedRun stopped(true);
  const CraneRunEnd end = end_crane_run(stopped.run, [] {});
  CHECK(end.refused == 0);
  REQUIRE(end.note);
  CHECK(end.note->status == 7);
}

TEST_CASE("stop: a crane-run that is killed leaves no exit status") {
  StoppedRun stopped(false);
  const CraneRunEnd end = end_crane_run(stopped.run, [] {});
  CHECK(end.refused == 0);
  CHECK_FALSE(end.note);
}

TEST_CASE("stop: a crane-run that has ended is no error") {
  StoppedRun stopped(true);
  stopped.reap();
  const CraneRunEnd end = end_crane_run(stopped.run, [] { FAIL("it waits"); });
  CHECK(end.refused == 0);
  CHECK_FALSE(end.note);
}

}  // namespace crane::launcher
