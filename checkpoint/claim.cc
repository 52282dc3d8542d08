// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/claim.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "checkpoint/container_supervisor.h"

namespace crane::checkpoint {
namespace {

constexpr int kLookMs = 20;

}  // namespace

Result<int> claim_container(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string whole = "crane/container/" + name;
  if (whole.size() + 1 > sizeof address.sun_path) {
    return Error{Code::kBadArgument, 0, "the container's name is too long"};
  }
  whole.copy(address.sun_path + 1, whole.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + whole.size());
  const int claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (claim < 0) return system_error("socket");
  if (bind(claim, reinterpret_cast<const sockaddr*>(&address), size) == 0) return claim;
  const Error failure = errno == EADDRINUSE
                            ? Error{Code::kExists, 0, "a container of this name runs"}
                            : system_error("claim the container's name");
  close(claim);
  return failure;
}

bool await_container_end(const std::string& name, int timeout_ms) {
  for (const auto deadline = now_ms() + timeout_ms;;) {
    const auto claimed = claim_container(name);
    if (claimed) close(claimed.value());
    if (claimed || claimed.error().code != Code::kExists) return true;
    if (now_ms() >= deadline) return false;
    poll(nullptr, 0, kLookMs);
  }
}

std::string container_name(const std::string& group, int replica) {
  return "crane." + group + ".r" + std::to_string(replica);
}

}  // namespace crane::checkpoint
