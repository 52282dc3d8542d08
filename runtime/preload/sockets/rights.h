// SPDX-License-Identifier: Apache-2.0
#pragma once
// The descriptors that a message carries (SCM_RIGHTS).
//
// Threads: plain functions.

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace crane {

// The descriptors of one control message, cut to the control bytes that the message has.
class Rights {
 public:
  Rights(const unsigned char* data, std::size_t count) noexcept : data_(data), count_(count) {}
  std::size_t count() const noexcept { return count_; }
  int at(std::size_t i) const noexcept {
    int fd;
    std::memcpy(&fd, data_ + i * sizeof fd, sizeof fd);
    return fd;
  }

 private:
  const unsigned char* data_;
  std::size_t count_;
};

// Calls `visit(Rights)` for each control message that carries descriptors.
template <typename Visit>
void each_rights(const struct msghdr& message, Visit visit) noexcept {
  auto& m = const_cast<struct msghdr&>(message);
  const auto* const end = static_cast<const unsigned char*>(m.msg_control) + m.msg_controllen;
  for (struct cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const unsigned char* data = CMSG_DATA(c);
    const std::size_t stated_size = c->cmsg_len < CMSG_LEN(0) ? 0 : c->cmsg_len - CMSG_LEN(0);
    const std::size_t there = data < end ? static_cast<std::size_t>(end - data) : 0;
    visit(Rights(data, std::min(stated_size, there) / sizeof(int)));
  }
}

}  // namespace crane
