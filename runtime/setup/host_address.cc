// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/host_address.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/ipv4_prefix.h"
#include "runtime/setup/messages.h"

namespace crane::setup {
namespace {

// The owner of `address` according to one message of the dump.
AddressOwner owner_in(const nlmsghdr* message, std::uint32_t address) noexcept {
  const auto* about = static_cast<const ifaddrmsg*>(NLMSG_DATA(message));
  auto length = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *about));
  bool same = false, ours = false;
  for (const rtattr* a = IFA_RTA(about); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
    std::uint32_t found = 0;
    if (a->rta_type == IFA_LOCAL && RTA_PAYLOAD(a) == sizeof found) {
      std::memcpy(&found, RTA_DATA(a), sizeof found);
      same = found == address;
    } else if (a->rta_type == IFA_PROTO && RTA_PAYLOAD(a) >= 1) {
      ours = *static_cast<const std::uint8_t*>(RTA_DATA(a)) == kAddedByCrane;
    }
  }
  if (!same) return AddressOwner::kNone;
  return ours ? AddressOwner::kCrane : AddressOwner::kHost;
}

struct Dump {
  nlmsghdr head;
  ifaddrmsg about;
};

}  // namespace

AddressOwner owner_of_address(std::uint32_t address) noexcept {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return AddressOwner::kNone;
  Dump request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETADDR;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.about.ifa_family = AF_INET;
  AddressOwner owner = AddressOwner::kNone;
  bool more = send(fd, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
  while (more) {
    alignas(nlmsghdr) char bytes[16 * 1024];
    auto left = static_cast<int>(recv(fd, bytes, sizeof bytes, 0));
    more = left > 0;
    const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != RTM_NEWADDR) {
        more = false;  // the end, or an error
        break;
      }
      owner = std::max(owner, owner_in(message, address));
    }
  }
  close(fd);
  return owner;
}

Outcome check_virtual_ip(const std::string& prefix) {
  const auto parsed = parse_ipv4_prefix(prefix);
  if (!parsed || owner_of_address(parsed->number) != AddressOwner::kHost) return Done{};
  return failure(Status::kHost, "cannot use the virtual address", parsed->address,
                 "it is an address of this host itself, and would move with the lead",
                 "choose an address that no host has");
}

}  // namespace crane::setup
