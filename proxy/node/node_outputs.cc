// SPDX-License-Identifier: Apache-2.0
// Passes the server's output, after hashing and recording, to the part that handles it.
#include <cstdint>

#include "dmt/scheduler.h"
#include "proxy/clients/encode.h"
#include "proxy/node/node.h"

namespace crane::node {

void Node::handle_server_output(const OutputHeader& header, proxy::Pieces pieces, bool last) {
  if (recovery_->holds_back(header, proxy::listen_place(pieces))) return;
  switch (header.type) {
    case OutputType::kListen:
      listeners_->open(proxy::place_of(header, pieces), header.argument);
      break;
    case OutputType::kUnlisten:
      if (recovery_->restarts_server()) {  // the next server listens there: clients wait (LISTEN-2)
        OutputHeader restarted = header;
        restarted.argument = 1;
        return proxy_->put_out(restarted, pieces);
      }
      break;
    case OutputType::kPortWanted:
      listeners_->wanted(proxy::place_of(header, pieces), header.argument);
      return server_->node_awake();  // the bind waits
    case OutputType::kExit:
      server_->monitor().expect_end();
      if (recovery_->ended_at_turn()) break;
      server_->exit().at_turn(static_cast<int>(header.argument), header.conn);
      server_->layout().scheduler.leading.store(0, std::memory_order_relaxed);
      break;
    case OutputType::kAdmitted:
      recovery_->admitted(Index{header.conn});
      if (const auto alarm = live_check_->admitted(header, !end_.done(), now_ns_)) {
        recovery_->distrust(live_check_->alarms().unbroken(), alarm->at);
        fail(ExitStatus::kDiverged, alarm->alarm +
                                        "; this replica is fenced, start the group again; "
                                        "crane-run --record DIR --trace keeps every turn");
      }
      return;
    case OutputType::kTurns:
      return;  // not for clients
    default:
      break;
  }
  proxy_->put_out(header, pieces, last);
}

void Node::release_output(const OutputHeader& header, const ListenPlace& place, bool last) {
  const auto bytes = std::as_bytes(std::span(&place, 1));
  handle_server_output(header, {&bytes, 1}, false);
  if (last) proxy_->end_restart();
}

}  // namespace crane::node
