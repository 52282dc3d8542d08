// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_hosts.h"

#include <algorithm>

namespace crane::replica::sim {

void ModelHosts::publish(const StoredCheckpoint& one, std::uint64_t relied) {
  auto& all = seen_by(one.by);
  const auto own = [&](const StoredCheckpoint& c) { return c.by == one.by; };
  std::erase_if(all, [&](const StoredCheckpoint& c) { return own(c) && c.at == one.at; });
  const auto place =
      std::upper_bound(all.begin(), all.end(), one.at,
                       [](std::uint64_t at, const StoredCheckpoint& c) { return at < c.at; });
  all.insert(place, one);
  unsigned kept = 0;
  for (std::size_t i = all.size(); i > 0; --i) {
    const StoredCheckpoint& c = all[i - 1];
    if (!own(c) || c.at == relied) continue;
    if (c.distrusted() || ++kept > 2) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
}

void ModelHosts::differed(unsigned id, Began began, std::uint64_t at, std::uint64_t verified) {
  std::erase_if(seen_by(id),
                [&](const StoredCheckpoint& c) { return c.by == id && c.at > verified; });
  mark(id, began, at);
}

void ModelHosts::mark(unsigned id, Began began, std::uint64_t at) {
  for (StoredCheckpoint& c : seen_by(id)) {
    if (began.at == 0 || c.at != began.at || c.by != began.by) continue;
    c.differed = c.differed_at == at ? c.differed + 1 : 1;
    c.differed_at = at;
  }
}

std::vector<StoredCheckpoint*> ModelHosts::to_try(unsigned id) {
  std::vector<StoredCheckpoint*> list;
  auto& all = seen_by(id);
  for (auto one = all.rbegin(); one != all.rend(); ++one) list.push_back(&*one);
  std::stable_partition(list.begin(), list.end(), [](const auto* c) { return !c->distrusted(); });
  return list;
}

std::optional<StoredCheckpoint> ModelHosts::fetch(
    unsigned to, std::uint64_t behind, const std::function<bool(unsigned)>& has_files) const {
  std::optional<StoredCheckpoint> newest;
  for (unsigned from = 0; several_ && from < directories_.size(); ++from) {
    if (from == to || lost(from) || !has_files(from)) continue;
    for (const StoredCheckpoint& c : directories_[from]) {
      if (c.damaged || c.distrusted() || c.at <= behind) continue;
      if (!newest || c.at > newest->at) newest = c;
    }
  }
  return newest;
}

}  // namespace crane::replica::sim
