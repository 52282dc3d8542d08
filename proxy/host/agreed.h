// SPDX-License-Identifier: Apache-2.0
#pragma once
// Digests of everything that must be equal on all replicas, one per item, so that a difference can
// be named.  The leader's START carries its digests after the StartBody.  A replica whose own
// configuration gives other digests refuses to continue, because its server would diverge.  For
// Crane itself the agreed versions are compared (dmt/base/versions.h), not the bytes: replicas of
// two builds may run in one group.
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

// The first items describe the server and its schedule; one item per agreed version follows.
inline constexpr std::size_t kServerItems = 12;
inline constexpr std::size_t kAgreedItems = kServerItems + std::size(kAgreedVersions);
// The only item that does not describe the server: hosts may be replaced.
inline constexpr std::size_t kAgreedReplicas = 7;
// The version of the schedule, which may change at one place of the log (start_check.h).
inline constexpr std::size_t kAgreedSchedule = kServerItems + 2;
using Agreed = std::array<std::uint64_t, kAgreedItems>;

// Never 0.  A file that cannot be read has the digest of an empty one.
Agreed digests_of(const Config& config);
// The first item that differs, for a message; nullptr if all are equal.  `start` is the payload of
// a START.  A START without digests agrees with everything; one with another number of items is
// from another build.
const char* first_difference(const Agreed& own, std::span<const std::byte> start) noexcept;
const char* first_difference(const Agreed& own, const Agreed& theirs) noexcept;
// Whether they differ only in the version of the schedule.
bool only_schedule_differs(const Agreed& own, std::span<const std::byte> start) noexcept;
bool only_schedule_differs(const Agreed& own, Agreed theirs) noexcept;
// The error of a replica that cannot continue: `what` differs from the item that `leader` logged.
std::string disagreement(const Config& config, const char* what, unsigned leader);

}  // namespace crane::node
