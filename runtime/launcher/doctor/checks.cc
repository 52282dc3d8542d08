// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "dmt/base/join.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kDescriptorsWanted = 4096;
constexpr std::uint64_t kInodesPerReplica = 2000;  // checkpoints of some hundred files each
constexpr std::int64_t kSlowFsyncUs = 5'000;
constexpr const char* kRunsAgain =
    "a lost replica runs all inputs again, as long as the log has them";

// The messages of runtime/setup are "<what>: <object>: <cause>; <what to do>".
Finding from_message(const char* area, Verdict verdict, const Error& error, std::string costs) {
  const auto advice = error.text.rfind("; ");
  if (advice == std::string::npos) return {area, verdict, error.message(), std::move(costs), ""};
  return {area, verdict, error.text.substr(0, advice), std::move(costs),
          error.text.substr(advice + 2)};
}

std::string refusal(int error) { return std::string("refused: ") + strerror(error); }

std::string mib(std::uint64_t bytes) {
  return bytes >= 10 * 1024 * kMiB ? std::to_string(bytes >> 30) + " GiB"
                                   : std::to_string(bytes / kMiB) + " MiB";
}

bool is_at_least(const Kernel& kernel, int major, int minor) {
  return kernel.major > major || (kernel.major == major && kernel.minor >= minor);
}

std::string cost_of_capability(const std::string& name) {
  constexpr std::pair<std::string_view, const char*> kCosts[] = {
      {"CAP_NET_ADMIN", "no virtual address"},
      {"CAP_NET_RAW", "a moving virtual address is not announced"},
      {"CAP_SYS_PTRACE", "clients are disconnected when the leader is lost"},
      {"CAP_SYS_ADMIN", "no groups of root, because their replicas need their own mounts"},
      {"CAP_SYS_NICE", "a lost leader is noticed later on a busy machine"}};
  for (const auto& [capability, cost] : kCosts) {
    if (capability == name) return cost;
  }
  return name;
}

// Checks free space, inodes and quotas.  `costs` and `mend` describe the first lack.
Finding check_room(Finding finding, const Room& room, std::uint64_t bytes, std::uint64_t inodes) {
  finding.seen = fmt::format("{} ({}): {} free, {} needed", room.path, room.type,
                             mib(room.usable_bytes()), mib(bytes));
  finding.measures = {{"free_mb", room.usable_bytes() / kMiB}, {"needed_mb", bytes / kMiB}};
  for (const Quota& q : room.quotas) {
    finding.seen += fmt::format("; quota {}: {} of {}", q.whose, mib(q.used), mib(q.limit));
  }
  if (room.free_inodes) {
    finding.seen += fmt::format("; {} inodes free", *room.free_inodes);
    finding.measures["free_inodes"] = *room.free_inodes;
  }
  if (room.usable_bytes() < bytes) {
    finding.verdict = Verdict::kLimited;
    finding.costs = "replicas stop when it is full";
    finding.mend = "free space there, or use another place";
  } else if (room.free_inodes && *room.free_inodes < inodes) {
    finding.verdict = Verdict::kLimited;
    finding.costs = fmt::format("checkpoints may fail: {} inodes are needed", inodes);
    finding.mend = "remove files there, or use another place";
  }
  return finding;
}

// Names the remedy for a failed dump or restore.  checkpoint/criu.cc writes the pieces.
std::string remedy_of(const std::string& criu_problem) {
  constexpr struct {
    const char* piece;
    const char* remedy;
  } kRemedies[] = {
      {"overlay of an overlay",
       "run from a file system that is no overlay (CRANE_ROOT of "
       "crane-entry in Crane's image)"},
      {"read-only here", "make /proc/sys writable: a privileged container"},
      {"sys_time", "add the capability sys_time to the container"},
  };
  for (const auto& [piece, remedy] : kRemedies) {
    if (criu_problem.find(piece) != std::string::npos) return remedy;
  }
  return "run Crane's get_criu.sh, which installs one for this kernel";
}

}  // namespace

Finding check_parts(const Outcome& parts) {
  if (!parts) {
    return from_message("parts", Verdict::kMissing, parts.error(), "no replica can start");
  }
  return {"parts", Verdict::kOk, "crane-node and libcrane.so are installed", "", ""};
}

Finding check_privileges(const Privileges& privileges) {
  if (!privileges.root) {
    return {"privileges", Verdict::kLimited, "no root privilege",
            "only --no-container: servers share the machine's files, and there are no checkpoints",
            "run as root"};
  }
  Finding f{"privileges", Verdict::kOk, "root", "", ""};
  if (privileges.lacks.empty()) return f;
  f.verdict = Verdict::kLimited;
  f.seen = "root without " + joined(privileges.lacks);
  f.costs = joined(privileges.lacks, cost_of_capability);
  f.mend = "give them to this service or container";
  const auto& lacks = privileges.lacks;
  if (std::find(lacks.begin(), lacks.end(), "CAP_SYS_ADMIN") != lacks.end()) {
    f.verdict = Verdict::kMissing;
    f.mend += ", or run groups as another user than root";
  }
  return f;
}

Finding check_kernel(const Kernel& kernel) {
  Finding f{"kernel", Verdict::kOk, "Linux " + kernel.release, "", ""};
  if (!is_at_least(kernel, 5, 15)) {
    f.verdict = Verdict::kLimited;
    f.costs =
        "packing of checkpoints takes processors from servers; over RDMA, the log has small "
        "pages";
    f.mend = "use Linux 6.1 or later";
  } else if (!is_at_least(kernel, 6, 1)) {
    f.verdict = Verdict::kLimited;
    f.costs = "over RDMA, the log has small pages: huge_pages = \"require\" ends a node";
    f.mend = "use Linux 6.1 or later, if there are RDMA devices";
  }
  return f;
}

Finding check_trap(const Kernel& kernel) {
  if (kernel.trap_error == 0) {
    return {"system calls", Verdict::kOk, "Syscall User Dispatch works", "", ""};
  }
  return {"system calls", Verdict::kLimited, "Syscall User Dispatch " + refusal(kernel.trap_error),
          "calls that bypass libc are not seen: such a server may diverge, and --strict is refused",
          "use Linux 5.11 or later, and a seccomp filter that allows prctl"};
}

Finding check_addresses(const Kernel& kernel) {
  if (kernel.addresses_error == 0) {
    return {"addresses", Verdict::kOk, "address randomisation can be switched off", "", ""};
  }
  return {"addresses", Verdict::kLimited, "personality " + refusal(kernel.addresses_error),
          "addresses differ between replicas: servers that order by them diverge",
          "allow personality(ADDR_NO_RANDOMIZE) in the seccomp filter of this container"};
}

Finding check_taking(const Kernel& kernel) {
  if (kernel.take_error == 0) {
    return {"connections", Verdict::kOk, "a new leader can take the old one's sockets", "", ""};
  }
  const bool old = kernel.take_error == ENOSYS;
  return {
      "connections", Verdict::kLimited, "pidfd_getfd " + refusal(kernel.take_error),
      "when the leader is lost, its clients are disconnected and must connect again",
      old ? "use Linux 5.6 or later"
          : "run as root, or sysctl kernel.yama.ptrace_scope=0, and allow it in seccomp filters"};
}

Finding check_container(const Privileges& privileges, const Outcome& lxc, const Trial& trial) {
  const char* const costs =
      "only --no-container: servers share the machine's files and network names, and there are no "
      "checkpoints";
  for (const Outcome* needed : {&privileges.root, &lxc}) {
    if (!*needed) return from_message("container", Verdict::kLimited, needed->error(), costs);
  }
  if (!trial.container_problem.empty()) {
    return {"container", Verdict::kLimited, "no container starts: " + trial.container_problem,
            costs,
            "allow mounts of overlays and new namespaces (a privileged container), or add "
            "--no-container"};
  }
  return {"container", Verdict::kOk, "a container was started", "", ""};
}

Finding check_checkpoints(const Privileges& privileges, const Outcome& lxc, const Trial& trial) {
  const std::string costs = std::string("no checkpoints: ") + kRunsAgain;
  const std::string which =
      trial.criu.empty() ? "" : "CRIU " + trial.criu_version + " (" + trial.criu + ")";
  if (trial.criu.empty()) {
    return {"checkpoints", Verdict::kLimited, trial.criu_problem, costs,
            "run Crane's get_criu.sh (make deps), or name a CRIU in CRANE_CRIU"};
  }
  if (!privileges.root || !lxc || !trial.tried || !trial.container_problem.empty()) {
    return {"checkpoints", Verdict::kLimited, which + ", but no container", costs,
            "make containers work"};
  }
  if (!trial.criu_problem.empty()) {
    return {"checkpoints", Verdict::kLimited, which + " refuses: " + trial.criu_problem, costs,
            remedy_of(trial.criu_problem)};
  }
  return {"checkpoints",
          Verdict::kOk,
          fmt::format("{} dumped a process in {} ms and restored it in {} ms", which,
                      trial.dump_us / 1'000, trial.restore_us / 1'000),
          "",
          "",
          {{"dump_us", trial.dump_us}, {"restore_us", trial.restore_us}}};
}

Finding check_control_groups(const ControlGroups& groups, bool is_root) {
  const std::string version =
      groups.version == 0 ? "none are mounted" : fmt::format("version {}", groups.version);
  Finding f{"control groups", Verdict::kOk, version, "", ""};
  if (!groups.controllers.empty()) f.seen += ": " + joined(groups.controllers);
  if (groups.weighs || (!is_root && groups.version != 0)) return f;
  f.verdict = Verdict::kLimited;
  if (groups.version == 0) {
    f.costs = "LXC starts no container";
    f.mend = "mount /sys/fs/cgroup";
    return f;
  }
  f.seen += "; a group with its own weight cannot be created";
  f.costs = "packing of checkpoints takes processors from servers";
  f.mend = "write \"+cpu\" to /sys/fs/cgroup/cgroup.subtree_control, or make it writable";
  return f;
}

Finding check_processors(int usable, const Wanted& wanted) {
  Finding f{"processors", Verdict::kOk, fmt::format("{} for {} replicas", usable, wanted.replicas),
            "",           "",           {{"processors", usable}}};
  if (usable >= wanted.replicas) return f;
  f.verdict = Verdict::kLimited;
  f.costs = "replicas share them: each waits for the others, and answers come later under load";
  f.mend = fmt::format("give it {} processors, or use --hosts", wanted.replicas);
  return f;
}

Finding check_memory_lock(const Limits& limits, const Devices& devices, const Wanted& wanted) {
  const std::uint64_t needed = wanted.ring_mb * kMiB * 2;
  Finding f{"memory lock", Verdict::kOk, "without limit", "", ""};
  if (limits.locked_bytes) {
    f.seen = mib(*limits.locked_bytes);
    f.measures["limit_mb"] = *limits.locked_bytes / kMiB;
  }
  if (devices.found.empty()) {
    f.seen += "; only RDMA locks memory";
  } else if (limits.locked_bytes && *limits.locked_bytes < needed) {
    f.verdict = Verdict::kLimited;
    f.costs = "fabric verbs cannot register its log";
    f.mend = "ulimit -l unlimited (LimitMEMLOCK=infinity in a unit of systemd)";
  }
  return f;
}

Finding check_descriptors(const Limits& limits) {
  Finding f{"descriptors", Verdict::kOk, "without limit", "", ""};
  if (!limits.descriptors) return f;
  f.seen = fmt::format("at most {} per process", *limits.descriptors);
  f.measures["descriptors"] = *limits.descriptors;
  if (*limits.descriptors >= kDescriptorsWanted) return f;
  f.verdict = Verdict::kLimited;
  f.costs = "limits the number of clients; Crane and CRIU need some descriptors, too";
  f.mend =
      fmt::format("ulimit -Hn {} or more (LimitNOFILE= in a unit of systemd)", kDescriptorsWanted);
  return f;
}

Finding check_clock(const Clock& clock) {
  Finding f{"clock", Verdict::kOk, "", "", ""};
  f.measures["error_us"] = clock.synchronised ? nlohmann::json(clock.error_us) : nlohmann::json();
  f.seen = clock.synchronised
               ? fmt::format("synchronised, at most {} ms wrong", clock.error_us / 1'000)
               : "not synchronised";
  if (!clock.source.empty()) f.seen += ", source " + clock.source;
  const auto add = [&f](const char* costs, const char* mend) {
    f.verdict = Verdict::kLimited;
    f.costs += (f.costs.empty() ? "" : "; ") + std::string(costs);
    f.mend += (f.mend.empty() ? "" : "; ") + std::string(mend);
  };
  if (!clock.synchronised) {
    add("servers have the date of the machine that led at their start, which may be wrong",
        "run chrony or another NTP client, unless the hypervisor keeps the time");
  }
  if (clock.source == "hpet" || clock.source == "acpi_pm" || clock.source == "jiffies" ||
      clock.source == "refined-jiffies") {
    add("each look at the clock takes a system call of about a microsecond",
        "use tsc or a clock of the hypervisor (kvm-clock), if the kernel offers it");
  }
  return f;
}

Finding check_devices(const Devices& devices) {
  Finding f{"RDMA", Verdict::kOk, "", "", ""};
  if (!devices.problem.empty()) {
    f.seen = "unknown: " + devices.problem;
    return f;
  }
  if (devices.found.empty()) {
    f.seen = "no device; only fabric verbs needs one";
    return f;
  }
  for (const Device& d : devices.found) {
    f.seen +=
        (f.seen.empty() ? "" : "; ") + d.name + (d.driver.empty() ? "" : " (" + d.driver + ")");
    if (!d.problem.empty()) {
      f.verdict = Verdict::kLimited;
      f.seen += ": " + d.problem;
      continue;
    }
    f.seen +=
        fmt::format(": fence tested, {} of {} rounds had late writes", d.late_writes, d.rounds);
    if (d.late_writes != 0) f.verdict = Verdict::kLimited;
  }
  f.measures["devices"] = devices.found.size();
  if (f.verdict == Verdict::kOk) return f;
  f.costs = "fabric verbs cannot be trusted with such a device";
  f.mend = "name another with [group] device, bring its port up, or use fabric tcp";
  return f;
}

Finding check_port(const Port& port) {
  const std::string area = "port " + std::to_string(port.number);
  if (port.is_ours) return {area, Verdict::kOk, "this group listens there", "", ""};
  if (port.free) return {area, Verdict::kOk, "free", "", ""};
  return from_message(area.c_str(), Verdict::kMissing, port.free.error(), "clients cannot use it");
}

Finding check_directory(const Room& room, const Wanted& wanted, bool lasts) {
  Finding f{lasts ? "lasting data" : "directory", Verdict::kOk, "", "", ""};
  if (room.write_error != 0) {
    f.verdict = lasts ? Verdict::kLimited : Verdict::kMissing;
    f.seen = room.path + ": " + strerror(room.write_error);
    f.costs =
        lasts ? "--data and --durability disk need another place" : "no group can start there";
    f.mend = "name another with --dir, or correct its permissions";
    return f;
  }
  const auto replicas = static_cast<std::uint64_t>(wanted.replicas);
  f = check_room(f, room, setup::kRoomForFiles, replicas * kInodesPerReplica);
  if (f.verdict == Verdict::kLimited && room.usable_bytes() < setup::kRoomForFiles && !lasts) {
    f.verdict = Verdict::kMissing;
  }
  if (f.verdict == Verdict::kOk && lasts && room.in_memory) {
    f.verdict = Verdict::kLimited;
    f.costs = "it is in memory: a loss of power deletes all of it";
    f.mend = "name a directory on a disk with --dir";
  }
  return f;
}

Finding check_shared_memory(const Room& room, const Wanted& wanted) {
  const auto replicas = static_cast<std::uint64_t>(wanted.replicas);
  const std::uint64_t all = setup::shared_memory_needed(wanted.replicas, wanted.ring_mb);
  Finding f{"shared memory", Verdict::kOk, "", "", ""};
  if (room.write_error != 0) {
    f.verdict = Verdict::kMissing;
    f.seen = room.path + ": " + strerror(room.write_error);
    f.costs = "no replica can start";
    f.mend = "mount a tmpfs there that this user may write to";
    return f;
  }
  f = check_room(f, room, all, replicas);
  if (f.verdict == Verdict::kOk) return f;
  if (room.usable_bytes() < all) {
    if (!wanted.runs) f.verdict = Verdict::kMissing;
    f.costs = wanted.runs ? "inputs wait when it is full" : "no such group can start here";
  }
  f.mend =
      "mount -o remount,size=2G /dev/shm (docker run --shm-size 2g), fewer replicas, or a "
      "smaller --ring-mb";
  return f;
}

Finding check_fsync(const DiskSpeed& speed, const Room& room) {
  Finding f{"disk", Verdict::kOk, "", "", ""};
  if (speed.error != 0) {
    f.verdict = Verdict::kLimited;
    f.seen = room.path + ": " + strerror(speed.error);
    f.costs = "--durability disk cannot work there";
    f.mend = "name another directory with --dir";
    return f;
  }
  f.seen = fmt::format("a small write and fsync take {} us now (median of {}, slowest {} us)",
                       speed.median_us, speed.writes, speed.slowest_us);
  f.measures = {{"fsync_median_us", speed.median_us},
                {"fsync_slowest_us", speed.slowest_us},
                {"writes", speed.writes}};
  if (room.in_memory) {
    f.seen += ", in memory";
  } else if (speed.median_us > kSlowFsyncUs) {
    f.verdict = Verdict::kLimited;
    f.costs = "with --durability disk every answer takes at least as long";
    f.mend = "use a disk with a write cache that survives a loss of power, or --durability memory";
  }
  return f;
}

Finding check_copies(const Room& room, const Wanted& wanted, std::uint64_t base_bytes) {
  Finding f = check_room({"copies of the data", Verdict::kOk, "", "", ""}, room,
                         base_bytes * static_cast<std::uint64_t>(wanted.replicas), 0);
  if (f.verdict != Verdict::kOk) f.costs = "the next start, or checkpoints, find no room";
  return f;
}

}  // namespace crane::launcher
