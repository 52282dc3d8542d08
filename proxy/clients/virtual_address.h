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
  Outcome open(const std::string& address, const std::string& interface);
  bool configured() const noexcept { return index_ != 0; }
  bool held() const noexcept { return held_; }
  // Adds it, if it is not there, and announces it.
  Outcome take();
  // Again: an earlier leader that was cut off, and is back, may have answered for it meanwhile, and
  // neighbours would send there until they ask anew, which takes half a minute.
  Outcome announce() const;
  void give_up() noexcept;

 private:
  Outcome change(bool add) const;

  std::uint32_t address_ = 0;  // network order
  unsigned prefix_ = 0;
  unsigned index_ = 0;
  std::string interface_;
  bool held_ = false;
  int packets_ = -1;  // to announce it; kept, for the kernel takes 10 ms to close one
};

}  // namespace crane::node
