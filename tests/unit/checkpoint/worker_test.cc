// SPDX-License-Identifier: Apache-2.0
// GOAL    A job beside the node reports its progress, answers once, and dies with the node.
// METHOD  Jobs that answer, fail, are killed or wait; the test polls the worker's descriptor.
// CHECKS  Result, sentence and progress arrive; no process or descriptor remains.
#include "checkpoint/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "checkpoint/background.h"
#include "tests/unit/checkpoint/control_group.h"

using namespace crane;
using namespace crane::test;
using crane::checkpoint::Background;
using crane::checkpoint::Descriptor;
using crane::checkpoint::Worker;

namespace {

bool ends(Worker& worker) {
  for (int i = 0; i < 20; ++i) {
    pollfd fd{worker.event_fd(), POLLIN, 0};
    ::poll(&fd, 1, 1000);  // poll
    if (worker.advance()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("worker: a job's answer and its progress arrive", "[processes]") {
  Worker worker;
  CHECK(worker.idle());
  const int secret = ::fcntl(0, F_DUPFD, 50);
  REQUIRE(worker
              .start([&](const Worker::Report& report) -> Result<std::string> {
                report.line("looking");
                if (::fcntl(secret, F_GETFD) >= 0) return std::string("inherits descriptors");
                return std::string("00000001.000000000002");
              })
              .ok());
  REQUIRE(ends(worker));
  CHECK(worker.idle());
  CHECK(worker.progress() == "looking");
  REQUIRE(worker.result().ok());
  CHECK(worker.result().value() == "00000001.000000000002");
  ::close(secret);
  // Again, with an error.
  REQUIRE(worker
              .start([](const Worker::Report&) -> Result<std::string> {
                return failure(Code::kFull, "write", "cannot write it: no room; make some");
              })
              .ok());
  REQUIRE(ends(worker));
  CHECK(worker.result().error().code == Code::kFull);
  CHECK(worker.result().error().text == "cannot write it: no room; make some");
}

TEST_CASE("worker: a killed job is an error, and a stopped one is gone", "[processes]") {
  Worker worker;
  REQUIRE(worker
              .start([](const Worker::Report& report) -> Result<std::string> {
                report.line("packing upper");
                ::kill(::getpid(), SIGKILL);
                return std::string();
              })
              .ok());
  REQUIRE(ends(worker));
  CHECK(worker.result().error().code == Code::kSystem);
  CHECK(worker.result().error().text.find("killed while packing upper") != std::string::npos);
  REQUIRE(worker
              .start([](const Worker::Report&) -> Result<std::string> {
                for (;;) ::pause();
              })
              .ok());
  CHECK(!worker.advance());
  worker.stop();
  CHECK(worker.idle());
  CHECK(worker.event_fd() == -1);
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("worker: a job does not outlive the node", "[processes]") {
  int alive[2];
  REQUIRE(::pipe2(alive, O_CLOEXEC) == 0);
  const pid_t node = ::fork();
  REQUIRE(node >= 0);
  if (node == 0) {
    ::dup2(alive[1], 2);  // the job keeps its standard error
    Worker worker;
    const auto started = worker.start([](const Worker::Report& report) -> Result<std::string> {
      const pid_t own = ::getpid();
      (void)!::write(2, &own, sizeof own);
      report.line("started");
      for (;;) ::pause();
    });
    pollfd fd{worker.event_fd(), POLLIN, 0};
    ::poll(&fd, 1, 20'000);  // poll
    ::kill(::getpid(), started ? SIGKILL : SIGTERM);
  }
  ::close(alive[1]);
  int status = 0;
  REQUIRE(::waitpid(node, &status, 0) == node);
  CHECK(WTERMSIG(status) == SIGKILL);
  pollfd fd{alive[0], 0, 0};
  CHECK(::poll(&fd, 1, 20'000) == 1);  // the last writer is gone
  CHECK((fd.revents & POLLHUP) != 0);
  pid_t job = 0;
  REQUIRE(::read(alive[0], &job, sizeof job) == sizeof job);
  ::close(alive[0]);
  // The job cannot remove its control group.
  CHECK(eventually([&] { return Background::remove_left(), group_of(job).empty(); }, 20'000));
}
