// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/checkpoint_packer.h"

#include <spdlog/spdlog.h>
#include <sys/utsname.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "checkpoint/criu.h"
#include "dmt/base/assert.h"
#include "dmt/base/clock.h"
#include "dmt/layout.h"
#include "proxy/host/segment.h"

namespace crane::node {
namespace {

constexpr unsigned kCheckpointsKept = 3;

}  // namespace

CheckpointPacker::CheckpointPacker(event_base* base, const Config& config, const Agreed& agreed,
                                   Owner& owner)
    : base_(base),
      config_(config),
      agreed_(agreed),
      owner_(owner),
      checkpoints_({config.checkpoints_dir(), 1, {}}) {
  (void)checkpoints_.clean(checkpoint::Leftovers::kAllButShipments).ok();
}

CheckpointPacker::~CheckpointPacker() { stop(); }

// --- making one ---------------------------------------------------------------------------------

Outcome CheckpointPacker::begin(Index at) {
  CRANE_ASSERT(idle());  // PACK-1
  auto staging = checkpoints_.begin(at);
  if (!staging.ok()) return staging.error();
  staging_.emplace(std::move(staging).value());
  at_ = at;
  return Done{};
}

Outcome CheckpointPacker::copy_shared(const std::string& name,
                                      std::span<const checkpoint::FileRange> left_out) {
  return checkpoint::copy_tree(config_.replica_shm_dir() + "/" + name, staging_->path + "/" + name,
                               left_out);
}

Outcome CheckpointPacker::pack(CheckpointContents contents) {
  CRANE_ASSERT(staging_.has_value() && worker_.idle());  // PACK-1
  tier_ = contents.tier;
  at_ = contents.state.at.index;
  end_ = contents.state.position;
  const Outcome begun =
      worker_.start([&](const auto& report) { return pack_here(contents, report); });
  meter_ = {};
  if (!begun.ok()) return begun;
  event_assign(
      &event_, base_, worker_.event_fd(), EV_READ | EV_PERSIST,
      [](int, short, void* packer) { static_cast<CheckpointPacker*>(packer)->advance(); }, this);
  event_add(&event_, nullptr);
  return Done{};
}

checkpoint::Manifest CheckpointPacker::manifest_of(const CheckpointContents& contents) const {
  checkpoint::Manifest m;
  m.group = config_.group;
  m.log_digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  m.at = contents.state.at;
  m.cursor = contents.state.position;
  m.replica = config_.replica;
  m.layout_version = dmt::kLayoutVersion;
  utsname machine{};
  if (::uname(&machine) == 0) m.kernel = machine.release;
  if (const auto criu = checkpoint::find_criu(); criu.ok()) {
    if (auto version = checkpoint::criu_version(criu.value()); version.ok()) {
      m.criu = std::move(version).value();
    }
  }
  m.program = config_.program;
  m.tier = contents.tier;
  m.library_digest = checkpoint::digest_of_file(config_.libcrane);
  m.schedule_hash = contents.state.hash;
  m.clock = contents.state.clock;
  m.output_digest = contents.output_digest;
  nlohmann::json state = to_json(contents.state);
  state["files"] = contents.files;
  state["agreed"] = agreed_;
  if (m.tier == checkpoint::Tier::kRestart) state["carried"] = contents.carried;
  m.node_state = state.dump();
  return m;
}

// Runs in the packing process.  Returns the checkpoint's name after it was verified.
Result<std::string> CheckpointPacker::pack_here(CheckpointContents& contents,
                                                const checkpoint::Worker::Report& report) {
  std::uint64_t packed = 0;  // 1: each byte is read once more, so it counts twice in all
  const auto bytes = [&report, &packed](std::uint64_t done, std::uint64_t of) {
    report.bytes(packed * of + done, 2 * of);
  };
  checkpoint::Checkpoints here({config_.checkpoints_dir(), 1, report.line, bytes});
  // Not copied earlier, to keep the pause of the server short.
  if (contents.tier == checkpoint::Tier::kCriu) {
    if (const Outcome copied = copy_shared(kSharedLibrary); !copied.ok()) return copied.error();
  }
  // Removes what earlier processes left, and shipments older than this checkpoint.
  (void)here.clean(checkpoint::Leftovers::kAll).ok();
  auto name = here.publish(*staging_, manifest_of(contents));
  packed = 1;
  const Outcome well = name.ok() ? here.verify(name.value()) : Outcome{name.error()};
  if (!well.ok()) return well.error();
  if (!config_.record.empty()) keep_with_recording(name.value());
  // A checkpoint that cannot be removed now is tried again the next time.
  (void)here.keep(kCheckpointsKept, relied_).ok();
  return name;
}

// Copies the checkpoint to the recording, which outlives the group: a replay can begin at it.
void CheckpointPacker::keep_with_recording(const std::string& name) {
  const std::string there = config_.record + "/checkpoints";
  const Outcome kept = checkpoints_.ship(name, there);
  if (!kept.ok())
    spdlog::warn("the checkpoint was not copied to the recording: {}", kept.error().message());
  (void)checkpoint::Checkpoints({there, 1, {}}).keep(kCheckpointsKept).ok();
}

void CheckpointPacker::advance() {
  owner_.woke();
  // The event would watch a descriptor that the worker closes.
  event_del(&event_);
  if (!worker_.advance()) {
    meter_.step(worker_.bytes_done(), worker_.bytes_in_all(), monotonic_ns());
    event_add(&event_, nullptr);
    return;
  }
  const bool well = worker_.result().ok();
  if (well) {
    staging_.reset();  // its directory is now the checkpoint's
    if (config_.on_disk()) own_.push_back(at_);
  } else {
    abandon();
  }
  owner_.packed(tier_, at_, well ? "" : worker_.result().error().message());
}

void CheckpointPacker::abandon() {
  if (!staging_) return;
  checkpoints_.abandon(*staging_);
  staging_.reset();
}

void CheckpointPacker::stop() {
  if (!worker_.idle()) event_del(&event_);
  worker_.stop();
  abandon();
}

// --- checkpoints before which the log may be truncated ------------------------------------------

void CheckpointPacker::find_own() {
  const auto all = checkpoints_.list();
  if (!all.ok()) return;
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  for (const checkpoint::Listed& one : all.value()) {
    const bool ours = one.manifest.group == config_.group && one.manifest.log_digest == digest;
    if (one.verified && one.damage.empty() && ours) own_.push_back(one.manifest.at.index);
  }
  std::sort(own_.begin(), own_.end());
}

// Not during packing, because the packing process keeps the checkpoint relied on at its begin.
std::optional<Index> CheckpointPacker::take_relied(Index trusted) {
  if (own_.empty() || !worker_.idle()) return std::nullopt;
  const auto behind = std::upper_bound(own_.begin(), own_.end(), trusted);  // PACK-2
  if (behind == own_.begin()) return std::nullopt;
  relied_ = *std::prev(behind);
  own_.erase(own_.begin(), behind);
  return relied_;
}

void CheckpointPacker::distrust(std::uint64_t verified) {
  stop();
  const auto all = checkpoints_.list();
  if (!all.ok()) return;
  for (const checkpoint::Listed& one : all.value()) {
    if (value(one.manifest.at.index) <= verified) continue;
    CRANE_ASSERT(one.manifest.at.index != relied_);  // IMAGE-5
    const Outcome gone = checkpoints_.remove(one.name);
    spdlog::warn("checkpoint {} is younger than the last verified entry {}: {}", one.name, verified,
                 gone.ok() ? "removed" : gone.error().message());
  }
}

}  // namespace crane::node
