// SPDX-License-Identifier: Apache-2.0
#include "dmt/message_notices.h"

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/signals.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

// Objects named by kind and number, like those of signals (signals.cc).
constexpr std::uint64_t kNoticeObjects = (1ull << 62) | (4ull << 32);

constinit Bound notices_bound{kMessageNoticesMax, "registrations of mq_notify",
                              "mq_notify fails (ENOMEM)"};

// The record keeps its content for the thread that waits for it, until it is reused.
void end_registration(Layout& w, std::uint32_t notice, bool fired) noexcept {
  MessageNotice& n = w.message_notices[notice];
  n.used = false;
  n.fired = fired;
  signal(w, notice_object(notice), kAll);
}

}  // namespace

std::uint32_t find_notice(const Layout& w, std::uint64_t object) noexcept {
  for (std::uint32_t i = 0; i < kMessageNoticesMax; ++i) {
    if (w.message_notices[i].used && w.message_notices[i].object == object) return i;
  }
  return kNoNotice;
}

std::uint32_t add_notice(Layout& w, const MessageNotice& like) noexcept {
  CRANE_ASSERT(find_notice(w, like.object) == kNoNotice);  // NOTICE-1
  for (std::uint32_t i = 0; i < kMessageNoticesMax; ++i) {
    MessageNotice& n = w.message_notices[i];
    if (n.used) continue;
    const std::uint32_t generation = n.generation + 1;
    n = like;
    n.used = true;
    n.generation = generation;
    return i;
  }
  notices_bound.count_refusal();
  return kNoNotice;
}

void remove_notice(Layout& w, std::uint64_t object, std::uint16_t process) noexcept {
  const std::uint32_t notice = find_notice(w, object);
  if (notice == kNoNotice || w.message_notices[notice].process != process) return;
  end_registration(w, notice, false);
}

void remove_notices(Layout& w, std::uint16_t process) noexcept {
  for (std::uint32_t i = 0; i < kMessageNoticesMax; ++i) {
    const MessageNotice& n = w.message_notices[i];
    if (n.used && n.process == process) end_registration(w, i, false);
  }
}

void fire_notice(Layout& w, std::uint64_t object, SignalInfo sender) noexcept {
  const std::uint32_t notice = find_notice(w, object);
  if (notice == kNoNotice) return;
  const MessageNotice& n = w.message_notices[notice];
  sender.value = n.value;
  if (n.notify == Notify::kSignal) send_signal(w, n.process, n.signo, sender);
  end_registration(w, notice, true);
}

bool is_registered(const Layout& w, std::uint32_t notice, std::uint32_t generation) noexcept {
  const MessageNotice& n = w.message_notices[notice];
  return n.used && n.generation == generation;
}

bool has_fired(const Layout& w, std::uint32_t notice, std::uint32_t generation) noexcept {
  const MessageNotice& n = w.message_notices[notice];
  return n.fired && n.generation == generation;
}

std::uint64_t notice_object(std::uint32_t notice) noexcept { return kNoticeObjects + notice; }

}  // namespace crane::dmt
