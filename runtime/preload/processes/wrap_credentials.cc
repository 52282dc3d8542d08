// SPDX-License-Identifier: Apache-2.0
// Changes of user and group by libc. Afterwards a replica's server still ends with its supervisor.
#include <cerrno>

#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/processes/family.h"

namespace crane::wrap {
namespace {

int changed(int result) noexcept {
  const int error = errno;
  family::renew_parent_death_signal();
  errno = error;
  return result;
}

}  // namespace

int setuid(uid_t u) { return changed(real::setuid(u)); }
int seteuid(uid_t u) { return changed(real::seteuid(u)); }
int setreuid(uid_t r, uid_t e) { return changed(real::setreuid(r, e)); }
int setresuid(uid_t r, uid_t e, uid_t s) { return changed(real::setresuid(r, e, s)); }
int setfsuid(uid_t u) { return changed(real::setfsuid(u)); }
int setgid(gid_t g) { return changed(real::setgid(g)); }
int setegid(gid_t g) { return changed(real::setegid(g)); }
int setregid(gid_t r, gid_t e) { return changed(real::setregid(r, e)); }
int setresgid(gid_t r, gid_t e, gid_t s) { return changed(real::setresgid(r, e, s)); }
int setfsgid(gid_t g) { return changed(real::setfsgid(g)); }

}  // namespace crane::wrap
