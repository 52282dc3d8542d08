// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/dry_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "dmt/base/join.h"
#include "dmt/base/place.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/run/hosts.h"
#include "runtime/setup/data_in_use.h"
#include "runtime/setup/http.h"
#include "runtime/setup/http_access.h"

namespace crane::launcher {
namespace {

using PlanLines = std::vector<std::pair<const char*, std::string>>;

std::string text_of(const std::string& title, const PlanLines& lines) {
  std::string text = title + "\n";
  for (const auto& [what, how] : lines) text += fmt::format("  {:<12} {}\n", what, how);
  return text;
}

std::string beginning(const Plan& p) {
  if (!p.fresh) return fmt::format("takes over the {} living nodes of this group", p.living);
  if (p.on_disk) return "continues with the data that " + p.base + "/" + p.options.name + " holds";
  return "as a new group";
}

std::string lasting_text(const Options& o) {
  if (!o.lasts()) return "nothing: the server's files are gone when the group ends (see --data)";
  std::string text =
      o.data.empty() ? "all answered requests" : "the server's files in " + joined(o.data);
  return text +
         (o.on_disk() ? ", even if everything is killed at once" : ", across stop and start");
}

std::string clients_text(const setup::Ports& publish) {
  if (publish.empty()) return "reach the server wherever it listens";
  std::vector<std::string> all;
  for (const setup::Published& port : publish) {
    all.push_back(
        fmt::format("{} for the server's {}", place::text(port.ours, port.address), port.served));
  }
  return "reach " + joined(all);
}

std::string checkpoints_text(const Options& o) {
  std::vector<std::string> when;
  if (o.checkpoint_every_s != 0) when.push_back(fmt::format("every {} s", o.checkpoint_every_s));
  if (o.checkpoint_log_mb != 0) when.push_back(fmt::format("every {} MB", o.checkpoint_log_mb));
  if (when.empty()) return "only on request";
  return "by a follower, " + joined(when) + " of log, while clients are active";
}

std::string http_text(const Options& o) {
  if (o.http.empty()) return "none";
  const char* const scheme = o.http_certificate.empty() ? "http://" : "https://";
  std::vector<std::string> all;
  for (int i = 0; i < o.places(); ++i) {
    all.push_back(scheme + setup::http_of_replica(o.http, i) + "/");
  }
  const std::string who = o.http_open            ? "everyone reads"
                          : o.http_users.empty() ? "every program of this machine reads"
                                                 : "the users of " + o.http_users;
  return joined(all) + "; " + who;
}

}  // namespace

std::string plan_text(const Plan& p) {
  const Options& o = p.options;
  std::vector<std::string> command = o.program;
  command.insert(command.end(), p.profile.args.begin(), p.profile.args.end());
  PlanLines lines{{"group", fmt::format("{}, {} replicas{}", o.name, o.replicas,
                                        o.spares == 0 ? "" : fmt::format(", {} spares", o.spares))},
                  {"begins", beginning(p)},
                  {"program", p.program},
                  {"command", fmt::format("{}", fmt::join(command, " "))},
                  {"profile", p.profile.name + ", " + o.mode},
                  {"containers", o.container ? "LXC, one per replica" : "none"},
                  {"durability", o.durability},
                  {"lasts", lasting_text(o)},
                  {"directory", p.base + "/" + o.name + (o.lasts() ? "" : ", removed at the end")},
                  {"clients", clients_text(o.publish)},
                  {"outbound", o.outbound},
                  {"checkpoints", checkpoints_text(o)},
                  {"HTTP", http_text(o)}};
  if (!o.analysis.empty()) lines.push_back({"analysis", o.analysis + " in " + o.analysis_dir});
  if (!o.record.empty()) lines.push_back({"recordings", o.record});
  return text_of("crane-run would do this; nothing was started or written", lines);
}

std::string plan_text_of_hosts(const Options& o) {
  const std::string hosts = joined(o.remote.hosts, &setup::HostWord::name);
  return text_of("crane-run would do this; no host was contacted, nothing was started or written",
                 {{"group", o.name + ", one replica on each of " + hosts}, {"by", o.remote.rsh}}) +
         "the file of each of its nodes (the secret is made or read at the start):\n" +
         setup::to_toml(group_file_of(o));
}

Outcome check_plan(const Plan& p) {
  const Options& o = p.options;
  if (auto found = setup::check_machine(o.container, o.publish); !found) return found;
  if (auto found = setup::check_http_files(o); !found) return found;
  if (auto found = p.fresh ? setup::check_http_ports(o.http, o.places()) : Done{}; !found)
    return found;
  const std::string base = p.base + "/" + o.name + "/base";
  if (auto found = p.fresh ? setup::check_not_in_use(o.data, base) : Done{}; !found) return found;
  std::error_code ignored;
  std::filesystem::path there = p.base;  // its nearest existing parent
  while (!std::filesystem::exists(there, ignored) && there.has_relative_path()) {
    there = there.parent_path();
  }
  if (auto found = setup::check_room(there.string(), setup::kRoomForFiles); !found) return found;
  const setup::GroupPlace place = o.place();
  return setup::check_shared_memory(setup::kSharedMemory, place.replicas, place.ring_mb);
}

}  // namespace crane::launcher
