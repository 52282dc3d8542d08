// SPDX-License-Identifier: Apache-2.0
// crane-run: runs an unmodified server as a group of replicas that clients see as one.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string_view>

#include "checkpoint/machine_files.h"
#include "dmt/base/clock.h"
#include "dmt/base/join.h"
#include "runtime/launcher/agent/host_agent.h"
#include "runtime/launcher/doctor/doctor.h"
#include "runtime/launcher/lasting.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/run/background.h"
#include "runtime/launcher/run/dry_run.h"
#include "runtime/launcher/run/group.h"
#include "runtime/launcher/run/hosts.h"
#include "runtime/launcher/run_files.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/analysis.h"
#include "runtime/setup/branch_counter.h"
#include "runtime/setup/data_in_use.h"
#include "runtime/setup/http.h"
#include "runtime/setup/http_access.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/preflight.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/program.h"
#include "runtime/setup/progress_line.h"
#include "runtime/setup/service_manager.h"

namespace {

using namespace crane::launcher;
using crane::Done;
using crane::Error;
using crane::Outcome;
using namespace crane::setup;

Outcome choose_profile(const Options& options, const std::string& program, Profile& profile) {
  const std::vector<std::string> args(options.program.begin() + 1, options.program.end());
  if (find_profile(options.profile, program, args, profile)) return Done{};
  return failure(Status::kUsage, "--profile", options.profile, "there is no such profile",
                 "use one of: " + crane::joined(profile_names()));
}

// crane-run's own work can wait: it must not take the processor from nodes that elect a leader.
void lower_priority() {
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

int fail(const Error& problem) {
  print_message(problem.text, crane::setup::Level::kError);
  return problem.exit_status;
}

// The facts that crane-run determines before it starts a group.
struct Found {
  std::string program;
  ProgramPaths parts;
  Profile profile;
};

Outcome find_all(const Options& options, Found& found) {
  if (auto p = find_program(options.program[0], found.program); !p) return p;
  if (auto p = check_program(found.program); !p) return p;
  if (auto p = find_programs(found.parts); !p) return p;
  if (auto p = choose_profile(options, found.program, found.profile); !p) return p;
  std::vector<std::string> detach = options.detach;
  detach.insert(detach.end(), found.profile.detach.begin(), found.profile.detach.end());
  return check_branch_counter(with_profile(options, found.profile), options.mode == "parallel",
                              detach);
}

int show_plan(const Options& options, const Found& found, const Remains& remains, bool fresh) {
  GroupPlace place = options.place();
  Plan plan{options, found.profile, found.program, fresh, remains.living, find_base(place)};
  if (plan.base.empty()) plan.base = options.lasts() ? lasting_directory() : default_directory();
  std::error_code ignored;
  const std::string identity = plan.base + "/" + options.name + "/group.json";
  plan.on_disk = fresh && options.lasts() && std::filesystem::exists(identity, ignored);
  std::fputs(plan_text(plan).c_str(), stdout);
  if (auto p = check_plan(plan); !p) return fail(p.error());
  return 0;
}

// Waits 2 s until the next attempt to find room.  False: a signal requests the end.
bool wait_for_room(const Outcome& problem) {
  print_message(problem.error().text + "; crane-run tries again every 2 s",
                crane::setup::Level::kError);
  service_manager().status("waits for room: " + problem.error().text);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  const timespec look{2, 0};
  return sigtimedwait(&ends, nullptr, &look) < 0;
}

// Holds the state of the machine's files and reports it.
// REQUIRES: no node runs yet, so that all nodes find this state.
Outcome hold_machine_files(const Options& options, const std::string& directory) {
  if (!options.container) return Done{};
  const std::string record = directory + "/" + kFilesRecord;
  if (options.force_new_group) unlink(record.c_str());
  const std::int64_t begun = crane::monotonic_ns();
  const auto held = crane::checkpoint::ensure_files(record, 0);
  if (!held.ok()) {
    const bool full = held.error().code == crane::Code::kFull;
    return failure(full ? Status::kDiskFull : Status::kDirectory,
                   "cannot keep the state of this machine's files", record, held.error().message(),
                   "make room, or run without containers");
  }
  const crane::checkpoint::GroupFiles& files = held.value();
  if (!files.why_live.empty()) {
    print_message("the server reads this machine's files as they are (" + files.why_live +
                      "): installing or removing software while the group runs may end replicas",
                  crane::setup::Level::kWarning);
  } else if (files.made_names > 1) {
    print_message(fmt::format(
        "{} files of this machine's programs are kept in their present state, in {:.1f} "
        "s; this happens once after each change of the files",
        files.made_names, static_cast<double>(crane::monotonic_ns() - begun) / 1e9));
  } else if (!files.newest && !crane::checkpoint::is_current(files)) {
    print_message("the group continues with this machine's programs and /etc as they were (" +
                  files.state + "); crane-ctl upgrade switches to the present ones");
  }
  return Done{};
}

// Calls `run` and returns its result, crane-run's exit status.  `background`: nullptr if crane-run
// stays in the foreground.
int conduct(Group& group, const RunFiles& files, Background* background,
            const std::function<int()>& run) {
  if (background != nullptr) {
    group.when_up([&] { background->up(introduction_of(files.home()), files.log()); });
  }
  const int status = run();
  files.ended(status);
  finish_messages();
  return status;
}

// Makes the directories and the lasting data of a group without living nodes.
Outcome make_group(const Options& options, GroupDirectories& directories, RunFiles& files,
                   Lasting& lasting) {
  // create() removes what the last run left, for example its logs and the marks of drained
  // replicas.
  if (!is_held(directory_of(options.place()))) {
    if (auto p = lasting.check(); !p) return p;
  }
  if (auto p = directories.create(options.place()); !p) return p;
  files.open(directories.dir());
  if (auto p = hold_machine_files(options, directories.dir()); !p) return p;
  if (!options.analysis.empty()) {
    if (auto p = make_analysis_directory(options.analysis_dir); !p) return p;
  }
  return lasting.open();
}

int start_group(const Options& options, const Found& found, GroupDirectories& directories,
                const RunFiles& files, const Lasting& lasting, Background* background) {
  GroupRecord record = new_record(options);
  record.log_id = lasting.log_id();
  record.secret = lasting.secret();
  Group group(options, found.parts, found.profile, found.program, directories, record, lasting);
  return conduct(group, files, background, [&group] { return group.run(); });
}

int run_new(const Options& options, const Found& found, Background* background) {
  if (auto p = check_machine(options.container, options.publish); !p) return fail(p.error());
  if (auto p = check_not_in_use(options.data, directory_of(options.place()) + "/base"); !p) {
    return fail(p.error());
  }
  if (auto p = crane::setup::check_http_files(options); !p) return fail(p.error());
  if (auto p = check_http_ports(options.http, options.places()); !p) {
    print_message(p.error().text, crane::setup::Level::kWarning);
  }
  lower_priority();
  for (;;) {
    GroupDirectories directories;
    RunFiles files;
    Lasting lasting(options);
    const Outcome made = make_group(options, directories, files, lasting);
    if (made) return start_group(options, found, directories, files, lasting, background);
    // A service manager would give up after a few attempts, long before there is room.
    const bool full = status_of(made) == crane::setup::Status::kDiskFull;
    const bool waits = full && service_manager().manages();
    if (waits) directories.remove();
    if (waits && wait_for_room(made)) continue;
    const int status = waits ? 0 : fail(made.error());
    files.ended(status);
    return status;
  }
}

int go_on(const Options& options, const Found& found, const GroupRecord& record, bool ends,
          Background* background) {
  GroupDirectories directories;
  RunFiles files;
  if (auto p = directories.take_over(options.place()); !p) return fail(p.error());
  files.open(directories.dir());
  lower_priority();
  const Lasting lasting(options);
  Group group(options, found.parts, found.profile, found.program, directories, record, lasting);
  return conduct(group, files, background, [&group, ends] { return group.take_over(ends); });
}

// Stops the group of this name: through its crane-run, or by taking it over if it has none.
int stop_group(Options options) {
  options.dir = find_base(options.place());
  const Remains remains = look_for_remains(options.place());
  if (remains.living == 0) {
    const bool supervised = is_held(directory_of(options.place()));
    const int status = stop_supervised(options);
    if (!supervised && end_connections(options.name)) {
      print_message("clients that waited for group " + options.name + " are reset");
    }
    return status;
  }
  Options first;
  Outcome problem = Done{};
  std::vector<const char*> words{"crane-run"};
  for (const auto& word : remains.record->words) words.push_back(word.c_str());
  restore_environment(remains.record->environment, remains.record->directory);
  if (parse_options(static_cast<int>(words.size()), words.data(), first, problem) != Parsed::kRun) {
    return fail(problem.error());
  }
  first.dir = options.dir.empty() ? first.dir : options.dir;
  first.name = options.name;
  Found found;
  if (auto p = find_all(first, found); !p) return fail(p.error());
  return go_on(first, found, *remains.record, true, nullptr);
}

// Starts, continues or takes over the group and supervises it; or prints the plan (--dry-run).
int run_group(const Options& options, Background* background) {
  hold_signals();
  Found found;
  const Remains remains = look_for_remains(options.place());
  if (remains.record && options.force_new_group && remains.living > 0) {
    return fail(refuse_to_give_up(options, remains.living));
  }
  // A group whose data last continues from its disk if none of its nodes lives.
  const bool from_disk = options.lasts() && remains.living == 0;
  const bool fresh = !remains.record || options.force_new_group || from_disk;
  if (!fresh) restore_environment(remains.record->environment, remains.record->directory);
  if (auto p = find_all(options, found); !p) return fail(p.error());
  if (options.dry_run && fresh) return show_plan(options, found, remains, fresh);
  if (fresh) return run_new(options, found, background);
  if (auto p = compare(*remains.record, options, remains.living); !p) {
    return fail(p.error());
  }
  if (options.dry_run) return show_plan(options, found, remains, fresh);
  return go_on(options, found, *remains.record, false, background);
}

int run_doctor(const DoctorOptions& o) {
  Examination what;
  what.dir = o.dir;
  what.wanted.replicas = o.replicas;
  what.wanted.ring_mb = o.ring_mb;
  for (const std::uint16_t port : o.ports) what.ports.push_back({port, check_port(port), false});
  return print_report({kThisMachine, examine(what)}, o.output);
}

}  // namespace

int main(int argc, char** argv) {
  (void)service_manager();
  crane::setup::keep_log();
  if (argc == 2 && std::string_view(argv[1]) == "--host-agent") return run_host_agent();
  Options options;
  Outcome problem = Done{};
  const Parsed parsed = parse_options(argc, argv, options, problem);
  if (parsed == Parsed::kShown) return 0;
  if (parsed == Parsed::kProblem) return fail(problem.error());
  if (options.doctor.typed) return run_doctor(options.doctor);
  set_verbose(options.verbose);
  crane::setup::show_progress(!options.quiet);
  if (!options.remote.hosts.empty()) {
    if (!options.dry_run) return Hosts(options).run();
    std::fputs(plan_text_of_hosts(options).c_str(), stdout);
    return 0;
  }
  if (options.stop) return stop_group(options);
  if (!options.background || options.dry_run) return run_group(options, nullptr);

  Background background;
  if (const auto status = background.leave()) return *status;
  return background.ended(run_group(options, &background));
}
