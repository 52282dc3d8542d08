// SPDX-License-Identifier: Apache-2.0
// GOAL    A pseudo-terminal carries bytes in both directions, belongs to a session, and ends with
//         its files.
// METHOD  The test holds the turn of the main process, which leads a session, and has both ends.
// CHECKS  TTY-1, TTY-2, TTY-3, the limits of the table and the queues, readiness, packet mode,
//         which process gets which signal.
#include "dmt/terminals.h"

#include <sys/ioctl.h>
#include <termios.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>

#include "dmt/controlling_terminals.h"
#include "dmt/files.h"
#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

struct Terminals : World {
  Terminals() {
    hold();
    blocks = w.scheduler.blocks_in_use;
    master = open();
    terminal = w.files[master].end.terminal;
    line = open_line(w, main, terminal);
    REQUIRE(line != 0);
  }
  std::uint32_t open() {
    const std::int64_t file = create_terminal(w, main, 0);
    REQUIRE(file > 0);
    return static_cast<std::uint32_t>(file);
  }
  std::uint16_t fork(std::uint32_t group) {
    const Child child = create_process(w, kMainProcess);
    REQUIRE(child.process != kNoProcess);
    w.processes[child.process].pid = 100u + child.process;
    w.processes[child.process].group = group;
    return child.process;
  }
  Slot slot_of(std::uint16_t process) { return Slot{w.processes[process].main_slot}; }
  TerminalRecord& t() { return w.terminals[terminal]; }
  Readiness ready(std::uint32_t file) { return w.files[file].readiness; }
  std::size_t type(const std::string& s) {
    return write_at_master(w, terminal, reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
  }
  std::size_t write_master(const std::string& s) {
    return write_at_line(w, terminal, reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
  }
  std::string read_line(std::size_t n = 4096) {
    std::string s(n, '\0');
    s.resize(read_at_line(w, terminal, reinterpret_cast<std::uint8_t*>(s.data()), n));
    return s;
  }
  std::string screen(std::size_t n = 4096) {
    std::string s(n, '\0');
    s.resize(read_at_master(w, terminal, reinterpret_cast<std::uint8_t*>(s.data()), n));
    return s;
  }
  void set_raw() {
    TerminalModes m = t().modes;
    m.local = 0;
    m.input = m.output = 0;
    set_modes(w, terminal, m);
  }
  bool is_pending(std::uint16_t process, int signo) const {
    return (w.processes[process].pending_signals >> (signo - 1) & 1) != 0;
  }

  std::uint32_t blocks = 0, master = 0, line = 0;
  std::uint16_t terminal = 0;
};

}  // namespace

TEST_CASE_METHOD(Terminals, "typed bytes are echoed and read line by line", "[terminals]") {
  CHECK(ready(master) == kOut);
  CHECK(ready(line) == kOut);
  CHECK(type("hello\r") == 6);
  CHECK(ready(line) == (kIn | kOut));
  CHECK(ready(master) == (kIn | kOut));
  CHECK(read_line() == "hello\n");
  CHECK(screen() == "hello\r\n");
  CHECK(ready(line) == kOut);
  CHECK(write_master("x\n") == 2);
  CHECK(screen() == "x\r\n");
}

TEST_CASE_METHOD(Terminals, "both directions are bounded, and waiting bytes arrive in order",
                 "[terminals]") {
  set_raw();
  std::string all;
  for (int i = 0; i < 200'000; ++i) all += static_cast<char>(i % 251);
  const std::size_t down = type(all);
  CHECK(down == kTerminalQueueBytes + kLineBytes - 1);
  CHECK(type("x") == 0);
  CHECK((ready(master) & kOut) == 0);
  std::string got;
  for (std::string s; !(s = read_line()).empty();) {
    got += s;
    CHECK((t().to_line.bytes == 0 || room_for_input(t().discipline, t().modes) == 0));  // TTY-2
  }
  CHECK(got == all.substr(0, down));
  const std::size_t up = write_master(all);
  CHECK(up > kTerminalQueueBytes);
  CHECK((ready(line) & kOut) == 0);
  got.clear();
  for (std::string s; !(s = screen()).empty();) got += s;
  CHECK(got == all.substr(0, up));
  CHECK(w.scheduler.blocks_in_use == blocks);
}

TEST_CASE_METHOD(Terminals, "the table is bounded, and the lowest place is reused", "[terminals]") {
  std::uint32_t second = open();
  CHECK(number_of(w.files[second].end.terminal) == 1);
  for (std::uint32_t i = 3; i < kTerminalsMax; ++i) open();
  CHECK(create_terminal(w, main, 0) == -ENOSPC);
  drop_reference(w, second);
  second = open();
  CHECK(number_of(w.files[second].end.terminal) == 1);
  CHECK(find_terminal(w, 1) != 0);
  CHECK(find_terminal(w, kTerminalsMax) == 0);
}

TEST_CASE_METHOD(Terminals, "the place is free after both ends are closed", "[terminals]") {
  type("kept");
  write_master("kept");
  drop_reference(w, line);
  CHECK(t().line_closed);
  CHECK((ready(master) & kHup) != 0);
  line = open_line(w, main, terminal);
  CHECK((ready(master) & kHup) == 0);
  drop_reference(w, master);
  CHECK(find_terminal(w, number_of(terminal)) == 0);
  CHECK(w.files[line].end.hung_up);
  CHECK(ready(line) == (kIn | kOut | kErr | kHup));
  CHECK(t().used);
  drop_reference(w, line);
  CHECK_FALSE(t().used);
  CHECK(t().files == 0);  // TTY-1
  CHECK(w.scheduler.blocks_in_use == blocks);
}

TEST_CASE_METHOD(Terminals, "signals go to the foreground group", "[terminals]") {
  become_controlling(w, kMainProcess, terminal);
  const std::uint32_t group = w.processes[kMainProcess].group;
  w.processes[kMainProcess].dispositions[SIGINT] = Disposition::kHandler;
  const std::uint16_t job = fork(777);
  CHECK(w.processes[job].terminal == terminal);
  type("gone\x03");
  CHECK(is_pending(kMainProcess, SIGINT));
  CHECK_FALSE(is_pending(job, SIGINT));
  CHECK(read_line().empty());
  CHECK(set_foreground(w, kMainProcess, terminal, 777) == 0);
  CHECK(set_foreground(w, kMainProcess, terminal, 778) == -ESRCH);
  CHECK(set_foreground(w, kMainProcess, terminal, -1) == -EINVAL);
  type("\x1c");
  CHECK(is_pending(job, SIGQUIT));
  w.processes[job].dispositions[SIGWINCH] = Disposition::kHandler;
  set_window_size(w, terminal, {24, 80, 0, 0});
  CHECK(is_pending(job, SIGWINCH));
  CHECK(t().group == 777);
  CHECK(t().session == w.processes[kMainProcess].session);  // TTY-3
  CHECK(group != 777);
}

TEST_CASE_METHOD(Terminals, "the background is stopped, or refused if it cannot be stopped",
                 "[terminals]") {
  become_controlling(w, kMainProcess, terminal);
  CHECK(ask_terminal(w, main, terminal, SIGTTIN) == Permission::kGranted);
  const std::uint16_t job = fork(777);
  CHECK(ask_terminal(w, slot_of(job), terminal, SIGTTIN) == Permission::kSignalled);
  CHECK(is_pending(job, SIGTTIN));
  w.processes[job].dispositions[SIGTTIN] = Disposition::kIgnore;
  w.processes[job].dispositions[SIGTTOU] = Disposition::kIgnore;
  CHECK(ask_terminal(w, slot_of(job), terminal, SIGTTIN) == Permission::kRefused);
  CHECK(ask_terminal(w, slot_of(job), terminal, SIGTTOU) == Permission::kGranted);
  w.processes[job].dispositions[SIGTTIN] = Disposition::kDefault;
  w.processes[job].parent = kNoProcess;
  CHECK(ask_terminal(w, slot_of(job), terminal, SIGTTIN) == Permission::kRefused);
}

TEST_CASE_METHOD(Terminals,
                 "a closed master and an ended leader cause the same signals as on Linux",
                 "[terminals]") {
  const std::uint16_t leader = fork(0), job = fork(777);
  ProcessRecord& p = w.processes[leader];
  p.group = p.session = p.pid;
  w.processes[job].session = p.session;
  become_controlling(w, leader, terminal);
  w.processes[job].terminal = terminal;
  CHECK(set_foreground(w, leader, terminal, 777) == 0);
  drop_reference(w, master);
  CHECK(is_pending(leader, SIGHUP));
  CHECK_FALSE(is_pending(job, SIGHUP));
  CHECK(p.terminal == 0);
  CHECK(w.processes[job].terminal == 0);  // TTY-3
  end_process(w, leader, SIGHUP);
  CHECK(is_pending(job, SIGHUP));
}

TEST_CASE_METHOD(Terminals, "packet mode reports events before the written bytes", "[terminals]") {
  set_packet_mode(w, terminal, true);
  write_master("data");
  flush_unread(w, terminal, false);
  CHECK((ready(master) & kPri) != 0);
  CHECK(screen() == std::string(1, TIOCPKT_FLUSHREAD));
  CHECK(screen() == std::string("\0data", 5));
  hold_output(w, terminal, true);
  CHECK((ready(line) & kOut) == 0);
  CHECK(write_master("x") == 0);
  CHECK(screen() == std::string(1, TIOCPKT_STOP));
  type("e");
  CHECK(screen().empty());  // its echo waits
  hold_output(w, terminal, false);
  CHECK(screen() == std::string(1, TIOCPKT_START));
  CHECK(screen() == std::string("\0e", 2));
}
