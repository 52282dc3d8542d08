// SPDX-License-Identifier: Apache-2.0
#pragma once
// Name queries (getaddrinfo and related calls) that the server's own files do not answer.  A query
// gets a number and goes to the nodes (OutputType::kResolve).  The leader's node queries its
// resolver, and RESOLVED brings the answer or the error to all replicas at one clock.
//
// Threads / Processes: everything here REQUIRES the turn.
//
// INVARIANT NAME-1  A query has one answer: the first RESOLVED with its number.  A later one, from
//               another leader, has no effect.

#include <cstdint>

#include "dmt/layout.h"

namespace crane::dmt {

// Sends a query for the calling thread's slot.  Returns its number, which is also the object to
// wait for.  0: kNamesMax threads wait for answers.
std::uint64_t send_name_query(Layout& w, Slot me, const NameRequest& request) noexcept;
// nullptr: the query was dropped, because a signal handler of the same thread sent another one.
const NameRecord* find_name(const Layout& w, std::uint64_t number) noexcept;
void forget_name(Layout& w, std::uint64_t number) noexcept;

// RESOLVED.
void admit_resolved(Layout& w, const ResolvedBody& body) noexcept;

}  // namespace crane::dmt
