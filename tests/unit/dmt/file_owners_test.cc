// SPDX-License-Identifier: Apache-2.0
// GOAL    Who asked with O_ASYNC is told by a signal, at the turn at which something comes.
// METHOD  The test holds the turn and sets the readiness of a file itself.
// CHECKS  the flag, rises and edges, SIGIO and F_SETSIG's signal with its particulars, owners.
#include "dmt/file_owners.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <utility>

#include "dmt/files.h"
#include "dmt/processes.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr std::uint32_t kPid = 77;
constexpr int kDescriptor = 5;

struct Owned : World {
  Owned() {
    hold();
    w.processes[kMainProcess].pid = w.processes[kMainProcess].group = kPid;
    file = create_file(w, main, FileKind::kUnixSocket);
    REQUIRE(file != 0);
    set_readiness(w, file, 0, false);
    w.files[file].owner = {OwnerKind::kProcess, 0, true, kDescriptor, kPid};
  }
  FileOwner& owner() { return w.files[file].owner; }
  std::pair<int, SignalInfo> told() {
    SignalInfo info{};
    const int signo = take_signal(w, main, info);
    return {signo, info};
  }
  std::uint32_t file = 0;
};

}  // namespace

TEST_CASE_METHOD(Owned, "SIGIO says that a file became ready, or that more has come", "[files]") {
  set_readiness(w, file, kIn, false);
  CHECK(told().first == SIGIO);
  set_readiness(w, file, kIn, false);
  CHECK(told().first == 0);
  set_readiness(w, file, kIn, true);
  CHECK(told().first == SIGIO);
  set_readiness(w, file, 0, false);
  CHECK(told().first == 0);
  set_readiness(w, file, kOut, false);
  CHECK(told().first == SIGIO);
  set_readiness(w, file, kOut, true);  // there was room before
  CHECK(told().first == 0);
}

TEST_CASE_METHOD(Owned, "who does not ask, or is gone, is not told", "[files]") {
  owner().is_told = false;
  set_readiness(w, file, kIn, true);
  owner().is_told = true;
  owner().id = kPid + 1;
  set_readiness(w, file, kIn, true);
  owner().kind = OwnerKind::kNoOwner;
  set_readiness(w, file, kIn, true);
  CHECK(told().first == 0);
}

TEST_CASE_METHOD(Owned, "the signal that was chosen names the descriptor and the event",
                 "[files]") {
  owner().signal = SIGUSR1;
  for (const OwnerKind kind : {OwnerKind::kProcess, OwnerKind::kGroup}) {
    owner().kind = kind;
    set_readiness(w, file, kIn, true);
    const auto [signo, info] = told();
    CHECK(signo == SIGUSR1);
    CHECK(info.code == POLL_IN);
    CHECK(info.value == kDescriptor);
  }
}
