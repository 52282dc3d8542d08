// SPDX-License-Identifier: Apache-2.0
#pragma once
// Questions for names (getaddrinfo and its kin) that the server's own files do not answer.  A
// question gets a number and is told to the nodes (OutputType::kResolve); the leader's asks its
// resolver, and RESOLVED brings the answer, or the error, to all replicas at one clock.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT NAME-1  A question has one answer: the first RESOLVED of its number.  A later one, of
//                   another leader, has no effect.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// The calling thread's slot asks; returns the number of the question, to wait on and to find it by.
// 0: kNamesMax threads wait for answers.
std::uint64_t ask_name(Layout& w, Slot me, const NameRequest& request) noexcept;
// nullptr: it was given up, by a call within a handler of the same thread.
const NameRecord* find_name(const Layout& w, std::uint64_t number) noexcept;
void forget_name(Layout& w, std::uint64_t number) noexcept;

// RESOLVED.
void admit_resolved(Layout& w, const ResolvedBody& body) noexcept;

}  // namespace crane::dmt
