// SPDX-License-Identifier: Apache-2.0
#include "tests/verbs/verbs_group.h"

#include <filesystem>

#include "consensus/fabric/verbs_links.h"

namespace crane::test {

using consensus::CellValue;
using consensus::VerbsFabric;

namespace {

struct Half {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};
Half g_half;

}  // namespace

class ServedFabric final : public KeepingFabric<VerbsFabric> {
 public:
  using KeepingFabric::KeepingFabric;

  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override {
    inner_->set_cell(cell, v);
    if (++cells_set_ % 64 == 0) absorb();  // connects even if no other thread polls
  }
  Result<Key> permit_writes(ReplicaId peer) noexcept override {
    meet(peer);  // after a grant without a connection the holder would have to request it again
    return inner_->permit_writes(peer);
  }
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override {
    if (!met_) meet(peer);
    met_ = true;
    inner_->write(peer, key, offset, bytes, token);
  }
  bool prepare_to_sleep() noexcept override {
    asleep_ = KeepingFabric::prepare_to_sleep();
    return asleep_;
  }

 private:
  void meet(ReplicaId peer) {
    if (inner_->connected(peer)) return;
    until([&] { return serve(), inner_->connected(peer); });
  }
  void settle() override {
    require([&] {
      absorb();
      if (settled()) return true;
      serve_others();
      return false;
    });
  }

  bool met_ = false;
  std::uint64_t cells_set_ = 0;
};

// --- group --------------------------------------------------------------------------------------

VerbsGroup::VerbsGroup(Fence fence, HugePages pages)
    : port_(next_verbs_port()),
      fence_(fence),
      pages_(pages),
      members_(std::make_shared<Members>()) {}

std::unique_ptr<Fabric> VerbsGroup::open(std::uint8_t id, std::uint8_t replicas) {
  consensus::verbs::LinksOptions links;
  links.self = ReplicaId{id};
  links.secret.fill(std::byte{7});
  links.endpoints = verbs_endpoints(replicas, port_);
  auto bootstrap = consensus::verbs::Links::open(links);
  if (!bootstrap) return nullptr;
  consensus::VerbsOptions options;
  options.directory = directory_.path();
  options.self = ReplicaId{id};
  options.replicas = replicas;
  options.group = 77;
  options.log_bytes = kLogBytes;
  options.address = links.endpoints[id].address;
  options.fence = fence_;
  options.huge_pages = pages_;
  auto opened = VerbsFabric::open(options, std::move(bootstrap).value());
  if (!opened) return nullptr;
  auto out = std::make_unique<ServedFabric>(members_, std::move(opened).value(), ReplicaId{id});
  out->meet_all();
  return out;
}

void VerbsGroup::lose_memory(std::uint8_t id) {
  std::filesystem::remove_all(directory_.path() + "/r" + std::to_string(id));
}

void VerbsGroup::hold(Fabric& fabric) noexcept { static_cast<ServedFabric&>(fabric).hold(true); }

void VerbsGroup::release(Fabric& fabric) noexcept {
  static_cast<ServedFabric&>(fabric).hold(false);
}

void VerbsGroup::half_write(Fabric&, ReplicaId, Key, std::uint64_t offset,
                            std::span<const std::byte> bytes) {
  g_half = {offset, {bytes.begin(), bytes.end()}};
}

bool VerbsGroup::other_half(Fabric& fabric, ReplicaId peer, Key key) {
  fabric.write(peer, key, g_half.offset, g_half.bytes, Token{77});
  return completion_of(fabric, Token{77}).ok;
}

}  // namespace crane::test
