// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace crane::proxy {

// Called first in each callback of the event loop.
class Woken {
 public:
  virtual void woke() = 0;

 protected:
  ~Woken() = default;
};

}  // namespace crane::proxy
