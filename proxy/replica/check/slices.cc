// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/check/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crane::replica {

using namespace slices;

namespace {

constexpr std::int64_t kLookNs = 10'000'000;
// A thread that stays this long at one clock is not sliced, whatever the reason.
constexpr std::int64_t kComputesNs = 25'000'000;
// This limit while the server starts.
constexpr std::int64_t kStartsNs = 1'000'000'000;
// An operator is warned of a computation that cannot be sliced when it has lasted this long.
constexpr std::int64_t kWarnNs = 1'000'000'000;
// The first computation that lasts this long is considered endless; each later one must last twice
// as long as the one before (SLICES-4).
constexpr std::int64_t kEndlessNs = 10'000'000'000;
// A slice whose length is wrong by less than this factor is not corrected.
constexpr double kToleratedFactor = 1.5;
constexpr double kFactorMax = 64;
constexpr std::int64_t kApart = 4, kApartMaxNs = 30'000'000'000;
constexpr unsigned kDoublingsMax = 8;
constexpr double kWeightMax = 2e9;

bool is_same(const Computing& a, const Computing& b) noexcept {
  return a.slot == b.slot && a.clock == b.clock;
}

const TickPoint* find(std::span<const TickPoint> points, const TickPoint& point) noexcept {
  const auto it = std::find_if(points.begin(), points.end(),
                               [&point](const TickPoint& p) { return is_same(p, point); });
  return it == points.end() ? nullptr : &*it;
}

}  // namespace

void Slices::step(const Event& event, std::int64_t now_ns) {
  now_ns_ = now_ns;
  std::visit([this](const auto& e) { on(e); }, event);
}

bool Slices::take_actions(ActionList& out) {
  out.clear();
  std::swap(out, actions_);
  return !out.empty();
}

void Slices::on(const Look& look) {
  due_ns_ = kNever;
  if (options_.slice_ns == 0) return;
  if (!look.leads) {
    led_ = known_proposed_ = false;
    proposed_.clear();
    early_.reset();
    return;
  }
  note_admitted(look.points);
  propose_known(look);
  correct_weight(look);
  look_for_computation(look);
}

void Slices::propose(const TickPoint& point) {
  proposed_.push_back(point);
  actions_.emplace_back(Propose{point});
}

void Slices::note_admitted(std::span<const TickPoint> points) {
  admitted_.assign(points.begin(), points.end());
  std::erase_if(proposed_, [points](const TickPoint& p) {
    const TickPoint* there = find(points, p);
    return there != nullptr && there->weight_ps == p.weight_ps;
  });
}

void Slices::propose_known(const Look& look) {
  if (!std::exchange(led_, true)) slices_seen_ = look.slices;
  if (std::exchange(known_proposed_, true)) return;
  for (const TickPoint& point : options_.known) {
    if (!is_known(point)) propose(point);
  }
}

// A known point is proposed again at the next look, any other one when it is found again.
void Slices::on(const NotProposed& refused) {
  std::erase_if(proposed_, [&refused](const TickPoint& p) { return is_same(p, refused.point); });
  known_proposed_ = false;
  due_ns_ = std::min(due_ns_, now_ns_ + kLookNs);
}

void Slices::correct_weight(const Look& look) {
  if (look.slices == slices_seen_ || look.point >= look.points.size()) return;
  slices_seen_ = look.slices;
  // A thread that was being searched was slow.
  if (std::exchange(followed_, finding_) || finding_ || look.cpu_ns == 0 ||
      find(proposed_, look.points[look.point]) != nullptr) {  // SLICES-2
    return;
  }
  const double factor = static_cast<double>(look.cpu_ns) / static_cast<double>(options_.slice_ns);
  if (factor < kToleratedFactor && factor > 1 / kToleratedFactor) return;
  TickPoint point = look.points[look.point];
  const double bounded = std::clamp(factor, 1 / kFactorMax, kFactorMax);
  const double weight = std::clamp(look.weight_ps * bounded, 1.0, kWeightMax);
  if (static_cast<std::uint32_t>(weight) == point.weight_ps) return;
  point.weight_ps = static_cast<std::uint32_t>(weight);
  propose(point);
}

void Slices::look_for_computation(const Look& look) {
  if (!look.thread || !is_same(*look.thread, computing_)) {
    computing_ = look.thread.value_or(Computing{});
    since_ns_ = now_ns_;
    early_.reset();
  }
  if (!look.thread) return;
  due_ns_ = now_ns_ + kLookNs;
  begin_again(look);
  const std::int64_t patience =
      look.serves ? std::max(kComputesNs, 4 * options_.slice_ns) : kStartsNs;
  const bool computes = now_ns_ - since_ns_ >= patience;
  if (finding_ || !computes || now_ns_ < next_find_ns_) return;  // SLICES-1, SLICES-3
  find_began_ns_ = now_ns_;
  finding_ = followed_ = true;
  found_for_ = computing_;
  found_since_ns_ = since_ns_;
  actions_.emplace_back(Find{computing_.slot, proposed_});
}

void Slices::begin_again(const Look& look) {
  if (!early_ || !look.may_begin_again) return;
  const std::int64_t endless = kEndlessNs << std::min(look.early_points, kDoublingsMax);
  if (now_ns_ - since_ns_ < endless) return;  // SLICES-4
  actions_.emplace_back(BeginAgain{{*early_, computing_.clock}});
}

bool Slices::is_known(const TickPoint& point) const noexcept {
  return find(proposed_, point) != nullptr || find(admitted_, point) != nullptr;
}

std::size_t Slices::points_to_be() const noexcept {
  const auto is_new = [this](const TickPoint& p) { return find(admitted_, p) == nullptr; };
  return admitted_.size() +
         static_cast<std::size_t>(std::count_if(proposed_.begin(), proposed_.end(), is_new));
}

// SLICES-3.
void Slices::note_look(bool found) {
  finding_ = false;
  in_vain_ = found ? 0 : std::min(in_vain_ + 1, kDoublingsMax);
  const std::int64_t apart = (now_ns_ - find_began_ns_) * (kApart << in_vain_);
  next_find_ns_ = now_ns_ + std::clamp(apart, kLookNs, kApartMaxNs);
}

void Slices::on(const Found& found) {
  note_look(found.point.has_value());
  if (!led_) return;
  if (!found.point) {
    unsliced_ = {found.where, now_ns_ - found_since_ns_};
    const bool warns = unsliced_.lasted_ns >= kWarnNs;
    if (is_same(found_for_, logged_for_) && (warned_ || !warns)) return;
    logged_for_ = found_for_;
    warned_ = warns;
    actions_.emplace_back(LogMessage{
        warns, fmt::format("slot {} has computed for {} ms at clock {} and no tick point can "
                           "be found there: the other threads wait; it is in {}",
                           found_for_.slot, (now_ns_ - found_since_ns_) / 1'000'000,
                           found_for_.clock, found.where)});
    return;
  }
  const bool counts = find(admitted_, *found.point) != nullptr;
  if (!counts && is_same(found_for_, computing_)) early_ = found.point;
  if (is_known(*found.point)) return;
  if (points_to_be() >= options_.points_max) {
    actions_.emplace_back(LogMessage{true, fmt::format("{} would be a tick point, but there are {} "
                                                       "already",
                                                       found.where, options_.points_max)});
    return;
  }
  actions_.emplace_back(LogMessage{
      false, fmt::format("a computation of slot {} is sliced from its next turn on, at {}",
                         found_for_.slot, found.where)});
  propose(*found.point);
}

}  // namespace crane::replica
