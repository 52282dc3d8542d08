// SPDX-License-Identifier: Apache-2.0
#pragma once
// Questions of the server about names.  Every replica knows its own server's questions; the leader
// asks its resolver, and proposes RESOLVED.  If a leader is lost before RESOLVED is in the log, the
// next one asks again.
//
// Threads: the node's one thread.
//
// INVARIANT NAME-2  While this replica does not lead, it asks its resolver nothing.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "dmt/sequence/entry.h"

namespace crane::proxy {

class NameResolver {
 public:
  virtual ~NameResolver() = default;
  // The answer arrives later, in the loop, at the owner of the resolver, unless forget_all() is
  // called first.
  virtual void ask(std::uint64_t number, const NameRequest& request) = 0;
  virtual void forget_all() = 0;
};

class Names {
 public:
  static constexpr std::size_t kNamedMost = 256;  // listed in the node's log, once each

  // Without a resolver: a replay, which receives the answers.
  void use(std::unique_ptr<NameResolver> resolver) { resolver_ = std::move(resolver); }
  // This replica's server asks a question.
  void asked(std::uint64_t number, const NameRequest& request);
  // The resolver has answered; returns whether RESOLVED must be proposed.
  bool answered(std::uint64_t number) const { return leading_ && pending_.count(number) > 0; }
  // RESOLVED, on every replica.
  void committed(const ResolvedBody& body);
  void lead(bool leading);
  // This replica's server had asked all its questions of before this clock.
  void recover_at(std::uint64_t clock) noexcept { last_asked_ = kOutboundBit | clock; }

  std::size_t pending() const noexcept { return pending_.size(); }

 private:
  void log_name(const NameRequest& request);

  std::unique_ptr<NameResolver> resolver_;
  bool leading_ = false;
  std::map<std::uint64_t, NameRequest> pending_;  // by request number; RESOLVED is not in the log
  std::set<std::uint64_t> ahead_;  // RESOLVED was committed before this replica's server asked
  std::uint64_t last_asked_ = 0;
  std::set<std::string> named_;
};

}  // namespace crane::proxy
