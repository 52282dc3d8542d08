// SPDX-License-Identifier: Apache-2.0
// crane-ctl versions: the versions of this build and of the replicas that answer.
#include <set>

#include "dmt/base/versions.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/find_group.h"
#include "runtime/launcher/text_table.h"
#include "runtime/setup/version.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

Json own_versions() {
  Json all = Json::array();
  for (const AgreedVersion& one : kAgreedVersions) {
    all.push_back({{"what", one.name}, {"number", one.number}, {"in one group", "equal"}});
  }
  all.push_back({{"what", "segment"},
                 {"number", setup::segment_version()},
                 {"in one group", "equal within a replica"}});
  return all;
}

Json row_of(const std::string& group, int replica, const NodeAnswer& answer) {
  Json row = control::object_in(answer.status, "build");
  row["versions"] = versions_of(answer);
  row["group"] = group;
  row["replica"] = replica;
  row["upgradable"] = control::text_in(row, "versions") == setup::agreed_versions_text();
  return row;
}

std::string text_of(const Json& builds) {
  static constexpr Column kOwn[] = {{"VERSION", "what", false},
                                    {"HERE", "number", true},
                                    {"IN ONE GROUP", "in one group", false}};
  static constexpr Column kBuilds[] = {
      {"GROUP", "group", false},    {"REPLICA", "replica", true},
      {"COMMIT", "commit", false},  {"VERSIONS", "versions", false},
      {"SEGMENT", "segment", true}, {"LIBCRANE", "libcrane", false}};
  std::string text = "commit " + std::string(setup::commit()) + "\n" + table(kOwn, own_versions());
  if (builds.empty()) return text;
  text += "\n" + table(kBuilds, builds) + "\n";
  std::set<std::string> others;
  for (const Json& row : builds) {
    if (!row.value("upgradable", false)) others.insert(row.value("group", ""));
  }
  for (const std::string& group : others) {
    text += group +
            ": this build cannot run beside all of its replicas: stop the group and start it with "
            "this build\n";
  }
  if (others.empty()) {
    text += "this build may replace theirs, replica by replica: crane-ctl replica drain, resume\n";
  }
  return text;
}

}  // namespace

// A node of a build without the table reports no versions.
std::string versions_of(const NodeAnswer& answer) {
  return control::text_in(control::object_in(answer.status, "build"), "versions",
                          "unknown: the build has no table of versions");
}

int show_versions(const Request& request) {
  bool denied = false;
  std::vector<std::string> groups;
  if (!request.group.empty() || request.context) {
    if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  } else {  // without a group the command succeeds even if nothing runs
    for (const auto& found : find_groups(request.dir, denied)) groups.push_back(found.name);
  }
  Json builds = Json::array();
  for (const std::string& group : groups) {
    for (const auto& [replica, answer] : ask_all(request, group)) {
      if (answer.reply == Reply::kAnswer) builds.push_back(row_of(group, replica, answer));
    }
  }
  const Json all{{"version", control::kVersion},
                 {"commit", setup::commit()},
                 {"versions", own_versions()},
                 {"replicas", builds}};
  print(request.output == "json" ? all.dump(2) + "\n" : text_of(builds));
  return 0;
}

}  // namespace crane::launcher
