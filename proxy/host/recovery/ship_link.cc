// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/ship_link.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace crane::node {
namespace {

using consensus::SecureLink;

// The dial fails if the other side takes this long to accept the connection, to shake hands (its
// node may be busy), or to send data.
constexpr int kConnectMs = 2'000;
constexpr int kHandshakeMs = 10'000;
constexpr int kSilenceMs = 15'000;
constexpr std::size_t kFillBytes = 64U << 10;

// The context must outlive the link, so it is made first.
struct Dialled final : checkpoint::Wire {
  std::unique_ptr<consensus::LinkContext> context;
  std::unique_ptr<ShipLink> link;
  Outcome put(std::span<const std::byte> bytes) override { return link->put(bytes); }
  Result<std::size_t> get(std::span<std::byte> to) override { return link->get(to); }
};

std::string sentence(const Error& error, const std::string& where) {
  const std::string why = error.what;
  return why + " (" + where + (error.detail != 0 ? ", " : "") +
         (error.detail != 0 ? std::strerror(error.detail) : "") + ")";
}

Result<std::unique_ptr<checkpoint::Wire>> dial(const ShipParty& party, int replica) {
  const consensus::Endpoint& there = party.endpoints[static_cast<std::size_t>(replica)];
  const std::string where = there.address + ":" + std::to_string(there.port);
  const auto failed = [&](const Error& error) {
    return failure(error.code, "reach a replica", sentence(error, where));
  };
  const auto count = static_cast<std::uint8_t>(party.endpoints.size());
  auto context = consensus::LinkContext::create(party.secret, party.self, count);
  if (!context) return failed(context.error());
  const auto address = consensus::resolve(there.address, there.port);
  if (!address) return failed(address.error());
  const consensus::LinkName name{party.self, ReplicaId{static_cast<std::uint8_t>(replica)},
                                 consensus::kVisitPlane};
  auto dialled = std::make_unique<Dialled>();
  dialled->context = std::move(context).value();
  auto link = SecureLink::dial(*dialled->context, name, address.value(), kSilenceMs);
  if (!link) return failed({Code::kPeerFailed, link.error().detail, "it cannot be reached"});
  dialled->link = std::make_unique<ShipLink>(std::move(link).value(), kSilenceMs);
  if (const Outcome opened = dialled->link->open(); !opened) return failed(opened.error());
  return std::unique_ptr<checkpoint::Wire>(std::move(dialled));
}

}  // namespace

bool ShipLink::wait(short events) const {
  const auto state = link_->state();
  const int timeout_ms = state == SecureLink::State::kOpen         ? silence_ms_
                         : state == SecureLink::State::kConnecting ? kConnectMs
                                                                   : kHandshakeMs;
  pollfd fd{link_->fd(), events, 0};
  int got;
  while ((got = ::poll(&fd, 1, timeout_ms)) < 0 && errno == EINTR) {
  }
  return got > 0;
}

Error ShipLink::lost() const {
  using Failure = SecureLink::Failure;
  switch (link_->failure()) {
    case Failure::kSecret:
      return {Code::kDenied, 0, "it does not hold this group's secret"};
    case Failure::kNotMember:
      return {Code::kDenied, 0, "it is not a replica of this group"};
    case Failure::kUnreachable:
      return {Code::kPeerFailed, 0, "it cannot be reached"};
    case Failure::kClosed:
      return {Code::kPeerFailed, 0, "it ended the connection"};
    case Failure::kNone:
      break;
  }
  return {Code::kPeerFailed, 0, "it is silent"};
}

// Waits longer than the fabric's links do, for example because the other host's disk may be slow.
ShipLink::ShipLink(std::unique_ptr<consensus::SecureLink> link, int silence_ms)
    : link_(std::move(link)), silence_ms_(silence_ms) {
  link_->set_user_timeout(static_cast<unsigned>(silence_ms));
}

Outcome ShipLink::open() {
  for (;;) {
    const auto state = link_->progress();
    if (state == SecureLink::State::kOpen) return Done{};
    if (state == SecureLink::State::kFailed) return lost();
    const bool connecting = state == SecureLink::State::kConnecting;
    if (!wait(static_cast<short>(connecting || link_->wants_write() ? POLLIN | POLLOUT : POLLIN))) {
      return lost();
    }
  }
}

Outcome ShipLink::put(std::span<const std::byte> bytes) {
  auto& out = link_->out();
  out.insert(out.end(), bytes.begin(), bytes.end());
  for (;;) {
    link_->flush();
    if (link_->state() != SecureLink::State::kOpen) return lost();
    if (link_->unsent() == 0) return Done{};
    if (!wait(POLLOUT)) return lost();
  }
}

Result<std::size_t> ShipLink::get(std::span<std::byte> to) {
  while (link_->in().empty()) {
    link_->fill(kFillBytes);
    if (!link_->in().empty()) break;
    if (link_->state() != SecureLink::State::kOpen) {
      if (link_->failure() == SecureLink::Failure::kClosed) return std::size_t{0};
      return lost();
    }
    if (!wait(POLLIN)) return lost();
  }
  const auto in = link_->in();
  const std::size_t size = std::min(in.size(), to.size());
  std::memcpy(to.data(), in.data(), size);
  link_->consume(size);
  return size;
}

checkpoint::Others others_of(const ShipParty& party) {
  checkpoint::Others others;
  for (int i = 0; i < static_cast<int>(party.endpoints.size()); ++i) {
    if (i != value(party.self)) others.replicas.push_back(i);
  }
  others.dial = [party](int replica) { return dial(party, replica); };
  return others;
}

}  // namespace crane::node
