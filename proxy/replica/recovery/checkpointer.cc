// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/recovery/checkpointer.h"

#include <fmt/format.h>

#include "dmt/base/assert.h"

namespace crane::replica {
namespace {

// Time from admission on.  A follower lags meanwhile; what it misses stays in the logs.
constexpr std::int64_t kRestNs = 5'000'000'000;
// A server that is not quiescent by then will probably not become so at this entry.
constexpr std::int64_t kSlideNs = 10'000'000;
// How often the server is looked at until it is quiescent: no event reports that.
constexpr std::int64_t kLookNs = 500'000;

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

void Checkpointer::refuse(Index at, const std::string& why, ActionList& out) {
  out.push_back(
      LogMessage{Level::kInfo, fmt::format("no checkpoint at entry {}: {}", value(at), why)});
  ++status_.failed;
  status_.gave_up = at;
  status_.why = why;
  status_.busy = false;
}

void Checkpointer::refuse_for_now(Index at, ActionList& out) {
  refuse(at, "the previous checkpoint was not finished", out);
  status_.busy = true;
}

void Checkpointer::restarted(Index at, std::int64_t pack_ns, ActionList& out) {
  ++status_.taken;
  status_.last = at;
  status_.prepare_ns = status_.rest_ns = status_.held_ns = 0;
  status_.pack_ns = pack_ns;
  out.push_back(LogMessage{
      Level::kInfo, fmt::format("checkpoint at entry {}: the server's files, packed in {} ms",
                                value(at), pack_ns / 1'000'000)});
}

void Checkpointer::asked(std::int64_t now_ns, Index at, ActionList& out) {
  if (state_ != State::kIdle) return refuse_for_now(at, out);
  at_ = at;
  enter(State::kPreparing, now_ns);
  out.push_back(Prepare{at});
}

void Checkpointer::prepared(std::int64_t now_ns, Index place) {
  if (state_ != State::kPreparing) return;  // given up
  prepare_ns_ = now_ns - since_ns_;
  CRANE_ASSERT(place >= at_);
  at_ = place;
  admitted_ = false;
  first_try_ns_ = look_ns_ = 0;
  enter(State::kResting, now_ns);
}

void Checkpointer::give_up(const std::string& why, ActionList& out) {
  out.push_back(
      LogMessage{Level::kWarning, fmt::format("no checkpoint at entry {}: {}", value(at_), why)});
  ++status_.failed;
  status_.gave_up = at_;
  status_.why = why;
  status_.busy = false;
  const bool held = holds();
  end();
  out.push_back(Discard{});
  if (held && mutant_ != Mutant::kHoldForever) out.push_back(ReleaseLog{});  // TAKE-1
}

void Checkpointer::step(bool leads_others, ActionList& out) {
  if (state_ != State::kResting) return;
  if (leads_others) return give_up("this replica leads now", out);
  out.push_back(Look{at_});
}

void Checkpointer::looked(std::int64_t now_ns, const Looked& seen, ActionList& out) {
  if (state_ != State::kResting) return;
  look_ns_ = now_ns + kLookNs;
  if (!admitted_) {  // however far behind it is: without the hold it would be no further
    admitted_ = seen.admitted || mutant_ == Mutant::kDumpEarly;
    since_ns_ = now_ns;
    if (!admitted_) return;
    if (first_try_ns_ == 0) first_try_ns_ = now_ns;
  }
  if (!seen.blocker.empty()) {
    if (now_ns - first_try_ns_ >= kRestNs) {
      return give_up("the server did not become quiescent: " + seen.blocker, out);
    }
    if (now_ns - since_ns_ >= kSlideNs) out.push_back(Slide{});
    return;
  }
  rest_ns_ = now_ns - first_try_ns_;
  enter(State::kDumping, now_ns);
  out.push_back(Dump{});  // TAKE-2
}

void Checkpointer::slid(Index at) {
  if (state_ != State::kResting || at == Index{0}) return;
  CRANE_ASSERT(at > at_);
  at_ = at;
  admitted_ = false;
}

void Checkpointer::server_ends(ActionList& out) {
  if (state_ != State::kPreparing && state_ != State::kResting) return;
  give_up("the server is ended, and another one takes its place", out);
}

void Checkpointer::dumped(std::int64_t now_ns, const std::string& why_not, ActionList& out) {
  if (state_ != State::kPreparing && !holds()) return;  // given up
  if (!why_not.empty()) return give_up(why_not, out);
  CRANE_ASSERT(state_ == State::kDumping);
  held_ns_ = now_ns - since_ns_;
  enter(State::kPublishing, now_ns);
  out.push_back(ReleaseLog{});  // TAKE-1
  out.push_back(Pack{});
}

void Checkpointer::published(std::int64_t now_ns, const std::string& why_not, ActionList& out) {
  if (state_ != State::kPublishing) return;
  if (!why_not.empty()) return give_up(why_not, out);
  ++status_.taken;
  status_.last = at_;
  status_.prepare_ns = prepare_ns_;
  status_.rest_ns = rest_ns_;
  status_.held_ns = held_ns_;
  status_.pack_ns = now_ns - since_ns_;
  end();
  constexpr std::int64_t kMs = 1'000'000;
  out.push_back(LogMessage{
      Level::kInfo,
      fmt::format("checkpoint at entry {}: prepared in {} ms, quiescent after {} ms, held for {} "
                  "ms, packed in {} ms",
                  value(at_), prepare_ns_ / kMs, rest_ns_ / kMs, held_ns_ / kMs,
                  status_.pack_ns / kMs)});
}

}  // namespace crane::replica
