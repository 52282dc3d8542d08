// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/real.h"

#include <dlfcn.h>

#include "dmt/base/log.h"
#include "dmt/base/raw.h"

namespace crane::real {
namespace {

constexpr int kCannotResolve = 125;

constinit NextObjects next;

}  // namespace

void* find(const char* name, std::uint32_t hash, const char* version) noexcept {
  if (version[0] != '\0') {
    if (void* found = ::dlvsym(RTLD_NEXT, name, version)) return found;
  } else if (void* found = next.find(name, hash)) {
    return found;
  }
  // The name finds our own dlsym, and looking dlsym up by itself would recurse forever.
  if (!dlsym.is_known() && hash == gnu_hash(dlsym_row::name)) return nullptr;
  return dlsym.get() == nullptr ? nullptr : dlsym(RTLD_NEXT, name);
}

void* resolve(const char* name, std::uint32_t hash, const char* version) noexcept {
  void* found = find(name, hash, version);
  if (found == nullptr) {
    { Message() << "no function " << name << " in the C library: this libc is not supported"; }
    raw_syscall(SYS_exit_group, kCannotResolve);
  }
  return found;
}

void init() noexcept {
  next.collect(reinterpret_cast<const void*>(&init));
#define CRANE_ASK(name, version) \
  if constexpr (is_asked_of_loader(#name, version)) (void)name.get();
#define INTERPOSE(kind, name, result, params, args, version) CRANE_ASK(name, version)
#define INTERPOSE_VOID(kind, name, params, args, version) CRANE_ASK(name, version)
#define INTERPOSE_NORETURN(kind, name, params, args, version) CRANE_ASK(name, version)
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  CRANE_ASK(name, version)
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version) CRANE_ASK(name, version)
#define INTERPOSE_OWN(kind, name, result, params, args, version) CRANE_ASK(name, version)
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/ground/interposed.def"
#undef CRANE_ASK
}

}  // namespace crane::real
