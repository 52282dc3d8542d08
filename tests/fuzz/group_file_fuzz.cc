// SPDX-License-Identifier: Apache-2.0
// The file of a group on several hosts: any text is read, or refused with a reason; a file that was
// read is written so that it can be read back.

#include "dmt/base/assert.h"
#include "runtime/setup/group_file.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {

std::vector<std::string> seeds() {
  setup::GroupFile f;
  f.name = "shop";
  f.secret_file = "/etc/crane/secret";
  f.replicas = {{"10.0.0.1", 7100, "", 1}, {"10.0.0.2", 7100, "", -1}, {"fd00::3", 7102, "", -1}};
  f.command = {"redis-server", "--port", "7000"};
  const std::string least = setup::to_toml(f);
  f.env = {"A=1", "B=\"x\""};
  f.binds = {"/srv:/srv:ro"};
  f.shared_binds = {"/srv"};
  f.virtual_ip = "192.0.2.9/24";
  f.interface = "eth0";
  f.role_change = "/usr/bin/hook";
  f.publish.emplace_back(8080, 80);
  return {least, setup::to_toml(f), "[group]\nname = 3\n", "[[replica]]\n", ""};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crane::setup;
  const std::string text(reinterpret_cast<const char*>(data), size);
  GroupFile file;
  const crane::Outcome problem = parse_group_file(text, "group.toml", file);
  CRANE_ASSERT(problem.ok() || !problem.error().text.empty());
  if (!problem) return 0;
  GroupFile again;
  CRANE_ASSERT(parse_group_file(to_toml(file), "again", again).ok());
  CRANE_ASSERT(to_toml(again) == to_toml(file));
  return 0;
}
