// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/agreed.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "dmt/base/branch_event.h"
#include "dmt/base/crc.h"
#include "dmt/sequence/entry.h"
#include "runtime/setup/program.h"

namespace crane::node {
namespace {

constexpr std::array<const char*, kAgreedItems> kNames{
    "the server's program (another build of it)",
    "the server's command line",
    "the server's environment",
    "the mode (serial or parallel)",
    "the admission rule",
    "the quantum, the time slice, or what counts it (--quantum, --slice, --branch-counter and the "
    "kind of processor)",
    "the send buffer",
    "the list of replicas",
    "whether threads spin (--spins)",
    "the calls that leave the schedule (--detach)",
    "the functions with a soft barrier (--soft-barrier)",
    "the initial content of the data directories (--data)",
    "the wire version of Crane (another build)",
    "the log version of Crane (another build)",
    "the schedule version of Crane (another build)",
    "the checkpoint version of Crane (another build)",
};
static_assert(std::string_view(kAgreedVersions[kAgreedSchedule - kServerItems].name) == "schedule");
constexpr const char* kOtherItems = "the build of Crane (one whose versions are not known)";

std::uint64_t digest(const std::vector<std::string>& words) {
  std::uint64_t crc = 0;
  for (const auto& word : words) crc = crc64(word.c_str(), word.size() + 1, crc);
  return crc;
}

// nullopt: `start` has no digests, or another number of items.
std::optional<Agreed> agreed_of(std::span<const std::byte> start) noexcept {
  Agreed all;
  if (start.size() != sizeof(StartBody) + sizeof all) return std::nullopt;
  std::memcpy(&all, start.data() + sizeof(StartBody), sizeof all);
  return all;
}

}  // namespace

Agreed digests_of(const Config& c) {
  std::vector<std::string> command{c.program};
  command.insert(command.end(), c.args.begin(), c.args.end());
  std::vector<std::string> replicas{std::to_string(c.replicas)};
  if (c.host) {
    for (const auto& r : c.host->replicas) {
      replicas.push_back(r.address + " " + std::to_string(r.port));
    }
  }
  std::vector<std::string> soft_barriers;
  for (const auto& l : c.soft_barriers) soft_barriers.push_back(setup::text_of(l));
  // With the default slice the item must equal that of builds before time slices: the quantum
  // alone.
  const std::uint64_t slice = c.slice_us ^ dmt::kSliceDefaultUs;
  // A group without a branch counter agrees with builds that do not know branch counters.
  const std::uint64_t event = c.branch_counter ? branch_event().code : 0;
  Agreed all{setup::file_digest(c.program_file.empty() ? c.program : c.program_file),
             digest(command),
             digest(c.env),
             static_cast<std::uint64_t>(c.mode),
             static_cast<std::uint64_t>(c.admission),
             (c.quantum + (slice << 32)) ^ (event * 0x9E3779B97F4A7C15),
             c.send_buffer,
             digest(replicas),
             static_cast<std::uint64_t>(c.spins),
             c.detached_calls(),
             digest(soft_barriers),
             c.base_digest};
  for (std::size_t i = 0; i < std::size(kAgreedVersions); ++i) {
    all[kServerItems + i] = kAgreedVersions[i].number;
  }
  for (auto& item : all) item = crc64(&item, sizeof item) | 1;
  return all;
}

const char* first_difference(const Agreed& own, std::span<const std::byte> start) noexcept {
  if (start.size() <= sizeof(StartBody)) return nullptr;
  const auto theirs = agreed_of(start);
  return theirs ? first_difference(own, *theirs) : kOtherItems;
}

const char* first_difference(const Agreed& own, const Agreed& theirs) noexcept {
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] != theirs[i]) return kNames[i];
  }
  return nullptr;
}

bool only_schedule_differs(const Agreed& own, std::span<const std::byte> start) noexcept {
  const auto theirs = agreed_of(start);
  return theirs && only_schedule_differs(own, *theirs);
}

bool only_schedule_differs(const Agreed& own, Agreed theirs) noexcept {
  if (theirs[kAgreedSchedule] == own[kAgreedSchedule]) return false;
  theirs[kAgreedSchedule] = own[kAgreedSchedule];
  return theirs == own;
}

std::string disagreement(const Config& config, const char* what, unsigned leader) {
  if (!config.host) {  // one crane-run started all replicas, so the log is from an earlier start
    return fmt::format(
        "replica {}: {} changed since the group's log was written; start it as "
        "before to continue with that log, or remove the group's directory to begin "
        "again with the machine's files",
        config.replica, what);
  }
  if (leader == config.replica) {  // the digests are its own, from an earlier start
    return fmt::format(
        "replica {}: {} changed since this replica led the group, according to its "
        "log; start it as before to continue with that log, or start over on all "
        "hosts at once with --force-new-group, which discards the log",
        config.replica, what);
  }
  return fmt::format(
      "replica {} is configured differently from replica {}, which leads: {} differs; "
      "make it equal on all hosts and start this replica again",
      config.replica, leader, what);
}

}  // namespace crane::node
