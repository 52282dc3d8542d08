// SPDX-License-Identifier: Apache-2.0
// Consensus::open: finds out what became of this replica's memory, and puts the pieces together.
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

#include "consensus/consensus.h"
#include "consensus/core/log.h"
#include "consensus/fabric/shm.h"
#include "consensus/fabric/tcp.h"
#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_links.h"
#include "consensus/node/driver.h"
#include "consensus/node/open_disk.h"

namespace crane::consensus {
namespace {

// A file beside the replica's memory, not in it: says that this replica was a member of the group
// once, so that empty memory is lost memory (C5) and not a first start.
std::string member_mark(const Options& o) {
  const std::string& directory = o.lasting_directory.empty() ? o.directory : o.lasting_directory;
  return directory + "/member-" + std::to_string(value(o.self));
}

bool was_member(const Options& o) {
  const int fd = ::open(member_mark(o).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  std::uint64_t id = 0;
  const bool whole = ::read(fd, &id, sizeof id) == sizeof id;
  ::close(fd);
  return whole && id == o.log_id;
}

Outcome mark_member(const Options& o) {
  if (was_member(o)) return Done{};
  const std::string path = member_mark(o);
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("mark the replica as a member");
  const bool whole = ::write(fd, &o.log_id, sizeof o.log_id) == sizeof o.log_id && ::fsync(fd) == 0;
  const Error why = system_error("mark the replica as a member");
  ::close(fd);
  if (!whole) return why;
  return Done{};
}

std::uint32_t random_incarnation() noexcept {
  std::uint32_t word = 0;
  CRANE_ASSERT(::getrandom(&word, sizeof word, 0) == sizeof word);
  return std::max(word, core::kFirstIncarnation + 1);
}

core::Config config_for(const Options& o) {
  core::Config c;
  c.self = o.self;
  c.replicas = o.replicas;
  c.members = core::Members::first(o.members == 0 ? o.replicas : o.members);
  c.log_id = o.log_id;
  c.ring_bytes = o.ring_bytes;
  c.payload_bytes_max =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(c.payload_bytes_max, o.ring_bytes / 16));
  return c;
}

// What the core is started with; sets the incarnation in `config`.
core::Start start_of(const Options& o, const Fabric& fabric, core::Config& config) {
  core::Start start;
  const CellValue promise = fabric.own_cell(core::kPromiseCell);
  if (fabric.survived() && promise.words[core::kIncarnation] != 0) {
    start.kind = core::StartKind::kSurvived;
    std::copy(std::begin(promise.words), std::end(promise.words), start.promise.begin());
    config.incarnation = static_cast<std::uint32_t>(promise.words[core::kIncarnation]);
  } else if (was_member(o)) {  // also a memory that died between its creation and its first Start
    start.kind = core::StartKind::kLost;
    config.incarnation = random_incarnation();
  } else {
    start.kind = core::StartKind::kNew;
    config.campaign_at_once = value(o.self) == 0;
  }
  return start;
}

template <typename T>
Result<std::unique_ptr<Fabric>> as_fabric(Result<std::unique_ptr<T>> opened) {
  if (!opened) return opened.error();
  return std::unique_ptr<Fabric>(std::move(opened).value());
}

Result<std::unique_ptr<Fabric>> open_shm(const Options& o, std::shared_ptr<Urgency> urgency) {
  ShmOptions shm;
  shm.directory = o.directory;
  shm.self = o.self;
  shm.replicas = o.replicas;
  shm.group = o.log_id;
  shm.log_bytes = core::log_memory_bytes(o.ring_bytes);
  shm.urgency = std::move(urgency);
  return as_fabric(ShmFabric::open(shm));
}

Result<std::unique_ptr<Fabric>> open_tcp(const Options& o) {
  TcpOptions tcp;
  tcp.directory = o.directory;
  tcp.self = o.self;
  tcp.replicas = o.replicas;
  tcp.group = o.log_id;
  tcp.log_bytes = core::log_memory_bytes(o.ring_bytes);
  tcp.endpoints = o.endpoints;
  tcp.secret = o.secret;
  return as_fabric(TcpFabric::open(tcp));
}

Result<std::unique_ptr<Fabric>> open_verbs(const Options& o) {
  if (o.endpoints.size() != o.replicas) {
    return Error{Code::kBadArgument, 0, "one endpoint per replica is needed"};
  }
  VerbsOptions verbs;
  verbs.directory = o.directory;
  verbs.self = o.self;
  verbs.replicas = o.replicas;
  verbs.group = o.log_id;
  verbs.log_bytes = core::log_memory_bytes(o.ring_bytes);
  verbs.device = o.device;
  verbs.fence = o.fence;
  verbs.flag_devices = o.fence_flags_devices;
  verbs.huge_pages = o.huge_pages;
  verbs.address = o.endpoints[value(o.self)].address;
  verbs::LinksOptions links;
  links.self = o.self;
  links.endpoints = o.endpoints;
  links.secret = o.secret;
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

Result<std::unique_ptr<Driver>> open_driver(Options o, std::unique_ptr<Fabric> fabric) {
  core::Config config = config_for(o);
  if (o.durability == Durability::kDisk) {
    auto opened = open_disk(o, config, std::move(fabric), was_member(o));
    if (!opened) return opened;
    if (const Outcome marked = mark_member(o); !marked) return marked.error();
    return opened;
  }
  const core::Start start = start_of(o, *fabric, config);
  if (const Outcome marked = mark_member(o); !marked) return marked.error();
  return std::make_unique<Driver>(std::move(o), config, std::move(fabric), start);
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
