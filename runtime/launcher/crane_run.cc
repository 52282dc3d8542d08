// SPDX-License-Identifier: Apache-2.0
// crane-run: runs an unmodified server as a group of replicas that clients see as one.
#include <sched.h>

#include <string_view>

#include "runtime/launcher/group.h"
#include "runtime/launcher/host_agent.h"
#include "runtime/launcher/hosts.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/options.h"
#include "runtime/setup/analysis.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"

namespace {

using namespace crane::launcher;
using namespace crane::setup;

Problem choose_profile(const Options& options, const std::string& program, Profile& profile) {
  const std::vector<std::string> args(options.program.begin() + 1, options.program.end());
  if (find_profile(options.profile, program, args, profile)) return {};
  std::string names;
  for (const auto& name : profile_names()) names += (names.empty() ? "" : ", ") + name;
  return problem(Status::kUsage, "--profile", options.profile, "there is no such profile",
                 "use one of: " + names);
}

// What crane-run writes down can wait: it must not take the processor from nodes that elect a
// leader.
void give_way() {
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

int fail(const Problem& problem) {
  say(problem.text);
  return static_cast<int>(problem.status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--host-agent") return run_host_agent();
  Options options;
  Problem problem;
  const Parsed parsed = parse_options(argc, argv, options, problem);
  if (parsed == Parsed::kShown) return 0;
  if (parsed == Parsed::kProblem) return fail(problem);
  set_verbose(options.verbose);
  if (!options.remote.hosts.empty()) return Hosts(options).run();

  std::string program;
  Parts parts;
  Profile profile;
  GroupDirectories directories;
  if (problem = find_program(options.program[0], program); !problem.none()) return fail(problem);
  if (problem = check_program(program); !problem.none()) return fail(problem);
  if (problem = find_parts(parts); !problem.none()) return fail(problem);
  if (problem = choose_profile(options, program, profile); !problem.none()) return fail(problem);
  if (problem = check_machine(options.container, options.publish); !problem.none())
    return fail(problem);
  if (problem = directories.create(options.place()); !problem.none()) return fail(problem);
  if (!options.analysis.empty()) {
    if (problem = make_analysis_directory(options.analysis_dir); !problem.none()) {
      return fail(problem);
    }
  }
  give_way();
  Group group(options, parts, profile, program, directories);
  return group.run();
}
