// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions behind the interposed ones: one pointer per row of the table, `real::name`, and a
// few that have no row but that libcrane.so calls by pointer because they allocate or buffer.
//
// Threads: written by init() (idempotent, before there are threads), read by all.
//
// INVARIANT REAL-1  After init() every pointer is non-null but for symbols that this libc does not
// have;
//               an attached thread runs only after init().  Before it, a stub resolves its own
//               symbol (constructors of other libraries run before ours).

#include <cstdarg>

#include "runtime/preload/core/types.h"

namespace crane::real {

#define INTERPOSE(kind, name, result, params, args, version) inline result(*name) params = nullptr;
#define INTERPOSE_VOID(kind, name, params, args, version) inline void(*name) params = nullptr;
#define INTERPOSE_NORETURN(kind, name, params, args, version) inline void(*name) params = nullptr;
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  inline result(*name) params = nullptr;
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version) \
  inline result(*name) params = nullptr;
#define INTERPOSE_OWN(kind, name, result, params, args, version) \
  inline result(*name) params = nullptr;
#define INTERPOSE_SECOND(kind, name, function)
#include "runtime/preload/core/interposed.def"

// Without rows.
inline int (*on_exit)(void (*)(int, void*), void*) = nullptr;
inline int (*__cxa_at_quick_exit)(void (*)(void*), void*) = nullptr;
inline int (*fflush)(FILE*) = nullptr;
inline int (*setvbuf)(FILE*, char*, int, size_t) = nullptr;
inline int (*vsnprintf)(char*, size_t, const char*, va_list) = nullptr;
inline FILE* (*fopencookie)(void*, const char*, cookie_io_functions_t) = nullptr;
inline int (*pthread_key_create)(pthread_key_t*, void (*)(void*)) = nullptr;
inline int (*pthread_setspecific)(pthread_key_t, const void*) = nullptr;
inline int (*pthread_attr_getdetachstate)(const pthread_attr_t*, int*) = nullptr;
inline int (*pthread_attr_setdetachstate)(pthread_attr_t*, int) = nullptr;
inline int (*pthread_attr_init)(pthread_attr_t*) = nullptr;
inline pthread_t (*pthread_self)() = nullptr;

void init() noexcept;

// The next definition of `name`; asserts that there is one.
void* resolve(const char* name, const char* version) noexcept;

}  // namespace crane::real
