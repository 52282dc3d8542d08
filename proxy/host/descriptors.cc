// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "dmt/base/descriptor_limit.h"

namespace crane::node {

rlim_t prepare_descriptors() noexcept {
  const rlim_t before = descriptor_limit().rlim_cur;
  limit_descriptors(RLIM_INFINITY);
  const rlim_t most = std::min(descriptor_limit().rlim_cur, kDescriptorsReady);
  const int any = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int last = ::fcntl(any, F_DUPFD_CLOEXEC, static_cast<int>(most) - 1);  // DESCRIPTORS-1
  if (last >= 0) ::close(last);
  if (any >= 0) ::close(any);
  return before;
}

}  // namespace crane::node
