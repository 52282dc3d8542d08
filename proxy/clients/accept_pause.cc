// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/accept_pause.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>

namespace crane::proxy {

AcceptPause::~AcceptPause() {
  if (on_) event_del(&event_);
}

AcceptError AcceptPause::failed(int error, const std::string& where) {
  const AcceptError kind = classify_accept_error(error);
  if (kind != AcceptError::kHost || on_) return kind;
  if (!std::exchange(logged_, true)) {
    spdlog::warn("cannot accept at {}: {}; {} wait, and accept() is tried again every {} ms", where,
                 std::strerror(error), what_, kAcceptAgainMs);
  }
  static constexpr timeval kAgain{0, kAcceptAgainMs * 1000};
  event_assign(&event_, base_, -1, EV_TIMEOUT, on_due, this);
  event_add(&event_, &kAgain);
  on_ = true;
  owner_.accept_pause_changed();
  return kind;
}

void AcceptPause::end() {
  if (!on_) return;
  event_del(&event_);
  on_ = false;
  owner_.accept_pause_changed();
}

void AcceptPause::on_due(int, short, void* pause) { static_cast<AcceptPause*>(pause)->end(); }

}  // namespace crane::proxy
