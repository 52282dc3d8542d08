// SPDX-License-Identifier: Apache-2.0
// What a replica of this group comes back by: the processes as they were, a new server on the files
// as they were, or all inputs again.
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "proxy/clients/encode.h"
#include "proxy/node/node.h"

namespace crane::node {
namespace {

// What a follower tells its leader, in one note.
struct RefusalNote {
  char why[200];
};
static_assert(sizeof(RefusalNote) <= consensus::kNoteBytesMax &&
              sizeof(RefusalNote) != sizeof(proxy::Digest));

}  // namespace

// A dump was there, or was refused for good, or neither.
void Node::note_refusal(bool dumped, const std::string& refusal) {
  if (!dumped && refusal.empty()) return;
  // The leader asks for checkpoints, and has none taken of its own server.
  if (consensus_ != nullptr && !leadership_.leads() &&
      value(leadership_.leader()) < config_.replicas) {
    RefusalNote note{};
    refusal.copy(note.why, sizeof note.why - 1);
    (void)consensus_->send_note(leadership_.leader(),
                                proxy::bytes_of(note));  // lost: the next one will tell
  }
  set_refusal(refusal);
}

bool Node::hear_refusal(std::span<const std::byte> bytes) {
  RefusalNote note;
  if (bytes.size() != sizeof note || !proxy::read_body(bytes, note)) return false;
  note.why[sizeof note.why - 1] = '\0';
  if (leadership_.leads()) set_refusal(note.why);
  return true;
}

void Node::set_refusal(const std::string& refusal) {
  if (refusal == refused_) return;
  refused_ = refusal;
  if (refusal.empty()) {
    spdlog::info("recovery: CRIU dumps this server now");
  } else {
    spdlog::warn("recovery: this server cannot be dumped: {}", refusal);
  }
  // crane-run knows who waits for a checkpoint.
  supervisor_.refused_dumps(refused_);
}

// Whether entries 1, 2, .. can still be had.
bool Node::reaches_beginning() const {
  if (config_.on_disk()) return value(consensus_->status().first) <= 1;
  const std::uint64_t ring =
      config_.ring_bytes != 0 ? config_.ring_bytes : consensus::Options{}.ring_bytes;
  return intake_->end() <= ring;
}

RecoveryStatus Node::recovery() const {
  RecoveryStatus r;
  r.refused = refused_;
  r.came_back_by = came_back_by_;
  if (!config_.container) {
    r.why = "the server runs without a container";
    return r;
  }
  if (config_.replicas == 1 && !config_.on_disk()) {
    r.why = "a single replica in memory is all there is";
    return r;
  }
  const std::string digest = checkpoint::digest_of_log(config_.group, config_.log_id);
  const checkpoint::Listed* newest = newest_.look(config_.dir, digest);
  if (!refused_.empty()) {
    r.why = refused_;
  } else if (newest == nullptr) {
    r.why = "no checkpoint was taken yet";
  }
  if (newest != nullptr) {
    r.tier = checkpoint::name_of(newest->manifest.tier);
    r.entry = value(newest->manifest.at.index);
    if (newest->manifest.tier == checkpoint::Tier::kCriu) r.why.clear();
  } else if (reaches_beginning()) {
    r.tier = "replay";
  } else {
    r.why += "; the log does not reach back to its beginning any more";
  }
  return r;
}

}  // namespace crane::node
