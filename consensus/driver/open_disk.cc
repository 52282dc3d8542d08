// SPDX-License-Identifier: Apache-2.0
#include "consensus/driver/open_disk.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "consensus/store/bdb_store.h"
#include "consensus/store/recovery.h"
#include "dmt/base/log.h"

namespace crane::consensus {
namespace {

// An answer waits for the disk of its sender.
constexpr std::uint64_t kAskTimeoutNs = 250'000'000;

std::string directory_of(const Options& o) {
  return o.store_directory + "/r" + std::to_string(value(o.self));
}

Error log_store_error(const Options& o, const Error& error) {
  Message() << "the store cannot be used: r" << static_cast<unsigned>(value(o.self)) << ": "
            << directory_of(o).c_str() << ": " << error.what << (error.detail != 0 ? ": " : "")
            << (error.detail != 0 ? std::strerror(error.detail) : "");
  return error;
}

Result<store::Recovered> forgotten() {
  store::Recovered r;
  r.start.kind = core::StartKind::kLost;
  r.why = "its owner asked to discard it";
  return r;
}

// If all replicas of a group have become learners, it cannot elect a leader.
void log_how_to_form_new_group(const Options& o, bool survived) {
  Message() << "if all replicas recover like this, none can lead: to begin a new group, stop them "
               "and start each with --force-new-group"
            << (survived ? ", or remove the memory that outlived the store, on all hosts: " : "")
            << (survived ? o.directory.c_str() : "");
}

Result<store::Recovered> recover(const Options& o, const core::Config& config, Fabric& fabric,
                                 store::Store& store, bool was_member,
                                 const core::Checkpoint* checkpoint) {
  // The store's tail is copied to its place in the ring (ROOM-1).
  if (store.state().last.pos > 0 && !fabric.back(0, fabric.log_memory().size())) {
    return Error{Code::kFull, ENOSPC, "allocate the log memory"};
  }
  store::Memory m;
  m.survived = fabric.survived();
  const CellValue cell = fabric.own_cell(core::kPromiseCell);
  std::copy(std::begin(cell.words), std::end(cell.words), m.promise.begin());
  m.log = fabric.log_memory();
  m.ring_bytes = config.ring_bytes;
  m.payload_bytes_max = config.payload_bytes_max;
  for (std::uint8_t i = 0; i < o.replicas; ++i) {  // grants of the previous incarnation
    if (ReplicaId{i} != o.self) fabric.revoke_writes(ReplicaId{i});
  }
  auto recovered =
      o.forget ? forgotten()
               : store::recover(store, m, config.log_id, was_member, checkpoint, o.acceptor_only);
  if (!recovered) return recovered;
  store::Recovered& r = recovered.value();
  if (r.starts_again) {
    Message() << "the store ended before the checkpoint: r" << static_cast<unsigned>(value(o.self))
              << ": " << directory_of(o).c_str() << ": it restarts after entry "
              << value(checkpoint->at.last.index);
  }
  const bool place = checkpoint != nullptr && checkpoint->at.pos > 0;
  if (r.start.kind == core::StartKind::kLost) {
    Message() << "the store is not whole: r" << static_cast<unsigned>(value(o.self)) << ": "
              << directory_of(o).c_str() << ": " << r.why.c_str()
              << "; Crane sets it aside, and this replica recovers as a learner";
    log_how_to_form_new_group(o, fabric.survived());
    r.incarnation = new_incarnation(config.incarnation);
    fabric.clear_log();
    for (std::uint8_t i = 0; i < kCellsMax; ++i) fabric.set_cell(i, {});
  } else if (r.incarnation == 0) {
    r.incarnation = place ? new_incarnation(config.incarnation) : config.incarnation;
  } else {
    return recovered;
  }
  const core::Cursor begin = place ? checkpoint->at : core::Cursor{};
  if (const Outcome made = store.reset_at({config.log_id, r.incarnation}, begin, {}); !made) {
    return made.error();
  }
  return recovered;
}

// In a restored group the replica takes the place of the member it was, once (RESTORED-1).
Outcome place_restored(const Options& o, const Marks& marks, store::Store& store, Fabric& fabric,
                       const core::Checkpoint* checkpoint) {
  // Empty: left by a start that was interrupted before the replica had taken its place.
  const bool empty = fabric.own_cell(core::kPromiseCell).words[core::kIncarnation] == 0;
  if (!marks.restored || checkpoint == nullptr || (fabric.survived() && !empty)) return Done{};
  if (marks.tail.empty()) {
    return store::take_place(store, o.log_id, o.self, marks.was_member, *checkpoint);
  }
  Message() << "storing the log of a backup: r" << static_cast<unsigned>(value(o.self)) << ": "
            << marks.tail.c_str();
  const Outcome placed =
      store::take_place_with(marks.tail, store, o.log_id, o.self, marks.was_member, *checkpoint);
  if (placed || placed.error().text.empty()) return placed;
  Error error = placed.error();
  error.text = marks.tail + ": the log of the backup cannot be used: " + error.text +
               "; restore the group again, from another copy of the backup";
  return error;
}

// One descriptor for the owner's loop: readable if the fabric's or the store's is.
Result<int> both(int fabric, int store) {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return system_error("make an epoll");
  for (const int one : {fabric, store}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(fd, EPOLL_CTL_ADD, one, &event) == 0) continue;
    const Error why = system_error("watch the store");
    ::close(fd);
    return why;
  }
  return fd;
}

}  // namespace

std::uint32_t new_incarnation(std::uint32_t first) noexcept {
  std::uint32_t random_bits = 0;
  CRANE_ASSERT(::getrandom(&random_bits, sizeof random_bits, 0) == sizeof random_bits);
  return std::max(random_bits, first + 1);
}

Result<std::unique_ptr<Driver>> open_disk(Options o, core::Config config,
                                          std::unique_ptr<Fabric> fabric, Marks marks,
                                          const core::Checkpoint* checkpoint) {
  if (o.store_directory.empty()) return Error{Code::kBadArgument, 0, "no store directory"};
  store::BdbOptions bdb;
  bdb.directory = directory_of(o);
  // On one host all stores may be on one disk.
  if (o.fabric == FabricKind::kShm) bdb.spare_bytes *= o.replicas;
  auto opened = store::BdbStore::open(bdb);
  if (!opened) return log_store_error(o, opened.error());
  store::Store& store = *opened.value();
  const Outcome placed = place_restored(o, marks, store, *fabric, checkpoint);
  if (!placed)
    return placed.error().text.empty() ? log_store_error(o, placed.error()) : placed.error();
  auto recovered = recover(o, config, *fabric, store, marks.was_member, checkpoint);
  if (!recovered) return log_store_error(o, recovered.error());
  store::Recovered& r = recovered.value();
  const bool has_server = !o.acceptor_only || r.start.kind != core::StartKind::kSurvived;
  r.start.checkpoint = has_server ? checkpoint : nullptr;
  config.durability = core::Durability::kDisk;
  config.ask_timeout_ns = kAskTimeoutNs;
  config.incarnation = r.incarnation;
  const Index place = !has_server             ? r.replay_to
                      : checkpoint == nullptr ? Index{}
                                              : checkpoint->at.last.index;
  config.campaign_at_once =
      r.start.kind == core::StartKind::kNew && o.self == ReplicaId{0} && place == Index{};
  o.bell_spacing_ns = 0;  // each batch waits for a follower's disk
  auto side =
      StoreSide::start(std::move(opened).value(), bdb.directory, o.self, place, r.replay_to);
  if (!side) return log_store_error(o, side.error());
  const auto fd = both(fabric->event_fd(), side.value()->event_fd());
  if (!fd) return fd.error();
  return std::make_unique<Driver>(std::move(o), config, std::move(fabric), r.start,
                                  std::move(side).value(), fd.value());
}

}  // namespace crane::consensus
