// SPDX-License-Identifier: Apache-2.0
#include "proxy/node/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace crane::node {

rlim_t prepare_descriptors() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  const bool raised = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  const rlim_t most = std::min(raised ? limit.rlim_max : before, kDescriptorsReady);
  const int any = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int last = ::fcntl(any, F_DUPFD_CLOEXEC, static_cast<int>(most) - 1);  // DESCRIPTORS-1
  if (last >= 0) ::close(last);
  if (any >= 0) ::close(any);
  return before;
}

void restore_descriptors(rlim_t soft) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace crane::node
