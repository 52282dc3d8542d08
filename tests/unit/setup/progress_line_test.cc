// SPDX-License-Identifier: Apache-2.0
// GOAL    A step of a command that lasts longer than a second shows how far it is (standard error).
// METHOD  Standard error is a pipe or a terminal of the test, which calls show() until there is
//         text.
// CHECKS  Lines with a percentage elsewhere; one line on a terminal that disappears; nothing with
//         --quiet; the line of a thread; the time if the whole is not known.
#include "runtime/setup/progress_line.h"

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>

using namespace crane::setup;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kLong = std::chrono::seconds(30);

// Standard error in the hands of the test.
struct Shown {
  int ours = -1, saved = dup(STDERR_FILENO);
  std::string text;

  explicit Shown(bool terminal) {
    int theirs = -1;
    if (terminal) {
      REQUIRE(openpty(&ours, &theirs, nullptr, nullptr, nullptr) == 0);
    } else {
      int ends[2];
      REQUIRE(pipe(ends) == 0);
      ours = ends[0];
      theirs = ends[1];
    }
    fcntl(ours, F_SETFL, O_NONBLOCK);
    dup2(theirs, STDERR_FILENO);
    close(theirs);
  }
  ~Shown() {
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ours);
  }
  bool has(const std::string& part) {
    char some[4096];
    for (ssize_t got; (got = read(ours, some, sizeof some)) > 0;) {
      text.append(some, static_cast<std::size_t>(got));
    }
    return text.find(part) != std::string::npos;
  }
  // Does something until standard error has this; false: it never has.
  template <typename Action>
  bool shows(const std::string& part, Action action, Clock::duration limit = kLong) {
    for (const auto end = Clock::now() + limit; Clock::now() < end;) {
      action();
      if (has(part)) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("progress line: elsewhere than on a terminal there are whole lines", "[setup]") {
  Shown shown(false);
  ProgressWriter writer("packs shop.bak", crane::control::Unit::kBytes);
  CHECK(shown.shows("packs shop.bak: 50 %", [&] { writer.show(50'000, 100'000); }));
  CHECK(shown.shows("packs shop.bak: 75 %", [&] { writer.show(75'000, 100'000); }));
  CHECK(shown.text.find('\r') == std::string::npos);
  CHECK(std::count(shown.text.begin(), shown.text.end(), '\n') == 2);
}

TEST_CASE("progress line: a terminal has one line, which disappears", "[setup]") {
  Shown shown(true);
  {
    ProgressWriter writer("packs shop.bak", crane::control::Unit::kBytes);
    CHECK(shown.shows("\rpacks shop.bak: 50 %", [&] { writer.show(50'000, 100'000); }));
    CHECK(shown.shows("\rpacks shop.bak: 75 %", [&] { writer.show(75'000, 100'000); }));
    CHECK(shown.text.find('\n') == std::string::npos);
  }
  CHECK(shown.has("\r\x1b[K"));
  CHECK(shown.text.substr(shown.text.size() - 4) == "\r\x1b[K");
}

TEST_CASE("progress line: without the whole it has the time", "[setup]") {
  Shown shown(false);
  ProgressWriter writer("waits", crane::control::Unit::kBytes);
  CHECK(shown.shows("waits: ", [&] { writer.show(1, 0); }));
  CHECK(shown.has(" s\n"));
  CHECK(shown.text.find('%') == std::string::npos);
}

TEST_CASE("progress line: a thread writes it while the command works", "[setup]") {
  Shown shown(false);
  {
    ProgressLine line("imports", 0);
    line.set(30'000, 100'000);
    CHECK(shown.shows("imports: 30 %", [] {}));
    line.add(20'000);
    CHECK(shown.shows("imports: 50 %", [] {}));
  }
  CHECK(shown.text.find("imports") != std::string::npos);
}

TEST_CASE("progress line: with --quiet nothing is shown", "[setup]") {
  Shown shown(false);
  show_progress(false);
  {
    ProgressWriter writer("packs", crane::control::Unit::kBytes);
    ProgressLine line("imports", 100);
    // Longer than until the first line.
    CHECK_FALSE(shown.shows(
        "packs", [&] { writer.show(1, 2); }, std::chrono::milliseconds(1500)));
  }
  show_progress(true);
  CHECK_FALSE(shown.has("imports"));
  CHECK(shown.text.empty());
}
