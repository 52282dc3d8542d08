// SPDX-License-Identifier: Apache-2.0
#pragma once
// What must be equal on all replicas, as one digest per item, so that a difference has a name.  The
// leader's START carries its digests behind the StartBody; a replica that finds others in its own
// configuration refuses to go on: its server would diverge.  Of Crane itself the agreed versions
// count (dmt/base/versions.h), not the bytes: replicas of two builds may run in one group.
//
// Threads: pure functions; digests_of reads files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>

#include "dmt/base/versions.h"
#include "proxy/host/config.h"

namespace crane::node {

// The first items are those of the server and its schedule; one for each agreed version follows.
inline constexpr std::size_t kServerItems = 12;
inline constexpr std::size_t kAgreedItems = kServerItems + std::size(kAgreedVersions);
// The only item that is not about the server: hosts may be replaced.
inline constexpr std::size_t kAgreedReplicas = 7;
// The version of the schedule, which may change at one place of the log (start_check.h).
inline constexpr std::size_t kAgreedSchedule = kServerItems + 2;
using Agreed = std::array<std::uint64_t, kAgreedItems>;

// Never 0.  A file that cannot be read has the digest of an empty one.
Agreed digests_of(const Config& config);
// The first item that differs, for a message; nullptr: all are equal.  `start` is the payload of a
// START; one without digests agrees with everything, one of other items is another build's.
const char* first_difference(const Agreed& own, std::span<const std::byte> start) noexcept;
const char* first_difference(const Agreed& own, const Agreed& theirs) noexcept;
// Whether they differ, and in the version of the schedule alone.
bool only_schedule_differs(const Agreed& own, std::span<const std::byte> start) noexcept;
bool only_schedule_differs(const Agreed& own, Agreed theirs) noexcept;
// Why this replica cannot go on: `what` differs from what `leader` put into the log.
std::string disagreement(const Config& config, const char* what, unsigned leader);

}  // namespace crane::node
