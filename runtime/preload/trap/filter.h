// SPDX-License-Identifier: Apache-2.0
#pragma once
// Seccomp filters: classic BPF programs that decide what happens to a system call (seccomp(2)).
//
// The kernel applies a program's filter with two changes. First, libcrane.so's own text may make
// the calls that it needs: for turns, for messages, and in place of calls that it handles. Second,
// a call that the filter would kill traps instead, so that the end is an operation of the schedule.
// For calls that libcrane.so handles without the kernel, this code evaluates the original filter.
//
// Threads: a filter belongs to the thread that set it and to the threads and processes that the
// thread starts afterwards.
//
// INVARIANT FILTER-1  Of the program's calls, an applied filter lets through no more than the
//     original filter. From libcrane.so's text it also lets through the list in filter.cc, which
//     contains no call that opens a file, starts a program, or reaches another process.

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>

namespace crane::filter {

// A copy in the process' own memory, in separate pages; never freed once the filter is applied.
struct Filter {
  const Filter* older;
  std::size_t size;
  const struct sock_filter* code;
};

// Returns the filter's decision: a SECCOMP_RET_* with its data. For a program that the kernel will
// refuse, the result has no meaning, but no memory outside the BPF machine is accessed.
std::uint32_t evaluate(const struct sock_filter* code, std::size_t size,
                       const struct seccomp_data& call) noexcept;
// Returns the most severe decision of all filters from this one on.
std::uint32_t evaluate(const Filter* newest, const struct seccomp_data& call) noexcept;

// Makes a permanent copy that precedes `older`; null: no memory.
const Filter* keep(const struct sock_fprog& program, const Filter* older) noexcept;

// The origin of calls that pass: the text [begin, end).
struct Own {
  std::uintptr_t begin, end;
  std::uint32_t process;
  bool starts_processes;
  // Address after the instruction by which libc returns from handlers. The call passes from there,
  // too, for slices that end and reads of the processor's counter.
  std::uintptr_t handler_return = 0;
};
inline constexpr std::size_t kOwnPartMax = 250;  // instructions
// Frees a copy that no thread uses.
void drop(const Filter* filter) noexcept;

// Writes the program for the kernel to out[0, result). 0: no room, or our text has no usable place.
std::size_t compose(const struct sock_fprog& program, const Own& of, struct sock_filter* out,
                    std::size_t room) noexcept;

// si_errno of a trap that replaces a kill.
inline constexpr std::uint16_t kKillMark = 0xfffe;

}  // namespace crane::filter
