// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places for HTTP connections.  Clients of this machine have their own, so that other machines
// cannot take them all; one network has at most a quarter of the others'.  With TLS, the number of
// handshakes per second from other machines is bounded, because each costs up to a millisecond of
// the node's loop (RSA).
//
// Pure.  Threads: one object, one thread.

#include <cstdint>
#include <map>
#include <string>

#include "proxy/host/http/access.h"
#include "proxy/host/http/token_bucket.h"

namespace crane::node {

class HttpPlaces {
 public:
  static constexpr int kMost = 64;  // of this machine, and again of all others
  static constexpr int kMostOfNetwork = 16;
  static constexpr double kHandshakesPerSecond = 50, kHandshakesAtOnce = 64;

  // True: the connection has a place until it calls release().
  bool take(const HttpPeer& peer, std::int64_t now_ns) {
    int& taken = peer.loopback ? here_ : elsewhere_;
    if (taken >= kMost) return false;
    if (!peer.loopback) {
      const auto of = networks_.find(peer.network);
      if (of != networks_.end() && of->second >= kMostOfNetwork) return false;
      if (peer.tls && !handshakes_.take(now_ns)) return false;
      ++networks_[peer.network];
    }
    ++taken;
    return true;
  }
  void release(const HttpPeer& peer) {
    --(peer.loopback ? here_ : elsewhere_);
    if (peer.loopback) return;
    const auto of = networks_.find(peer.network);
    if (--of->second == 0) networks_.erase(of);
  }
  int taken() const noexcept { return here_ + elsewhere_; }

 private:
  int here_ = 0, elsewhere_ = 0;
  std::map<std::string, int> networks_;
  TokenBucket handshakes_{kHandshakesPerSecond, kHandshakesAtOnce};
};

}  // namespace crane::node
