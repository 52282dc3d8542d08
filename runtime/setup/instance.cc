// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/instance.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "dmt/base/join.h"
#include "runtime/setup/preflight.h"

namespace crane::setup {
namespace {

// Whether a socket can be bound to the address.  This also finds addresses of 127.0.0.0/8, which no
// interface lists.
bool is_here(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return false;
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool here = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return here;
}

}  // namespace

Outcome parse_instance(const std::string& word, const std::string& directory, Instance& instance) {
  const auto colon = word.find(':');
  const std::string name = word.substr(0, colon);
  const auto wrong = [&word](const std::string& cause) {
    return failure(Status::kUsage, "wrong instance", word, cause,
                   "write NAME, or NAME:REPLICA if several replicas run on one machine");
  };
  if (!good_group_name(name)) return wrong("the group's name is not valid");
  instance = {directory + "/" + name + ".toml", {}};
  if (colon == std::string::npos) return Done{};
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + colon + 1, end, number);
  if (read.ec != std::errc() || read.ptr != end || number < 0) {
    return wrong("the replica's number is not a number");
  }
  instance.replica = number;
  return Done{};
}

Outcome own_replica(const std::string& path, const GroupFile& file, int& replica) {
  std::vector<std::string> here;
  for (std::size_t i = 0; i < file.replicas.size(); ++i) {
    if (!is_here(file.replicas[i].address)) continue;
    here.push_back(std::to_string(i));
    replica = static_cast<int>(i);
  }
  if (here.size() == 1) return Done{};
  return failure(Status::kGroupFile, "cannot tell which replica this host is", path,
                 here.empty() ? "this host has no replica's address"
                              : "this host has the addresses of replicas " + joined(here),
                 here.empty() ? "correct the addresses, or name the replica (NAME:REPLICA)"
                              : "name one (NAME:REPLICA)");
}

}  // namespace crane::setup
