// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of Consensus::open that is about the store.

#include <memory>
#include <string>

#include "consensus/consensus.h"
#include "consensus/core/step.h"
#include "consensus/driver/driver.h"
#include "consensus/fabric/fabric.h"

namespace crane::consensus {

// What files beside store and memory say (member_mark.h).
struct Marks {
  bool was_member = false;  // this replica was one
  bool restored = false;    // it was brought back from a backup, and has said nothing since
  std::string tail{};       // the log behind the backup's checkpoint; empty: there is none
};

// Opens the store, puts it and the fabric's memory together (store/recovery.h) and starts the
// driver.  `config` is that of a new member; `checkpoint`: where the server stands, or nullptr.
// Errors are said in a message that names the directory.
Result<std::unique_ptr<Driver>> open_disk(Options options, core::Config config,
                                          std::unique_ptr<Fabric> fabric, Marks marks,
                                          const core::Checkpoint* checkpoint);

}  // namespace crane::consensus
