// SPDX-License-Identifier: Apache-2.0
#pragma once
// The real functions of interposed names: one object per row of the table, `real::name`, and a few
// without a row that libcrane.so calls by pointer because they allocate or buffer.
//
// A program uses few of them, and each look-up costs as much as a system call. So the first caller
// of a function looks it up, without ld.so's lock (NextObjects).
//
// Threads: init() before there are threads; all else by any.
//
// INVARIANT REAL-1  After init(), no function that this libc has is looked up by ld.so, so a thread
//     with the turn never waits for a thread that holds ld.so's lock without the turn. An attached
//     thread runs only after init(). Before it, a stub looks up only its own symbol by ld.so
//     (constructors of other libraries run before ours).

#include <cstdarg>
#include <string_view>

#include "runtime/preload/ground/next_objects.h"
#include "runtime/preload/ground/types.h"

namespace crane::real {

// The next definition of `name`, or null.
void* find(const char* name, std::uint32_t hash, const char* version) noexcept;
// find() that asserts that there is a definition.
void* resolve(const char* name, std::uint32_t hash, const char* version) noexcept;

template <typename F, typename Row>
class Function {
 public:
  // Returns null where this libc has none.
  F* get() const noexcept {
    F* known = __atomic_load_n(&at_, __ATOMIC_RELAXED);
    return __builtin_expect(known != nullptr, 1) ? known : bind(find);
  }
  operator F*() const noexcept { return get(); }
  bool is_known() const noexcept { return __atomic_load_n(&at_, __ATOMIC_RELAXED) != nullptr; }
  void require() const noexcept {
    if (__builtin_expect(!is_known(), 0)) bind(resolve);
  }

 private:
  __attribute__((noinline, cold)) F* bind(void* (*look_up)(const char*, std::uint32_t,
                                                           const char*) noexcept) const noexcept {
    constexpr std::uint32_t hash = gnu_hash(Row::name);
    auto* found = reinterpret_cast<F*>(look_up(Row::name, hash, Row::version));
    __atomic_store_n(&at_, found, __ATOMIC_RELAXED);
    return found;
  }

  mutable F* at_ = nullptr;
};

// Each function has its own type, so that its name is known where it is called.
#define CRANE_REAL_FUNCTION(type, function, of_version) \
  struct function##_row {                               \
    static constexpr char name[] = #function;           \
    static constexpr char version[] = of_version;       \
  };                                                    \
  inline constinit Function<type, function##_row> function

#define INTERPOSE(kind, name, result, params, args, version) \
  CRANE_REAL_FUNCTION(result params, name, version);
#define INTERPOSE_VOID(kind, name, params, args, version) \
  CRANE_REAL_FUNCTION(void params, name, version);
#define INTERPOSE_NORETURN(kind, name, params, args, version) \
  CRANE_REAL_FUNCTION(void params, name, version);
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  CRANE_REAL_FUNCTION(result params, name, version);
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version) \
  CRANE_REAL_FUNCTION(result params, name, version);
#define INTERPOSE_OWN(kind, name, result, params, args, version) \
  CRANE_REAL_FUNCTION(result params, name, version);
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/ground/interposed.def"

// Functions without rows.
CRANE_REAL_FUNCTION(int(void (*)(int, void*), void*), on_exit, "");
CRANE_REAL_FUNCTION(int(void (*)(void*), void*), __cxa_at_quick_exit, "");
CRANE_REAL_FUNCTION(int(FILE*, char*, int, size_t), setvbuf, "");
CRANE_REAL_FUNCTION(int(char*, size_t, const char*, va_list), vsnprintf, "");
CRANE_REAL_FUNCTION(FILE*(void*, const char*, cookie_io_functions_t), fopencookie, "");
CRANE_REAL_FUNCTION(int(pthread_key_t*, void (*)(void*)), pthread_key_create, "");
CRANE_REAL_FUNCTION(int(pthread_key_t, const void*), pthread_setspecific, "");
CRANE_REAL_FUNCTION(int(const pthread_attr_t*, int*), pthread_attr_getdetachstate, "");
CRANE_REAL_FUNCTION(int(const pthread_attr_t*, std::size_t*), pthread_attr_getstacksize, "");
CRANE_REAL_FUNCTION(int(pthread_attr_t*, int), pthread_attr_setdetachstate, "");
CRANE_REAL_FUNCTION(int(pthread_attr_t*), pthread_attr_init, "");
CRANE_REAL_FUNCTION(pthread_t(), pthread_self, "");
#undef CRANE_REAL_FUNCTION

// Looks up by ld.so what only ld.so can find: old versions, and functions whose code is picked when
// they are bound.
void init() noexcept;
// Whether a row is one of these.
constexpr bool is_asked_of_loader(std::string_view name, std::string_view version) {
  return !version.empty() || name == "time" || name == "gettimeofday";
}

}  // namespace crane::real
