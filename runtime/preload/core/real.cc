// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/core/real.h"

#include <dlfcn.h>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"

namespace crane::real {
namespace {

constexpr int kCannotResolve = 125;
constexpr char kDlsymVersion[] = "GLIBC_2.34";  // the row's

void* find(const char* name, const char* version) noexcept {
  if (version[0] != '\0') {
    if (void* found = ::dlvsym(RTLD_NEXT, name, version)) return found;
  }
  // By its name it is ours.
  if (dlsym == nullptr) {
    dlsym = reinterpret_cast<decltype(dlsym)>(::dlvsym(RTLD_NEXT, "dlsym", kDlsymVersion));
  }
  return dlsym == nullptr ? nullptr : dlsym(RTLD_NEXT, name);
}

}  // namespace

void* resolve(const char* name, const char* version) noexcept {
  void* found = find(name, version);
  if (found == nullptr) {
    { Message() << "no function " << name << " in the C library: this libc is not supported"; }
    raw_syscall(SYS_exit_group, kCannotResolve);
  }
  return found;
}

void init() noexcept {
#define CRANE_FIND(name, version) \
  if (name == nullptr) name = reinterpret_cast<decltype(name)>(find(#name, version))
#define INTERPOSE(kind, name, result, params, args, version) CRANE_FIND(name, version);
#define INTERPOSE_VOID(kind, name, params, args, version) CRANE_FIND(name, version);
#define INTERPOSE_NORETURN(kind, name, params, args, version) CRANE_FIND(name, version);
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  CRANE_FIND(name, version);
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version) CRANE_FIND(name, version);
#define INTERPOSE_OWN(kind, name, result, params, args, version) CRANE_FIND(name, version);
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/core/interposed.def"
  CRANE_FIND(on_exit, "");
  CRANE_FIND(__cxa_at_quick_exit, "");
  CRANE_FIND(fflush, "");
  CRANE_FIND(setvbuf, "");
  CRANE_FIND(fopencookie, "");
  CRANE_FIND(vsnprintf, "");
  CRANE_FIND(pthread_key_create, "");
  CRANE_FIND(pthread_setspecific, "");
  CRANE_FIND(pthread_attr_getdetachstate, "");
  CRANE_FIND(pthread_attr_setdetachstate, "");
  CRANE_FIND(pthread_attr_init, "");
  CRANE_FIND(pthread_self, "");
#undef CRANE_FIND
}

}  // namespace crane::real
