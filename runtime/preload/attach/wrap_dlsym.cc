// SPDX-License-Identifier: Apache-2.0
// Functions looked up by name. A library may look up libc's pthread_create with RTLD_NEXT or libc's
// handle (jemalloc does, for its background thread). Without this wrapper it would bypass the
// preloaded function and start a thread without a slot, which takes mutexes at arbitrary times.
//
// Rules:
// * The stub is returned only where the real result would be libc's. A handle of another library
//   means that library's own definition.
// * The stub is returned only where the next definition after ours is libc's, too. A library that
//   wraps libc's function, and looks it up by libc's handle, wants the function that it wraps: our
//   stub would call that library's function, which would call the stub.
// * RTLD_DEFAULT finds our functions without help, after the program's own definitions.
//
// dlvsym is not wrapped: real::dlsym is found by it.
#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#include "runtime/preload/ground/loaded_texts.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/self/thread.h"

namespace crane {

// One entry per row of the table, in a separate section (interpose.cc).
struct Stub {
  std::int32_t name, function;  // each relative to its own position
};

// The result, or null: then the real function must be called.
struct LookedUp {
  void* answer;
  void* real;
};

}  // namespace crane

extern "C" {
extern const crane::Stub __start_crane_stubs[] __attribute__((visibility("hidden")));
extern const crane::Stub __stop_crane_stubs[] __attribute__((visibility("hidden")));
}

namespace crane {
namespace {

const char* at(const std::int32_t& place) noexcept {
  return reinterpret_cast<const char*>(&place) + place;
}

void* find_stub(const char* name) noexcept {
  for (const Stub* s = __start_crane_stubs; s != __stop_crane_stubs; ++s) {
    if (std::strcmp(at(s->name), name) == 0) return const_cast<char*>(at(s->function));
  }
  return nullptr;
}

// Whether dlsym(handle, name) is libc's; RTLD_NEXT means the next object after this library.
bool is_libc_s(void* handle, const char* name) noexcept {
  const void* found = real::dlsym(handle, name);
  return found != nullptr && is_libc_or_trusted(found);
}

}  // namespace

// Called by the assembly stub of dlsym.
extern "C" __attribute__((visibility("hidden"), used)) LookedUp crane_look_up(
    void* handle, const char* name) noexcept {
  LookedUp result{nullptr, reinterpret_cast<void*>(real::dlsym.get())};
  if (segment == nullptr || handle == RTLD_DEFAULT || name == nullptr) return result;
  void* const stub = find_stub(name);
  if (stub == nullptr || !is_libc_s(handle, name)) return result;
  if (handle == RTLD_NEXT || is_libc_s(RTLD_NEXT, name)) result.answer = stub;
  return result;
}

}  // namespace crane
