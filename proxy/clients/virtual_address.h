// SPDX-License-Identifier: Apache-2.0
#pragma once
// The address that moves with leadership ([clients] virtual_ip, interface): the leader has it.
//
// It is added by rtnetlink and announced by gratuitous ARP, so that switches and neighbours send to
// the new leader's host at once.  Both take microseconds and never wait, as running a program
// would.  IPv4 only.  A leader that is cut off keeps the address on its host until it learns that
// it was replaced, and gives it up then.  If its process was killed, the address stays on the host
// until the next process of this replica starts.
//
// When the cut is mended, both hosts have the address for a while, and the last one that announces
// it gets the clients.  So an announcement carries the reign, in the padding of its frame.  The
// later leader announces the address again when it sees ARP packets of another host about it (RFC
// 5227); the earlier one stays silent.
//
// Needs CAP_NET_ADMIN and CAP_NET_RAW. Threads: the loop's. Errors: Result; `what` names the step.

#include <cstdint>
#include <string>

#include "dmt/base/result.h"

namespace crane::node {

class VirtualAddress {
 public:
  VirtualAddress() = default;
  ~VirtualAddress();
  VirtualAddress(const VirtualAddress&) = delete;
  VirtualAddress& operator=(const VirtualAddress&) = delete;

  // "192.0.2.9/24" on "eth0".  kBadArgument: the form is wrong; kNotFound: there is no such
  // interface.  `left`: the host has the address because a Crane process that was killed has left
  // it.
  Outcome open(const std::string& address, const std::string& interface, bool left = false);
  bool configured() const noexcept { return index_ != 0; }
  bool held() const noexcept { return held_; }
  // Adds and announces the address; EEXIST: the host has it for another reason.  `reign` increases
  // from one leader to the next.
  Outcome take(std::uint32_t reign);
  // Announces it again: neighbours that heard another host would send there until they ask again,
  // which takes half a minute.
  Outcome announce() const;
  void give_up() noexcept;

  // Readable when another host has sent ARP packets about the address; -1: they cannot be received.
  int fd() const noexcept { return packets_; }
  enum class ArpSighting : std::uint8_t {
    kNothing,
    kAnother,   // another host asks for it, or has it, too
    kReplaced,  // a later leader has it
  };
  ArpSighting read_arp_packets() noexcept;

 private:
  Outcome change(bool add) const;
  void open_packets() noexcept;

  std::uint32_t address_ = 0;  // network order
  unsigned prefix_ = 0;
  unsigned index_ = 0;
  std::string interface_;
  bool held_ = false;
  std::uint32_t reign_ = 0;
  // ARP packets of the address; kept open, because closing takes the kernel 10 ms.
  int packets_ = -1;
};

}  // namespace crane::node
