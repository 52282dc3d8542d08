// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/replace.h"

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

ReplaceStep next_step(const nlohmann::json& members, int old, int fresh) {
  const bool there = !role_of(members, old).empty();
  const std::string role = role_of(members, fresh);
  if (role == "voter") return there ? ReplaceStep::kRemove : ReplaceStep::kDone;
  if (!there) return ReplaceStep::kNoMember;
  return role.empty() ? ReplaceStep::kAdd : ReplaceStep::kPromote;
}

}  // namespace crane::launcher
