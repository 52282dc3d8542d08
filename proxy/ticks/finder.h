// SPDX-License-Identifier: Apache-2.0
#pragma once
// Looks for a tick point of a thread in a separate process, because following the thread blocks,
// and because reading another process's memory must not be able to end the node.
//
// Threads: the node's one thread.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "proxy/ticks/choose.h"

namespace crane::ticks {

class Finder {
 public:
  class Owner {
   public:
    virtual void found(const Choice& choice) = 0;

   protected:
    ~Owner() = default;
  };

  // Both arguments must outlive it.
  Finder(event_base* base, Owner& owner) noexcept : base_(base), owner_(owner) {}
  ~Finder();
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;

  // found() follows, possibly before this returns.  REQUIRES that no other search is under way.
  // `thread`: its number inside the process's pid namespace.  `known`: as for choose().
  void find(pid_t process, std::uint32_t thread, std::span<const TickPoint> known);

 private:
  static void on_readable(int fd, short what, void* finder);
  void read();

  event_base* base_;
  Owner& owner_;
  pid_t child_ = -1;
  int fd_ = -1;
  event readable_{};
  std::string answer_;
};

}  // namespace crane::ticks
