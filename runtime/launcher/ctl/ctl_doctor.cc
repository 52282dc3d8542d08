// SPDX-License-Identifier: Apache-2.0
// crane-ctl doctor: checks the machine for one group, and reports problems that the group knows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "dmt/base/read_text.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/doctor/doctor.h"
#include "runtime/launcher/doctor/group_checks.h"
#include "runtime/launcher/options.h"
#include "runtime/launcher/take_over.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

// The command line that started the group; nullopt: no crane-run of this machine started it.
std::optional<Options> options_of(const std::string& home) {
  const auto record = read_record(home);
  if (!record) return {};
  std::vector<const char*> words{"crane-run"};
  for (const auto& word : record->words) words.push_back(word.c_str());
  Options options;
  Outcome problem = Done{};
  const auto count = static_cast<int>(words.size());
  if (parse_options(count, words.data(), options, problem) != Parsed::kRun) return {};
  return options;
}

// Adds the client ports of the running group; they need no check, because the group has them.
void add_ports_of_group(const std::string& home, const Json& summary, std::vector<Port>& ports) {
  const auto add = [&ports](const Json& number) {
    if (!number.is_number_unsigned()) return;
    const auto port = number.get<std::uint16_t>();
    // A server may listen twice at a port, for IPv4 and IPv6.
    const auto same = [port](const Port& known) { return known.number == port; };
    if (std::none_of(ports.begin(), ports.end(), same)) ports.push_back({port, Done{}, true});
  };
  std::ifstream in(home + "/state.json");
  const Json state = in ? Json::parse(rest_of(in), nullptr, false) : Json();
  for (const Json& socket : control::list_in(state, "listening")) {
    if (socket.contains("published")) add(socket["published"]);
  }
  for (const Json& row : control::list_in(summary, "replicas")) {
    if (!ports.empty()) break;
    for (const Json& pair : control::list_in(row, "ports")) {
      if (pair.is_array() && pair.size() == 2) add(pair[1]);
    }
  }
}

Examination examination_of(const Request& request, const std::string& group, const Json& summary) {
  const std::string home = request.home_of(group);
  const auto options = options_of(home);
  Examination what;
  what.dir = home;
  what.wanted.replicas = 0;
  std::error_code ignored;
  what.wanted.lasts = std::filesystem::exists(home + "/group.json", ignored) ||
                      control::text_in(summary, "durability") == "disk";
  for (const Json& row : control::list_in(summary, "replicas")) {
    const std::string state = control::text_in(row, "state");
    what.wanted.replicas += state != "on another host" && state != "no member";
    what.wanted.runs = what.wanted.runs || state == "ok";
  }
  if (what.wanted.runs) add_ports_of_group(home, summary, what.ports);
  if (!options) return what;
  what.wanted.container = options->container;
  if (options->ring_mb != 0) what.wanted.ring_mb = options->ring_mb;
  if (what.wanted.runs) return what;
  what.wanted.replicas = options->places();
  for (const setup::Published& port : options->publish) {
    what.ports.push_back({port.ours, setup::check_port(port.ours), false});
  }
  return what;
}

}  // namespace

int examine_group(const Request& request) {
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const Json summary = summary_of(request, group);
  const Examination what = examination_of(request, group, summary);
  Report report{group, check_group(summary)};
  for (Finding& finding : examine(what)) report.findings.push_back(std::move(finding));
  const std::string base = what.dir + "/base";
  if (std::error_code ignored; std::filesystem::is_directory(base, ignored)) {
    report.findings.push_back(check_copies(look_at_room(what.dir), what.wanted, bytes_below(base)));
  }
  return print_report(report, request.output);
}

}  // namespace crane::launcher
