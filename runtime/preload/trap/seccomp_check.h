// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of a thread that has seccomp filters: the filters first decide about calls that libcrane.so
// handles without the kernel (filter.h). The call number of each entry point is in
// system_calls.def. For functions that make several calls, or none, the kernel's filter decides at
// the calls they make.
//
// Threads: the calling one's filters.

#include <sys/syscall.h>

#include <array>
#include <csignal>
#include <type_traits>

#include "runtime/preload/ground/operations.h"
#include "runtime/preload/self/thread.h"
#include "runtime/preload/trap/filter.h"

namespace crane::sandbox {

// The arguments in the form of a system call.
struct Words {
  long word[6] = {};
};

template <typename T>
long word_of(T value) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return static_cast<long>(value);
  } else {
    return 0;
  }
}

template <typename... T>
Words words(T... values) noexcept {
  Words w;
  std::size_t i = 0;
  ((i < 6 ? static_cast<void>(w.word[i++] = word_of(values)) : static_cast<void>(0)), ...);
  return w;
}

template <typename R>
R result_of(long answer) noexcept {
  if constexpr (std::is_void_v<R>) {
    return;
  } else if constexpr (std::is_pointer_v<R>) {
    return reinterpret_cast<R>(answer);
  } else if constexpr (std::is_integral_v<R> || std::is_enum_v<R>) {
    return static_cast<R>(answer);
  } else {
    return R{};
  }
}

// The system call of each function of the table; -1: no single one.
inline constexpr auto kNumbers = [] {
  std::array<short, static_cast<std::size_t>(Op::kCount)> numbers{};
  numbers.fill(-1);
#define OPERATION(call, function) numbers[static_cast<std::size_t>(Op::function)] = SYS_##call;
#define QUIET(call, function) OPERATION(call, function)
#define SPECIAL(call, function)
#define REFUSED(call)
#define BOUNDED(call)
#define PASSED(call)
#include "runtime/preload/trap/system_calls.def"
  return numbers;
}();
constexpr long number_of(Op op) noexcept { return kNumbers[static_cast<std::size_t>(op)]; }

// Whether the filters do anything but let the call through.
bool refuses(long number, const Words& arguments) noexcept;
// Makes the kernel apply its filter to the call: returns -1 and errno, or ends the program.
long pass_to_kernel(long number, const Words& arguments) noexcept;

// Whether the trap replaces a kill by a filter.
bool is_kill(const siginfo_t& info) noexcept;

// Whether the filters refuse the system call `number`.  `answer` gets the kernel's result (-errno).
bool is_answered(long number, const long* arguments, long& answer) noexcept;

}  // namespace crane::sandbox
