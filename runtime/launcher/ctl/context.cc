// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/context.h"

#include <vector>

#include "runtime/setup/group_file.h"
#include "runtime/setup/host_list.h"
#include "runtime/setup/secret.h"

namespace crane::launcher {
namespace {

void add_place(Context& context, const std::string& address, std::uint16_t port) {
  const auto found = consensus::resolve(address, port);
  const int replica = static_cast<int>(context.places.size());
  context.places[replica] = found.ok() ? std::optional(found.value()) : std::nullopt;
}

}  // namespace

Outcome context_of_hosts(const std::string& hosts, const std::string& secret_file,
                         Context& context) {
  std::vector<setup::HostWord> words;
  if (auto p = setup::parse_hosts(hosts, words); !p) return p;
  if (auto p = setup::read_secret_text(secret_file, context.secret); !p) return p;
  for (const auto& word : words) {
    const std::string name = word.name.substr(word.name.find('@') + 1);
    add_place(context, word.address.empty() ? name : word.address, word.port);
  }
  return Done{};
}

Outcome context_of_file(const std::string& path, Context& context) {
  setup::GroupFile file;
  if (auto p = setup::read_group_file(path, file); !p) return p;
  if (file.fabric == "shm") {
    return setup::failure(setup::Status::kGroupFile, "cannot use the group's file", path,
                          "[group] fabric is \"shm\": all nodes are on one host, without ports",
                          "run crane-ctl there, without this file");
  }
  if (auto p = setup::read_secret_text(file.secret_file, context.secret); !p) return p;
  context.group = file.name;
  for (const auto& replica : file.replicas) add_place(context, replica.address, replica.port);
  return Done{};
}

}  // namespace crane::launcher
