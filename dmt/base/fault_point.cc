// SPDX-License-Identifier: Apache-2.0
#include "dmt/base/fault_point.h"

namespace crane {

FaultHook fault_hook = nullptr;

}  // namespace crane
