// SPDX-License-Identifier: Apache-2.0
// Consensus::open: finds the state of this replica's memory, and connects the parts.
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "consensus/consensus.h"
#include "consensus/core/log.h"
#include "consensus/driver/driver.h"
#include "consensus/driver/facts.h"
#include "consensus/driver/open_disk.h"
#include "consensus/fabric/shm.h"
#include "consensus/fabric/tcp.h"
#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_links.h"
#include "consensus/member_mark.h"

namespace crane::consensus {
namespace {

const std::string& lasting(const Options& o) {
  return o.lasting_directory.empty() ? o.directory : o.lasting_directory;
}

bool was_member(const Options& o) { return consensus::was_member(lasting(o), o.self, o.log_id); }
bool was_restored(const Options& o) {
  return consensus::was_restored(lasting(o), o.self, o.log_id);
}
Outcome mark_member(const Options& o) {
  return consensus::mark_member(lasting(o), o.self, o.log_id);
}

core::Config config_for(const Options& o) {
  core::Config c;
  c.self = o.self;
  c.replicas = o.replicas;
  c.members = core::Members::first(o.members == 0 ? o.replicas : o.members);
  c.log_id = o.log_id;
  c.ring_bytes = o.ring_bytes;
  c.analysis = o.analysis;
  c.keeps_log = o.keeps_log && o.durability == Durability::kMemory;
  c.removed_leader_ns = o.removed_leader_ns;
  c.payload_bytes_max =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(c.payload_bytes_max, o.ring_bytes / 16));
  return c;
}

// Discards this replica's memory.  Clears the cells first: memory with empty cells counts as lost.
void forget_memory(const Options& o, Fabric& fabric) {
  for (std::uint8_t i = 0; i < o.replicas; ++i) {  // grants of the previous incarnation
    if (ReplicaId{i} != o.self) fabric.revoke_writes(ReplicaId{i});
  }
  for (std::uint8_t i = 0; i < kCellsMax; ++i) fabric.set_cell(i, {});
  fabric.clear_log();
}

// How the core starts; sets the incarnation in `config`.
core::Start start_of(const Options& o, Fabric& fabric, core::Config& config) {
  core::Start start;
  if (o.forget && fabric.survived()) forget_memory(o, fabric);
  const CellValue promise = fabric.own_cell(core::kPromiseCell);
  if (fabric.survived() && promise.words[core::kIncarnation] != 0) {
    start.kind = core::StartKind::kSurvived;
    std::copy(std::begin(promise.words), std::end(promise.words), start.promise.begin());
    config.incarnation = static_cast<std::uint32_t>(promise.words[core::kIncarnation]);
  } else if (was_member(o)) {  // also if the memory died between its creation and its first Start
    start.kind = core::StartKind::kLost;
    config.incarnation = new_incarnation(core::kFirstIncarnation);
  } else if (o.checkpoint && value(o.checkpoint->place.at.index) > 0) {
    config.incarnation = new_incarnation(core::kFirstIncarnation);  // the group is older (U2)
  } else {
    config.campaign_at_once = value(o.self) == 0;
  }
  return start;
}

FabricOptions fabric_options(const Options& o) {
  return {o.directory, o.self, o.replicas, o.log_id, core::log_memory_bytes(o.ring_bytes)};
}

template <typename T>
Result<std::unique_ptr<Fabric>> as_fabric(Result<std::unique_ptr<T>> opened) {
  if (!opened) return opened.error();
  return std::unique_ptr<Fabric>(std::move(opened).value());
}

Result<std::unique_ptr<Fabric>> open_shm(const Options& o, std::shared_ptr<Urgency> urgency) {
  ShmOptions shm{fabric_options(o)};
  shm.urgency = std::move(urgency);
  return as_fabric(ShmFabric::open(shm));
}

Result<std::unique_ptr<Fabric>> open_tcp(const Options& o) {
  TcpOptions tcp{fabric_options(o)};
  tcp.endpoints = o.endpoints;
  tcp.secret = o.secret;
  tcp.take_visitor = o.callbacks.on_visitor;
  return as_fabric(TcpFabric::open(tcp));
}

Result<std::unique_ptr<Fabric>> open_verbs(const Options& o) {
  if (o.endpoints.size() != o.replicas) {
    return Error{Code::kBadArgument, 0, "one endpoint per replica is needed"};
  }
  VerbsOptions verbs{fabric_options(o)};
  verbs.device = o.device;
  verbs.fence = o.fence;
  verbs.flag_devices = o.fence_flags_devices;
  verbs.huge_pages = o.huge_pages;
  verbs.address = o.endpoints[value(o.self)].address;
  verbs::LinksOptions links;
  links.self = o.self;
  links.endpoints = o.endpoints;
  links.secret = o.secret;
  links.take_visitor = o.callbacks.on_visitor;
  auto bootstrap = verbs::Links::open(links);
  if (!bootstrap) return bootstrap.error();
  return as_fabric(VerbsFabric::open(verbs, std::move(bootstrap).value()));
}

Result<std::unique_ptr<Fabric>> open_fabric(const Options& o, std::shared_ptr<Urgency> urgency) {
  switch (o.fabric) {
    case FabricKind::kShm:
      return open_shm(o, std::move(urgency));
    case FabricKind::kTcp:
      return open_tcp(o);
    case FabricKind::kVerbs:
      return open_verbs(o);
  }
  return Error{Code::kBadArgument, 0, "unknown fabric"};
}

// Allocates what the core reads when it starts: the cells after the ring, and the log's beginning.
Outcome back_start(const Options& o, Fabric& fabric) {
  const std::uint64_t all = fabric.log_memory().size();
  const std::uint64_t begin = o.checkpoint ? o.checkpoint->place.pos % o.ring_bytes : 0;
  if (fabric.back(o.ring_bytes, all - o.ring_bytes) && fabric.back(0, ahead(0, 0, all)) &&
      fabric.back(begin, ahead(begin, 0, all))) {
    return Done{};
  }
  return Error{Code::kFull, ENOSPC, "allocate the log memory"};
}

Result<std::unique_ptr<Driver>> open_driver(Options o, std::unique_ptr<Fabric> fabric) {
  if (const Outcome backed = back_start(o, *fabric); !backed) return backed.error();
  core::Config config = config_for(o);
  std::optional<core::Checkpoint> checkpoint;
  if (o.checkpoint) {
    const auto decoded = decode_checkpoint(*o.checkpoint, o.log_id, config.members);
    if (!decoded) return decoded.error();
    checkpoint = decoded.value();
  }
  const core::Checkpoint* const place = checkpoint ? &*checkpoint : nullptr;
  if (o.durability == Durability::kDisk) {
    const Marks marks{was_member(o), was_restored(o), restored_tail(lasting(o), o.self, o.log_id)};
    auto opened = open_disk(o, config, std::move(fabric), marks, place);
    if (!opened) return opened;
    if (const Outcome marked = mark_member(o); !marked) return marked.error();
    // The driver has not been polled yet: nothing was sent (RESTORED-1).
    if (const Outcome gone = forget_restored(lasting(o), o.self); !gone) return gone.error();
    return opened;
  }
  core::Start start = start_of(o, *fabric, config);
  const bool has_server = !o.acceptor_only || start.kind != core::StartKind::kSurvived;
  start.checkpoint = has_server ? place : nullptr;
  if (const Outcome marked = mark_member(o); !marked) return marked.error();
  auto driver = std::make_unique<Driver>(std::move(o), config, std::move(fabric), start);
  if (driver->checkpoint_too_old()) {
    return Error{Code::kGone, 0, "the checkpoint is older than what the ring still holds"};
  }
  return driver;
}

}  // namespace

Result<std::unique_ptr<Consensus>> Consensus::open(Options o) {
  if (o.log_id == 0 || o.replicas < 1 || o.replicas > kReplicasMax || value(o.self) >= o.replicas ||
      o.members > o.replicas || !std::has_single_bit(o.ring_bytes) || o.ring_bytes < (64U << 10)) {
    return Error{Code::kBadArgument, 0, "consensus options"};
  }
  if (o.seed == 0) {
    CRANE_ASSERT(::getrandom(&o.seed, sizeof o.seed, 0) == sizeof o.seed);
  }
  const auto urgency = o.urgent ? std::make_shared<Urgency>() : nullptr;
  auto fabric = open_fabric(o, urgency);
  if (!fabric) return fabric.error();
  auto driver = open_driver(std::move(o), std::move(fabric).value());
  if (!driver) return driver.error();
  if (urgency) driver.value()->be_urgent(urgency);
  return std::unique_ptr<Consensus>(std::move(driver).value());
}

}  // namespace crane::consensus
