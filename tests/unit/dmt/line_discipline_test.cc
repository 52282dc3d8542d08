// SPDX-License-Identifier: Apache-2.0
// GOAL    The line discipline edits, echoes and translates like that of Linux.
// METHOD  Bytes go in, and the output on either side is compared; no process, no descriptor.
//         tests/interpose/posix/pty_discipline_as_the_kernels.c compares random bytes with the
//         kernel.
// CHECKS  LINE-1, room, lines and ends of file, each editing character, signals, raw mode, OPOST.
#include "dmt/line_discipline.h"

#include <termios.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

using namespace crane::dmt;

namespace {

struct Line {
  LineState l{};
  TerminalModes m = usual_modes();
  std::string echo;
  OutputSink sink{&echo, [](void* to, std::uint8_t byte) {
                    *static_cast<std::string*>(to) += static_cast<char>(byte);
                  }};

  int type(const std::string& text) {
    int last = 0;
    for (const char c : text) {
      REQUIRE(room_for_input(l, m) > 0);
      last = receive(l, m, static_cast<std::uint8_t>(c), sink);
    }
    return last;
  }
  std::string read(std::size_t n = 8192) {
    std::string bytes(n, '\0');
    bytes.resize(take_input(l, m, reinterpret_cast<std::uint8_t*>(bytes.data()), n));
    return bytes;
  }
  std::string echoed() { return std::exchange(echo, {}); }
  std::string written(const std::string& text) {
    for (const char c : text) post_process(l, m, static_cast<std::uint8_t>(c), sink);
    return echoed();
  }
  void set(tcflag_t local_on, tcflag_t local_off) {
    const TerminalModes before = m;
    m.local = (m.local | local_on) & ~local_off;
    note_modes(l, before, m);
  }
};

}  // namespace

TEST_CASE_METHOD(Line, "a line is readable when it ends, and one read takes one line", "[line]") {
  type("first");
  CHECK_FALSE(has_input(l, m, 1));
  CHECK(unread_bytes(l, m) == 0);
  type("\rsecond\nthi");
  CHECK(has_input(l, m, 1));
  CHECK(unread_bytes(l, m) == 13);
  CHECK(read() == "first\n");
  CHECK(read(3) == "sec");
  CHECK(read() == "ond\n");
  CHECK_FALSE(has_input(l, m, 1));
  CHECK(echoed() == "first\r\nsecond\r\nthi");
}

TEST_CASE_METHOD(Line, "an end of file ends a line and is not part of it", "[line]") {
  type("ab\x04\x04");
  CHECK(read() == "ab");
  CHECK(has_input(l, m, 1));
  CHECK(read().empty());
  CHECK_FALSE(has_input(l, m, 1));
  type("cd\x04");
  CHECK(read(2) == "cd");  // this also takes the end of file
  CHECK_FALSE(has_input(l, m, 1));
  CHECK(echoed() == "abcd");
}

TEST_CASE_METHOD(Line, "characters, words and lines are also erased on the screen", "[line]") {
  type("ab\x7f");
  CHECK(echoed() == "ab\b \b");
  type(" cd ef \x17");
  CHECK(echoed() == " cd ef \b \b\b \b\b \b");
  type("\x01\x7f");
  CHECK(echoed() == "^A\b \b\b \b");
  type("x\ty\x7f\x7f");
  CHECK(echoed() == "x\ty\b \b\b\b");
  type("\x15");
  CHECK(echoed().size() % 3 == 0);
  type("\x7f");
  CHECK(echoed().empty());
  type("z\n");
  CHECK(read() == "z\n");
}

TEST_CASE_METHOD(Line, "the next character is taken literally, and a line is reprinted", "[line]") {
  type("\x16\x03");
  CHECK(echoed() == "^\b^C");
  type("a\x12");
  CHECK(echoed() == "a^R\r\n^Ca");
  type("\n");
  CHECK(read() ==
        "\x03"
        "a\n");
}

TEST_CASE_METHOD(Line, "characters cause signals only with ISIG", "[line]") {
  CHECK(type("\x03") == SIGINT);
  CHECK(type("\x1c") == SIGQUIT);
  CHECK(type("\x1a") == SIGTSTP);
  set(0, ISIG);
  CHECK(type("\x03") == 0);
  type("\n");
  CHECK(read() == "\x03\n");
}

TEST_CASE_METHOD(Line, "an overlong line keeps its beginning and its end", "[line]") {
  type(std::string(kLineBytes + 100, 'a') + "\n");
  const std::string line = read();
  CHECK(line.size() == kLineBytes);
  CHECK(line.back() == '\n');
  set(0, ICANON);
  type(std::string(kLineBytes - 1, 'b'));
  CHECK(room_for_input(l, m) == 0);
}

TEST_CASE_METHOD(Line, "waiting bytes become readable in raw mode, and lines become readable later",
                 "[line]") {
  type("half a li");
  set(0, ICANON);
  CHECK(has_input(l, m, 9));
  CHECK_FALSE(has_input(l, m, 10));
  set(ICANON, 0);
  CHECK(read() == "half a li");
  type("ne\n");
  CHECK(read() == "ne\n");
}

TEST_CASE_METHOD(Line, "with IXON, characters stop and start the output", "[line]") {
  type("\x13");
  CHECK(l.stopped);
  type("\x11");
  CHECK_FALSE(l.stopped);
  type("\x13");
  const TerminalModes before = m;
  m.input &= ~std::uint32_t{IXON};
  note_modes(l, before, m);
  CHECK_FALSE(l.stopped);
}

TEST_CASE_METHOD(Line, "output is translated according to its modes", "[line]") {
  CHECK(written("a\nb") == "a\r\nb");
  m.output = OPOST | XTABS;
  l.column = 0;
  CHECK(written("a\tb") == "a       b");
  m.output = OPOST | ONOCR | OCRNL;
  l.column = 0;
  CHECK(written("\ra\r") == "a\n");
  m.output = OPOST | OLCUC;
  CHECK(written("aB") == "AB");
  m.output = 0;
  CHECK(written("a\nb") == "a\nb");
}

TEST_CASE_METHOD(Line, "random bytes and modes keep the invariant", "[line]") {
  const char* given = std::getenv("CRANE_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261126;
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    const TerminalModes before = m;
    m.input = static_cast<std::uint32_t>(random()) & 07777u;
    m.local = static_cast<std::uint32_t>(random()) & 0177777u;
    note_modes(l, before, m);
    for (int i = 0; i < 200 && room_for_input(l, m) > 0; ++i) {
      receive(l, m, static_cast<std::uint8_t>(random()), sink);
      REQUIRE(l.head - l.tail <= kLineBytes);
      REQUIRE(l.ready - l.tail <= l.head - l.tail);  // LINE-1
    }
    read(static_cast<std::size_t>(random() % 300));
    REQUIRE(l.ready - l.tail <= l.head - l.tail);  // LINE-1
  }
}
