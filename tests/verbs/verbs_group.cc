// SPDX-License-Identifier: Apache-2.0
#include "tests/verbs/verbs_group.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>

#include "consensus/fabric/verbs_links.h"

namespace crane::test {

using consensus::CellValue;
using consensus::VerbsFabric;
using Members = std::vector<ServedFabric*>;

namespace {

constexpr int kSettleMs = 30'000;

struct Half {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};
Half g_half;

}  // namespace

class ServedFabric final : public Fabric {
 public:
  ServedFabric(std::shared_ptr<Members> members, std::unique_ptr<VerbsFabric> inner, ReplicaId self)
      : members_(std::move(members)), inner_(std::move(inner)), self_(self) {
    members_->push_back(this);
  }
  ~ServedFabric() override { std::erase(*members_, this); }

  std::span<std::byte> log_memory() noexcept override { return inner_->log_memory(); }
  bool survived() const noexcept override { return inner_->survived(); }
  void set_cell(std::uint8_t cell, const CellValue& v) noexcept override {
    inner_->set_cell(cell, v);
    if (++cells_set_ % 64 == 0) absorb();  // connects even if no other thread polls
  }
  CellValue own_cell(std::uint8_t cell) const noexcept override { return inner_->own_cell(cell); }
  Result<Key> permit_writes(ReplicaId peer) noexcept override {
    meet(peer);  // after a grant without a connection the holder would have to request it again
    return inner_->permit_writes(peer);
  }
  void revoke_writes(ReplicaId peer) noexcept override { inner_->revoke_writes(peer); }
  Key permitted(ReplicaId peer) const noexcept override { return inner_->permitted(peer); }
  void open_log(ReplicaId peer, Key key, Token token) noexcept override {
    inner_->open_log(peer, key, token);
  }
  void close_log(ReplicaId peer) noexcept override { inner_->close_log(peer); }
  void write(ReplicaId peer, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
             Token token) noexcept override {
    if (!met_) meet(peer);
    met_ = true;
    inner_->write(peer, key, offset, bytes, token);
  }
  void read(ReplicaId peer, std::uint64_t offset, std::uint64_t n, Token token) noexcept override {
    inner_->read(peer, offset, n, token);
  }
  void read_cell(ReplicaId peer, std::uint8_t cell, Token token) noexcept override {
    inner_->read_cell(peer, cell, token);
  }
  bool send_request(ReplicaId peer, std::span<const std::byte> body) noexcept override {
    if (!inner_->send_request(peer, body)) return false;
    for (ServedFabric* const m : *members_) {
      if (m->self_ == peer && m->process_ == ::getpid()) ++m->expected_;
    }
    return true;
  }
  std::size_t poll(std::span<FabricEvent> out) noexcept override {
    asleep_ = false;
    handed_.clear();
    if (kept_.empty()) settle();
    std::size_t n = 0;
    while (n < out.size() && !kept_.empty()) {
      handed_.push_back(std::move(kept_.front()));
      kept_.pop_front();
      const Seen& s = handed_.back();
      out[n++] = {s.kind, s.peer, s.ok, s.token, s.data};
    }
    return n;
  }
  int event_fd() const noexcept override { return inner_->event_fd(); }
  bool prepare_to_sleep() noexcept override {
    asleep_ = kept_.empty() && inner_->prepare_to_sleep();
    return asleep_;
  }
  void wake_self() noexcept override { inner_->wake_self(); }
  void ring_doorbell(ReplicaId peer) noexcept override { inner_->ring_doorbell(peer); }
  bool connected(ReplicaId peer) const noexcept override { return inner_->connected(peer); }
  void tidy() noexcept override { inner_->tidy(); }

  void hold(bool held) noexcept { held_ = held; }
  // Waits until all fabrics of this process are connected with this one.
  void meet_all() {
    REQUIRE(until([&] {
      absorb();
      serve_others();
      return std::all_of(members_->begin(), members_->end(), [&](const ServedFabric* m) {
        return m == this || !m->takes_part() ||
               (inner_->connected(m->self_) && m->connected(self_));
      });
    }));
  }

 private:
  bool takes_part() const noexcept { return !held_ && process_ == ::getpid(); }
  void meet(ReplicaId peer) {
    if (inner_->connected(peer)) return;
    until([&] { return absorb(), serve_others(), inner_->connected(peer); });
  }
  void absorb() {
    FabricEvent events[16];
    while (const std::size_t n = inner_->poll(events)) {
      for (std::size_t i = 0; i < n; ++i) {
        const FabricEvent& e = events[i];
        if (e.kind == Kind::kRequest && expected_ > 0) --expected_;
        if (e.kind == Kind::kPeerDown) expected_ = 0;
        kept_.push_back({e.kind, e.peer, e.ok, e.token, {e.data.begin(), e.data.end()}});
      }
    }
  }
  void serve_others() {
    for (ServedFabric* const m : *members_) {
      if (m != this && m->takes_part() && !m->asleep_) m->absorb();
    }
  }
  void settle() {
    const bool settled = until(
        [&] {
          absorb();
          if (inner_->test_only_outstanding() == 0 && expected_ == 0) return true;
          serve_others();
          return false;
        },
        kSettleMs);
    if (!settled) {
      ::dprintf(2, "fabric test: operations did not complete\n");
      std::abort();
    }
  }

  std::shared_ptr<Members> members_;
  std::unique_ptr<VerbsFabric> inner_;
  ReplicaId self_;
  pid_t process_ = ::getpid();
  bool held_ = false;
  bool met_ = false;
  bool asleep_ = false;
  std::uint64_t cells_set_ = 0;
  std::size_t expected_ = 0;  // requests under way from fabrics of this process
  std::deque<Seen> kept_;
  std::deque<Seen> handed_;
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
