// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/doctor/doctor.h"

#include <cstdio>

#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

constexpr int kTrialMs = 20'000;

void add_directories(const Examination& what, std::vector<Finding>& findings, Room& home) {
  const bool named = !what.dir.empty();
  home = look_at_room(named ? what.dir : setup::default_directory());
  findings.push_back(check_directory(home, what.wanted, false));
  findings.push_back(check_shared_memory(look_at_room(setup::kSharedMemory), what.wanted));
  if (!what.wanted.lasts) return;
  const Room lasting = named ? home : look_at_room(setup::lasting_directory());
  findings.push_back(check_directory(lasting, what.wanted, true));
  if (lasting.write_error == 0) {
    findings.push_back(check_fsync(measure_fsync(lasting.there), lasting));
  }
}

}  // namespace

std::vector<Finding> examine(const Examination& what) {
  std::vector<Finding> findings;
  setup::ProgramPaths parts;
  const Outcome found = setup::find_programs(parts);
  findings.push_back(check_parts(found));

  const Privileges privileges = look_at_privileges();
  const Kernel kernel = look_at_kernel();
  findings.push_back(check_privileges(privileges));
  findings.push_back(check_kernel(kernel));
  findings.push_back(check_trap(kernel));
  findings.push_back(check_addresses(kernel));
  findings.push_back(check_taking(kernel));

  Room home;
  std::vector<Finding> directories;
  add_directories(what, directories, home);
  const Outcome lxc = setup::check_lxc();
  if (what.wanted.container) {
    const bool can_try = privileges.root.ok() && lxc.ok() && home.write_error == 0;
    const Trial trial = can_try ? try_container(home.there, kTrialMs) : look_for_criu();
    findings.push_back(check_container(privileges, lxc, trial));
    findings.push_back(check_checkpoints(privileges, lxc, trial));
  }
  findings.push_back(check_control_groups(look_at_control_groups(), privileges.root.ok()));

  const Devices devices = found ? look_at_devices(parts.node) : Devices{};
  const Limits limits = look_at_limits();
  findings.push_back(check_processors(usable_processors(), what.wanted));
  findings.push_back(check_memory_lock(limits, devices, what.wanted));
  findings.push_back(check_descriptors(limits));
  findings.push_back(check_clock(look_at_clock()));
  findings.push_back(check_devices(devices));
  for (const Port& port : what.ports) findings.push_back(check_port(port));
  findings.insert(findings.end(), directories.begin(), directories.end());
  return findings;
}

int print_report(const Report& report, const std::string& output) {
  const std::string text = output == "json" ? report.json().dump(2) + "\n" : report.text();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return static_cast<int>(report.verdict());
}

}  // namespace crane::launcher
