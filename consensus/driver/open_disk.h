// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of Consensus::open that opens the store.

#include <cstdint>
#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "consensus/core/step.h"
#include "consensus/driver/driver.h"
#include "consensus/fabric/fabric.h"

namespace crane::consensus {

// The contents of the files outside of store and memory (member_mark.h).
struct Marks {
  bool was_member = false;  // this replica was a member
  bool restored = false;    // it was restored from a backup, and has sent nothing since
  std::string tail{};       // the file with the log after the backup's checkpoint; empty: none
};

// A random incarnation above `first`, the one of new members: no CONFIG has admitted it yet.
std::uint32_t new_incarnation(std::uint32_t first) noexcept;

// Opens the store, reconciles it with the fabric's memory (consensus/store/recovery.h) and starts
// the driver.  `config` is that of a new member; `checkpoint` is the server's state, or nullptr.
// Errors are reported in a message that names the directory.
Result<std::unique_ptr<Driver>> open_disk(Options options, core::Config config,
                                          std::unique_ptr<Fabric> fabric, Marks marks,
                                          const core::Checkpoint* checkpoint);

}  // namespace crane::consensus
