// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/operator_links.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "dmt/base/clock.h"
#include "proxy/host/control.h"
#include "runtime/control/frame.h"

namespace crane::node {
namespace {

using consensus::SecureLink;

constexpr std::int64_t kLimitNs = 10'000'000'000;

}  // namespace

OperatorLinks::~OperatorLinks() {
  for (Link& link : links_) event_del(&link.event_);
}

void OperatorLinks::take(std::unique_ptr<SecureLink> link) {
  if (links_.size() >= kLinksMax) {
    spdlog::warn("the link of an operator at {} is closed: there are {} newer ones",
                 links_.front().link->peer_address(), kLinksMax);
    close(links_.front());  // OPLINK-1
  }
  Link& added = links_.emplace_back();
  added.owner = this;
  added.link = std::move(link);
  added.until_ns = monotonic_ns() + kLimitNs;
  wait(added);
  // The request may have come with the handshake, and the socket would not report it.
  event_active(&added.event_, EV_READ, 1);
}

// Waits for the request, or for room for the rest of the answer.
void OperatorLinks::wait(Link& link) {
  if (event_initialized(&link.event_)) event_del(&link.event_);
  const short writes = link.link->wants_write() ? EV_WRITE : 0;
  event_assign(
      &link.event_, base_, link.link->fd(), static_cast<short>(EV_READ | writes),
      [](int, short what, void* argument) {
        auto* that = static_cast<Link*>(argument);
        that->owner->advance(*that, what);
      },
      &link);
  const std::int64_t left_us = std::max<std::int64_t>(0, link.until_ns - monotonic_ns()) / 1000;
  const timeval limit{left_us / 1'000'000, left_us % 1'000'000};
  event_add(&link.event_, &limit);
}

void OperatorLinks::advance(Link& link, short what) {
  owner_.woke();
  if ((what & EV_TIMEOUT) != 0 || !serve(link)) return close(link);
  wait(link);
}

bool OperatorLinks::serve(Link& link) {
  SecureLink& wire = *link.link;
  wire.fill(control::kLinkRequestMax);
  if (!link.answered) {
    std::string request;
    switch (control::read_frame(wire.in(), control::kLinkRequestMax, request)) {
      case control::Framed::kMore:
        return wire.state() == SecureLink::State::kOpen;
      case control::Framed::kTooLong:
        reply(link, refused("too_large", "a request has at most 4096 bytes"));
        break;
      case control::Framed::kWhole:
        reply(link, owner_.answer(request));
        break;
    }
  }
  wire.consume(wire.in().size());  // the sender may send no more
  wire.flush();
  return wire.state() == SecureLink::State::kOpen && wire.unsent() > 0;
}

void OperatorLinks::reply(Link& link, const std::string& answer) {
  link.answered = true;
  const bool fits = answer.size() <= control::kLinkAnswerMax;
  control::put_frame(link.link->out(),
                     fits ? answer : refused("too_large", "the answer is too long for a link"));
}

void OperatorLinks::close(Link& link) {
  event_del(&link.event_);
  links_.remove_if([&](const Link& one) { return &one == &link; });
}

}  // namespace crane::node
