// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/operator_link.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/control/frame.h"
#include "runtime/launcher/child.h"

namespace crane::launcher {
namespace {

using consensus::SecureLink;
using State = SecureLink::State;

constexpr std::int64_t kConnectMs = 2'000, kAnswerMs = 4'000;
constexpr unsigned kNetworkMs = 4'000;
constexpr std::size_t kFillBytes = 64U << 10;

// One replica's link, from dialling to the answer.
struct Call {
  int replica = 0;
  std::unique_ptr<SecureLink> link;
  bool sent = false;
  std::optional<LinkReply> result;
};

// Why a link without an answer failed.
Reply failure_of(const SecureLink& link, bool sent) {
  switch (link.failure()) {
    case SecureLink::Failure::kSecret:
      return Reply::kOtherSecret;
    case SecureLink::Failure::kNotMember:
      return Reply::kOtherReplica;
    case SecureLink::Failure::kUnreachable:
      // A host that refuses the connection is up, without a node.
      return link.connect_error() == ECONNREFUSED ? Reply::kAbsent
             : link.connect_error() != 0          ? Reply::kUnreachable
                                                  : Reply::kSilent;
    case SecureLink::Failure::kClosed:
    case SecureLink::Failure::kNone:
      break;
  }
  return sent ? Reply::kLost : Reply::kSilent;
}

void advance(Call& call, const std::string& request) {
  SecureLink& link = *call.link;
  if (link.progress() == State::kOpen) {
    if (!call.sent) {
      control::put_frame(link.out(), request);
      call.sent = true;
    }
    link.flush();
    while (link.fill(kFillBytes)) {
    }
    LinkReply reply{Reply::kAnswer, {}};
    switch (control::read_frame(link.in(), control::kLinkAnswerMax, reply.text)) {
      case control::Framed::kWhole:
        call.result = std::move(reply);
        return;
      case control::Framed::kTooLong:
        call.result = {Reply::kOtherReplica, {}};
        return;
      case control::Framed::kMore:
        break;
    }
  }
  if (link.state() == State::kFailed) call.result = {failure_of(link, call.sent), {}};
}

void give_up(Call& call, std::int64_t waited_ms) {
  const bool connects = call.link->state() == State::kConnecting;
  if (connects && waited_ms >= kConnectMs) call.result = {Reply::kUnreachable, {}};
  if (waited_ms >= kAnswerMs) call.result = {Reply::kSilent, {}};
}

// Waits for the calls' sockets, at most until the next limit.
void wait_for(const std::vector<Call>& calls, std::int64_t waited_ms) {
  std::vector<pollfd> fds;
  for (const Call& call : calls) {
    if (call.result) continue;
    const bool writes = call.link->wants_write();
    fds.push_back({call.link->fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  const std::int64_t limit = waited_ms < kConnectMs ? kConnectMs : kAnswerMs;
  (void)poll(fds.data(), fds.size(),
             static_cast<int>(std::max<std::int64_t>(limit - waited_ms, 1)));
}

}  // namespace

std::map<int, LinkReply> ask_over_links(
    const consensus::GroupSecret& secret,
    const std::map<int, std::optional<consensus::SocketAddress>>& places,
    const std::string& request) {
  std::map<int, LinkReply> replies;
  for (const auto& [replica, address] : places) replies[replica] = {};
  auto context = consensus::LinkContext::create(secret, consensus::kOperator, 0);
  if (!context) return replies;
  std::vector<Call> calls;
  for (const auto& [replica, address] : places) {
    if (!address) continue;
    const consensus::LinkName name{consensus::kOperator,
                                   ReplicaId{static_cast<std::uint8_t>(replica)},
                                   consensus::kOperatorPlane};
    auto link = SecureLink::dial(*context.value(), name, *address, kNetworkMs);
    if (link.ok()) {
      calls.push_back({replica, std::move(link).value(), false, {}});
    } else if (link.error().detail == ECONNREFUSED) {
      replies[replica].reply = Reply::kAbsent;
    }
  }
  const auto waits = [](const Call& call) { return !call.result; };
  const std::int64_t begun = now_ms();
  for (bool first = true; std::any_of(calls.begin(), calls.end(), waits); first = false) {
    if (!first) wait_for(calls, now_ms() - begun);
    for (Call& call : calls) {
      if (!call.result) advance(call, request);
      if (!call.result) give_up(call, now_ms() - begun);
    }
  }
  for (Call& call : calls) replies[call.replica] = std::move(*call.result);
  return replies;
}

}  // namespace crane::launcher
