// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crane::proxy {

// Hears that the event loop has woken, first in each of its callbacks.
class Woken {
 public:
  virtual void woke() = 0;

 protected:
  ~Woken() = default;
};

}  // namespace crane::proxy
