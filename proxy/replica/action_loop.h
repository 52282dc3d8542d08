// SPDX-License-Identifier: Apache-2.0
#pragma once
// Carries out the actions of a machine of proxy/replica.  An action may step the machine again; the
// new actions are carried out after those of the current list.
//
// Threads: the node's one thread.

#include <utility>
#include <variant>

namespace crane::replica {

template <typename ActionList>
class ActionLoop {
 public:
  // Passes each action of `machine` to `carry_out`, in order, until there are no more.  The list
  // keeps its capacity.
  template <typename Machine, typename CarryOut>
  void run(Machine& machine, const CarryOut& carry_out) {
    if (std::exchange(runs_, true)) return;
    while (machine.take_actions(list_)) {
      for (auto& action : list_) std::visit(carry_out, action);
    }
    runs_ = false;
  }

 private:
  ActionList list_;  // being carried out
  bool runs_ = false;
};

}  // namespace crane::replica
