// SPDX-License-Identifier: Apache-2.0
// GOAL    A process that is killed while it makes a state of the machine's files leaves nothing
//         that a group would read, nothing that stays, and no group without its state.
// METHOD  A child is killed at each fault point, at each passing; or while another process waits
//         for its lock.  This process adopts the processes that remove unused states.
// CHECKS  After the next start the files match the machine's, and the store contains only that
//         state; a recorded state still exists after the next one was made (FILES-3, FILES-4).
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>

#include "checkpoint/fault_points.h"
#include "tests/unit/checkpoint/machine.h"
#include "tests/unit/waiting.h"

namespace crane::checkpoint {
namespace {

using test::Machine;
using test::replace;

constexpr int kPassesMax = 20, kWaitMs = 20000;

// Adopts the processes that remove unused states, during a test.
class Adopting {
 public:
  Adopting() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Adopting() {
    while (wait(nullptr) > 0) {
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  Adopting(const Adopting&) = delete;
  Adopting& operator=(const Adopting&) = delete;
};

pid_t fork_to(const std::function<bool()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(work() ? 0 : 2);
  return child;
}

// Whether one of this process's children, including adopted ones, was killed.
bool one_was_killed() {
  bool killed = false;
  int status = 0;
  while (wait(&status) > 0) {
    REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    killed = killed || WIFSIGNALED(status);
  }
  return killed;
}

bool holds(const Machine& m, const std::string& group) {
  return ensure_files(m.record(group), 0, m.root).ok();
}

// Whether a group's files match the machine's current ones.
GroupFiles check_whole(const Machine& m, const std::string& group) {
  const GroupFiles files = m.hold(group);
  REQUIRE(files.layers.size() == 2);
  CHECK(!files.lost);
  CHECK(is_current(files, m.root));
  const GroupFiles machine;
  for (const char* const path :
       {"/usr/bin/server", "/usr/lib/a/library.so", "/opt/tool/tool", "/etc/server.conf"}) {
    INFO(path);
    CHECK(Machine::seen(files, path) == test::text_of(m.root + path));
  }
  return files;
}

// The parts of `states`, their lists, and the names of users.
void check_stored(const Machine& m, const std::vector<GroupFiles>& states) {
  std::set<std::string> wanted{"users"};
  for (const auto& files : states) {
    for (const std::filesystem::path layer : files.layers) {
      wanted.insert({layer.filename(), layer.filename().native() + ".list"});
    }
  }
  CHECK(m.stored() == wanted);
}

// A machine with the state of a group that is gone, and with newer files.
void change(const Machine& m) {
  (void)m.hold("gone");
  std::filesystem::remove(m.record("gone"));
  replace(m.root + "/usr/bin/server", "two");
  replace(m.root + "/etc/server.conf", "two");
}

// The hooks below run in the child.
int ready_pipe[2];
const Machine* machine_of_child;

void stop_when_linking(const char* name) {
  if (std::string(name) != "state.linking") return;
  REQUIRE(write(ready_pipe[1], "", 1) == 1);
  pause();
}

void change_while_it_is_made(const char* name) {
  static bool changed = false;
  const std::string point = name;
  if (point == "state.again" && changed) {
    if (std::filesystem::exists(machine_of_child->store() + "/usr-1.list")) _exit(4);
    kill(getpid(), SIGKILL);
  }
  if (point != "state.listed" || !std::filesystem::exists(machine_of_child->store() + "/usr-1")) {
    return;
  }
  replace(machine_of_child->root + "/usr/bin/server", "three");
  changed = true;
}

bool waits_for_lock(pid_t process) {
  std::ifstream locks("/proc/locks");
  const std::string who = " " + std::to_string(process) + " ";
  for (std::string line; std::getline(locks, line);) {
    if (line.find("-> FLOCK") != std::string::npos && line.find(who) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("files: a kill at any point of making a state leaves no state that is used",
          "[root][FILES-4]") {
  const Adopting adopting;
  for (const std::string point : kStateFaultPoints) {
    int pass = 1;
    for (bool killed = true; killed; ++pass) {
      INFO(point << ":" << pass);
      REQUIRE(pass < kPassesMax);
      const Machine m;
      change(m);
      fork_to(
          [&] { return die_at((point + ":" + std::to_string(pass)).c_str()) && holds(m, "a"); });
      killed = one_was_killed();
      (void)check_whole(m, "a");
      const GroupFiles last = check_whole(m, "b");
      (void)one_was_killed();
      check_stored(m, {last});
    }
    INFO(point);
    CHECK(pass > 2);  // the point was reached
  }
}

TEST_CASE("files: a killed process's record has its state after the next one was made",
          "[root][FILES-3]") {
  const Adopting adopting;
  for (const std::string point : {"state.used", "state.noted", "state.renamed"}) {
    INFO(point);
    const Machine m;
    change(m);
    fork_to([&] { return die_at(point.c_str()) && holds(m, "a"); });
    REQUIRE(one_was_killed());
    const GroupFiles before = m.hold("a");
    replace(m.root + "/usr/bin/server", "three");
    replace(m.root + "/etc/server.conf", "three");
    const GroupFiles next = check_whole(m, "b");
    (void)one_was_killed();
    const GroupFiles again = m.hold("a");
    CHECK(!again.lost);
    CHECK(again.state == before.state);
    CHECK(Machine::seen(again, "/usr/bin/server") == "two");
    check_stored(m, {before, next});
  }
}

TEST_CASE("files: a kill while a state is made again leaves none that seems current",
          "[root][FILES-4]") {
  const Adopting adopting;
  const Machine m;
  struct stat before {};
  REQUIRE(stat((m.root + "/usr/bin").c_str(), &before) == 0);
  machine_of_child = &m;
  fork_to([&] {
    fault_hook = change_while_it_is_made;
    return holds(m, "a");
  });
  REQUIRE(one_was_killed());
  // The list of the first try contains these times.
  const timespec times[2] = {before.st_mtim, before.st_mtim};
  REQUIRE(utimensat(AT_FDCWD, (m.root + "/usr/bin").c_str(), times, 0) == 0);
  const GroupFiles last = check_whole(m, "a");
  (void)one_was_killed();
  check_stored(m, {last});
}

TEST_CASE("files: a process that waited for a killed maker of a state makes it", "[root]") {
  const Adopting adopting;
  const Machine m;
  change(m);
  REQUIRE(pipe(ready_pipe) == 0);
  const pid_t first = fork_to([&] {
    fault_hook = stop_when_linking;
    return holds(m, "a");
  });
  char ready = 0;
  REQUIRE(read(ready_pipe[0], &ready, 1) == 1);
  const pid_t second = fork_to([&] { return holds(m, "b"); });
  CHECK(test::eventually([&] { return waits_for_lock(second); }, kWaitMs));
  REQUIRE(kill(first, SIGKILL) == 0);
  REQUIRE(one_was_killed());
  const GroupFiles last = check_whole(m, "b");
  CHECK(check_whole(m, "a").state == last.state);
  (void)one_was_killed();
  check_stored(m, {last});
  close(ready_pipe[0]);
  close(ready_pipe[1]);
}

}  // namespace crane::checkpoint
