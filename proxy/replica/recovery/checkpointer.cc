// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/checkpointer.h"

#include <spdlog/spdlog.h>

#include <limits>

#include "dmt/base/assert.h"

namespace crane::replica {
namespace {

// From admission on.  A follower lags meanwhile; what it misses stays in the logs.
constexpr std::int64_t kRestNs = 5'000'000'000;
// A server that is not quiescent by then is taken not to come to it at this entry.
constexpr std::int64_t kSlideNs = 10'000'000;
// How often the server is looked at until it is quiescent: nobody rings then.
constexpr std::int64_t kLookNs = 500'000;
constexpr std::int64_t kNoLook = std::numeric_limits<std::int64_t>::max();

}  // namespace

void Checkpointer::enter(State state, std::int64_t now_ns) {
  state_ = state;
  since_ns_ = now_ns;
  status_.under_way = at_;
}

void Checkpointer::end() {
  state_ = State::kIdle;
  status_.under_way = Index{0};
}

void Checkpointer::refuse(Index at, const std::string& why) {
  spdlog::info("no checkpoint at entry {}: {}", value(at), why);
  ++status_.failed;
  status_.gave_up = at;
  status_.why = why;
  status_.busy = false;
}

void Checkpointer::refuse_for_now(Index at) {
  refuse(at, "the one before was not finished");
  status_.busy = true;
}

void Checkpointer::restarted(Index at, std::int64_t pack_ns) {
  ++status_.taken;
  status_.last = at;
  status_.prepare_ns = status_.rest_ns = status_.held_ns = 0;
  status_.pack_ns = pack_ns;
  spdlog::info("checkpoint at entry {}: the server's files, packed in {} ms", value(at),
               pack_ns / 1'000'000);
}

void Checkpointer::asked(std::int64_t now_ns, Index at) {
  if (state_ != State::kIdle) {
    refuse_for_now(at);
    return;
  }
  at_ = at;
  enter(State::kPreparing, now_ns);
  if (const Outcome begun = actions_.prepare(); !begun.ok()) give_up(begun.error().message());
}

void Checkpointer::prepared(std::int64_t now_ns) {
  if (state_ != State::kPreparing) return;  // given up
  prepare_ns_ = now_ns - since_ns_;
  const Index place = actions_.place();
  CRANE_ASSERT(place >= at_);
  at_ = place;
  admitted_ = false;
  asked_ns_ = 0;
  enter(State::kResting, now_ns);
}

void Checkpointer::give_up(const std::string& why) {
  spdlog::warn("no checkpoint at entry {}: {}", value(at_), why);
  ++status_.failed;
  status_.gave_up = at_;
  status_.why = why;
  status_.busy = false;
  const bool held = holds();
  end();
  actions_.discard();
  if (held) actions_.release();  // TAKE-1
}

void Checkpointer::slide() {
  const Index next = actions_.slide();
  if (next == Index{0}) return;
  CRANE_ASSERT(next > at_);
  at_ = next;
  admitted_ = false;
}

std::int64_t Checkpointer::step(std::int64_t now_ns, bool leads_others) {
  if (state_ != State::kResting) return kNoLook;
  if (leads_others) {
    give_up("this replica leads now");
    return kNoLook;
  }
  if (!admitted_) {  // however far behind it is: it would come no further without the hold
    admitted_ = actions_.admitted();
    since_ns_ = now_ns;
    if (!admitted_) return now_ns + kLookNs;
    if (asked_ns_ == 0) asked_ns_ = now_ns;
  }
  if (const std::string why = actions_.blocker(); !why.empty()) {
    if (now_ns - asked_ns_ >= kRestNs) {
      give_up("the server did not become quiescent: " + why);
      return kNoLook;
    }
    if (now_ns - since_ns_ >= kSlideNs) slide();
    return now_ns + kLookNs;
  }
  rest_ns_ = now_ns - asked_ns_;
  enter(State::kDumping, now_ns);
  if (const Outcome begun = actions_.dump(); !begun.ok())
    give_up(begun.error().message());  // TAKE-2
  return kNoLook;
}

void Checkpointer::dumped(std::int64_t now_ns, const std::string& why_not) {
  if (!why_not.empty()) {
    CRANE_ASSERT(state_ == State::kPreparing || holds());
    return give_up(why_not);
  }
  CRANE_ASSERT(state_ == State::kDumping);
  held_ns_ = now_ns - since_ns_;
  enter(State::kPublishing, now_ns);
  actions_.release();  // TAKE-1
  if (const Outcome begun = actions_.publish(); !begun.ok()) give_up(begun.error().message());
}

void Checkpointer::published(std::int64_t now_ns, const std::string& why_not) {
  CRANE_ASSERT(state_ == State::kPublishing);
  if (!why_not.empty()) return give_up(why_not);
  ++status_.taken;
  status_.last = at_;
  status_.prepare_ns = prepare_ns_;
  status_.rest_ns = rest_ns_;
  status_.held_ns = held_ns_;
  status_.pack_ns = now_ns - since_ns_;
  end();
  constexpr std::int64_t kMs = 1'000'000;
  spdlog::info(
      "checkpoint at entry {}: prepared in {} ms, quiescent after {} ms, held for {} ms, packed in "
      "{} ms",
      value(at_), prepare_ns_ / kMs, rest_ns_ / kMs, held_ns_ / kMs, status_.pack_ns / kMs);
}

}  // namespace crane::replica
