// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the server asks of names: every replica knows the questions of its own server, the leader
// asks its resolver and proposes RESOLVED.  A question whose leader was lost before RESOLVED was in
// the log is the next one's.
//
// Threads: the node's one thread.
//
// INVARIANT NAME-2  While this replica does not lead its resolver is asked nothing.

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
  // The answer comes later, in the loop, by what the resolver was made with; unless forget_all()
  // comes before it.
  virtual void ask(std::uint64_t number, const NameRequest& request) = 0;
  virtual void forget_all() = 0;
};

class Names {
 public:
  static constexpr std::size_t kNamedMost = 256;  // in the log of the node, once each

  // None: a replay, which is given the answers.
  void use(std::unique_ptr<NameResolver> resolver) { resolver_ = std::move(resolver); }
  // The own server asks.
  void asked(std::uint64_t number, const NameRequest& request);
  // The resolver has answered that question; says whether RESOLVED is to be proposed.
  bool answered(std::uint64_t number) const { return leading_ && pending_.count(number) > 0; }
  // RESOLVED, on every replica.
  void committed(const ResolvedBody& body);
  void lead(bool leading);
  // All that the own server had asked before this clock it has asked.
  void recover_at(std::uint64_t clock) noexcept { last_asked_ = kOutboundBit | clock; }

  std::size_t pending() const noexcept { return pending_.size(); }

 private:
  void tell(const NameRequest& request);

  std::unique_ptr<NameResolver> resolver_;
  bool leading_ = false;
  std::map<std::uint64_t, NameRequest> pending_;  // by number: without RESOLVED in the log
  std::set<std::uint64_t> ahead_;                 // RESOLVED came before the own server has asked
  std::uint64_t last_asked_ = 0;
  std::set<std::string> named_;
};

}  // namespace crane::proxy
