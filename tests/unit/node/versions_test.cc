// SPDX-License-Identifier: Apache-2.0
// The meaning of the agreed versions (dmt/base/versions.h). If one of these format numbers changes,
// the test fails until the agreed version is raised, also in this file. tests/e2e/schedules.py
// guards the number of the schedule.
#include "dmt/base/versions.h"

#include <array>
#include <catch2/catch.hpp>

#include "checkpoint/manifest.h"
#include "consensus/core/log.h"
#include "consensus/core/step.h"
#include "consensus/fabric/shm_layout.h"
#include "consensus/fabric/tcp.h"
#include "consensus/fabric/tcp_frame.h"
#include "consensus/fabric/verbs_layout.h"
#include "dmt/layout.h"
#include "dmt/sequence/entry.h"
#include "proxy/replica/messages.h"
#include "runtime/setup/version.h"

using namespace crane;

namespace {

template <typename M>
std::array<std::size_t, 3> row() {
  using Its = replica::MessageRow<M>;
  return {Its::kType, Its::kVersion, sizeof(M)};
}

}  // namespace

TEST_CASE("versions: wire 3 is the protocol between nodes of two builds", "[versions]") {
  REQUIRE(versions::kWire == 3);
  CHECK(consensus::tcp::kTcpVersion == 2);
  CHECK(consensus::tcp::kTcpMemoryVersion == 1);
  CHECK(consensus::shm::kShmLayoutVersion == 2);
  CHECK(consensus::verbs::kVerbsVersion == 1);
  CHECK(consensus::core::kMessageBytes == 176);
  // A message with another size or meaning needs another version in its row.
  CHECK(row<replica::ProgressMessage>() == std::array<std::size_t, 3>{1, 1, 16});
  CHECK(row<replica::CommittedMessage>() == std::array<std::size_t, 3>{2, 1, 24});
  CHECK(row<replica::ServerPlaceMessage>() == std::array<std::size_t, 3>{3, 1, 32});
  CHECK(row<replica::CheckpointNote>() == std::array<std::size_t, 3>{4, 1, 32});
  CHECK(row<replica::RefusalMessage>() == std::array<std::size_t, 3>{5, 1, 200});
  CHECK(row<replica::PeerNote>() == std::array<std::size_t, 3>{6, 1, 168});
  CHECK(row<proxy::Digest>() == std::array<std::size_t, 3>{7, 1, 40});
  CHECK(row<replica::CheckpointWish>() == std::array<std::size_t, 3>{8, 1, 8});
  CHECK(row<replica::DrainedNote>() == std::array<std::size_t, 3>{9, 1, 16});
  CHECK(row<replica::HostNote>() == std::array<std::size_t, 3>{10, 1, 64});
  CHECK(row<replica::WishRefusal>() == std::array<std::size_t, 3>{11, 1, 96});
}

TEST_CASE("versions: log 2 is the format of entries", "[versions]") {
  REQUIRE(versions::kLog == 2);
  CHECK(kEntryFormatVersion == 8);
  CHECK(consensus::core::kHeaderBytes == 72);
  // Only builds of schedule 7 propose type 21; they share no log with earlier builds.
  CHECK(kEntryTypeSlots == 23);
  CHECK(sizeof(StartBody) == 48);
  CHECK(sizeof(ConnectBody) == 88);
  CHECK(sizeof(RestartBody) == 8);
  CHECK(std::size(kAgreedVersions) == 4);  // START contains them (proxy/host/agreed.h)
}

TEST_CASE("versions: a checkpoint's manifest contains the agreed number", "[versions]") {
  CHECK(checkpoint::kManifestVersion == 2);
  CHECK(versions::kCheckpoint == 2);
}

TEST_CASE("versions: every program prints all agreed versions, and that of the segment",
          "[versions]") {
  const std::string text = setup::version_text();
  CHECK(text.find(setup::agreed_versions_text()) != std::string::npos);
  for (const AgreedVersion& one : kAgreedVersions) {
    CHECK(text.find(std::string(one.name) + " " + std::to_string(one.number)) != std::string::npos);
  }
  CHECK(text.find("segment " + std::to_string(dmt::kLayoutVersion)) != std::string::npos);
}
