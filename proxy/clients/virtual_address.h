// SPDX-License-Identifier: Apache-2.0
#pragma once
// The address that moves with the lead ([clients] virtual_ip, interface): whoever leads has it.
//
// It is added by rtnetlink and announced by gratuitous ARP, so that switches and neighbours send to
// the new leader's host at once; both take microseconds and never wait, which a program to run
// would. IPv4 only. A leader that is cut off keeps the address on its cut-off host until it learns
// that it was replaced: then it gives it up.  One whose process was killed leaves it there until
// the next one of this replica starts.
//
// When the cut is mended both hosts have it for a while, and whoever speaks last gets the clients.
// So an announcement carries the reign, in the padding of its frame: the later leader announces it
// again when it hears another host speak of the address (RFC 5227), the earlier one keeps silent.
//
// Needs CAP_NET_ADMIN and CAP_NET_RAW. Threads: the loop's. Errors: Result; `what` says which step.

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

  // "192.0.2.9/24" on "eth0". kBadArgument: no such form; kNotFound: no such interface.
  // `left`: it is there, and a process of Crane that was killed has left it.
  Outcome open(const std::string& address, const std::string& interface, bool left = false);
  bool configured() const noexcept { return index_ != 0; }
  bool held() const noexcept { return held_; }
  // Adds it, and announces it; EEXIST: the host has it by itself.  `reign` rises from one leader to
  // the next.
  Outcome take(std::uint32_t reign);
  // Again: neighbours that heard another host would send there until they ask anew, which takes
  // half a minute.
  Outcome announce() const;
  void give_up() noexcept;

  // Readable when another host has spoken of the address; -1: it cannot be heard.
  int fd() const noexcept { return packets_; }
  enum class Heard : std::uint8_t {
    kNothing,
    kAnother,   // asks for it, or has it, too
    kReplaced,  // a later leader has it
  };
  Heard hear() noexcept;

 private:
  Outcome change(bool add) const;
  void open_packets() noexcept;

  std::uint32_t address_ = 0;  // network order
  unsigned prefix_ = 0;
  unsigned index_ = 0;
  std::string interface_;
  bool held_ = false;
  std::uint32_t reign_ = 0;
  int packets_ = -1;  // ARP of the address; kept, for the kernel takes 10 ms to close one
};

}  // namespace crane::node
