// SPDX-License-Identifier: Apache-2.0
// GOAL    An owner that requested O_ASYNC gets a signal at the turn at which its file has new input
//         or room.
// METHOD  The test holds the turn and sets the readiness of a file itself.
// CHECKS  The flag, rises and edges, SIGIO and the signal of F_SETSIG with its details, owners.
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
  std::pair<int, SignalInfo> take_owner_signal() {
    SignalInfo info{};
    const int signo = take_signal(w, main, info);
    return {signo, info};
  }
  std::uint32_t file = 0;
};

}  // namespace

TEST_CASE_METHOD(Owned, "SIGIO reports that a file became ready or that more input came",
                 "[files]") {
  set_readiness(w, file, kIn, false);
  CHECK(take_owner_signal().first == SIGIO);
  set_readiness(w, file, kIn, false);
  CHECK(take_owner_signal().first == 0);
  set_readiness(w, file, kIn, true);
  CHECK(take_owner_signal().first == SIGIO);
  set_readiness(w, file, 0, false);
  CHECK(take_owner_signal().first == 0);
  set_readiness(w, file, kOut, false);
  CHECK(take_owner_signal().first == SIGIO);
  set_readiness(w, file, kOut, true);  // it had room before
  CHECK(take_owner_signal().first == 0);
}

TEST_CASE_METHOD(Owned, "an owner that did not request signals or has ended gets none", "[files]") {
  owner().wants_signal = false;
  set_readiness(w, file, kIn, true);
  owner().wants_signal = true;
  owner().id = kPid + 1;
  set_readiness(w, file, kIn, true);
  owner().kind = OwnerKind::kNoOwner;
  set_readiness(w, file, kIn, true);
  CHECK(take_owner_signal().first == 0);
}

TEST_CASE_METHOD(Owned, "the chosen signal carries the descriptor and the event", "[files]") {
  owner().signal = SIGUSR1;
  for (const OwnerKind kind : {OwnerKind::kProcess, OwnerKind::kGroup}) {
    owner().kind = kind;
    set_readiness(w, file, kIn, true);
    const auto [signo, info] = take_owner_signal();
    CHECK(signo == SIGUSR1);
    CHECK(info.code == POLL_IN);
    CHECK(info.value == kDescriptor);
  }
}
