// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/replace.h"

#include <algorithm>
#include <string>

namespace crane::launcher {
namespace {

std::string role_of(const nlohmann::json& members, int replica) {
  for (const auto& member : members) {
    if (member.value("replica", -1) == replica) return member.value("member", "");
  }
  return "";
}

}  // namespace

ReplaceStep next_step(const nlohmann::json& members, int old, int fresh, bool begun) {
  const std::string leaves = role_of(members, old), role = role_of(members, fresh);
  const bool there = !leaves.empty();
  const auto voters = std::count_if(members.begin(), members.end(), [](const auto& member) {
    const std::string one = member.value("member", "");
    return one == "voter" || one == "returning";
  });
  if (role == "voter" && !there) return ReplaceStep::kDone;
  if (role == "voter") {
    const bool smaller = !begun && leaves != "learner" && voters % 2 != 0;
    return smaller ? ReplaceStep::kNotNew : ReplaceStep::kRemove;
  }
  if (!there) return ReplaceStep::kNoMember;
  return role.empty() ? ReplaceStep::kAdd : ReplaceStep::kPromote;
}

}  // namespace crane::launcher
