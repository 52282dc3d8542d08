// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names of the operations, which the node shows with remembered turns. The node does not know
// this library's table.

namespace crane {

// Writes them into the segment, once per replica.  REQUIRES the turn.
void publish_operation_names() noexcept;

}  // namespace crane
