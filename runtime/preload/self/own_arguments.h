// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that name a descriptor of libcrane.so fail before any wrapper sees them, because the
// program has no such descriptor. The types in the rows of interposed.def mark the arguments that
// are descriptors, so a new row is covered automatically.
//
// Threads: any.
// INVARIANT OWN-FD-1  No interposed call reads, writes, maps, copies or passes on a descriptor of
//     ours (tests/interpose/posix/descriptors_that_are_not_open.c).

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "runtime/preload/ground/operations.h"
#include "runtime/preload/self/own_descriptors.h"

namespace crane::own {

// Bit i: argument i.
struct Arguments {
  std::uint8_t descriptors = 0;
  std::uint8_t directories = 0;  // the path in the next argument may be relative to it
  constexpr bool none() const { return (descriptors | directories) == 0; }
};

// Reads a row's parameters, such as "(Descriptor fd, off_t n)": their types mark the descriptors.
constexpr Arguments arguments_of(std::string_view parameters) {
  Arguments found;
  parameters.remove_prefix(1);
  for (unsigned i = 0; !parameters.empty() && i < 6; ++i) {
    std::string_view one = parameters.substr(0, parameters.find_first_of(",)"));
    parameters.remove_prefix(one.size() + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    const auto bit = static_cast<std::uint8_t>(1u << i);
    if (one.starts_with("Descriptor ")) found.descriptors |= bit;
    if (one.starts_with("Directory ")) found.directories |= bit;
  }
  return found;
}

inline constexpr auto kArguments = [] {
  std::array<Arguments, static_cast<std::size_t>(Op::kCount)> all{};
#define INTERPOSE(kind, name, result, params, args, version) \
  all[static_cast<std::size_t>(Op::name)] = arguments_of(#params);
#define INTERPOSE_VOID(kind, name, params, args, version)
#define INTERPOSE_NORETURN(kind, name, params, args, version)
#define INTERPOSE_VARIADIC(kind, name, result, params, last, wrapped, given, args, version) \
  INTERPOSE(kind, name, result, wrapped, given, version)
#define INTERPOSE_LIST(kind, name, result, params, last, wrapped, args, version) \
  INTERPOSE(kind, name, result, wrapped, args, version)
#define INTERPOSE_JUMP(kind, name, result, params, args, version)
#define INTERPOSE_OWN(kind, name, result, params, args, version)
#define INTERPOSE_SECOND(kind, name, function)
#define INTERPOSE_LATE(kind, name, result, params, args, version)
#include "runtime/preload/ground/interposed.def"
  return all;
}();
constexpr Arguments arguments_of(Op op) { return kArguments[static_cast<std::size_t>(op)]; }

// Whether one of the arguments is ours. An absolute path does not use its directory.
template <Arguments which>
bool is_named(const long* words) noexcept {
#pragma GCC unroll 6
  for (unsigned i = 0; i < 6; ++i) {
    const unsigned bit = 1u << i;
    if (((which.descriptors | which.directories) & bit) == 0) continue;
    if (!is_own_descriptor(static_cast<int>(words[i]))) continue;
    if ((which.descriptors & bit) != 0) return true;
    const auto* path = reinterpret_cast<const char*>(words[i + 1]);
    if (path != nullptr && path[0] != '/') return true;
  }
  return false;
}

// Returns the function's result for a descriptor that is not open, and sets errno as it does.
template <Op op, typename R>
R no_such_descriptor() noexcept {
  if constexpr (op == Op::posix_fallocate || op == Op::posix_fallocate64) return EBADF;
  errno = EBADF;
  if constexpr (std::is_same_v<R, void*>) {
    return reinterpret_cast<R>(-1L);  // mmap
  } else if constexpr (std::is_pointer_v<R>) {
    return nullptr;
  } else {
    return static_cast<R>(-1);
  }
}

}  // namespace crane::own
