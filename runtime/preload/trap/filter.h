// SPDX-License-Identifier: Apache-2.0
#pragma once
// Seccomp filters: classic BPF programs that say what becomes of a system call (seccomp(2)).
//
// The kernel applies a program's filter, with two changes.  Calls from libcrane.so's own text that
// it needs to do its work pass: the turns, its messages, and what stands for calls that it answers.
// A call that the filter kills traps instead, so that the end is an operation of the schedule. What
// libcrane.so answers without the kernel is judged here, by the filter as it was given.
//
// Threads: a filter is the thread's that set it, and of the threads and processes it starts then.
//
// INVARIANT FILTER-1  What a filter lets through of the program's calls is never more than the
// filter
//                itself does.  Of calls from libcrane.so's text it is, beyond that, the list in
//                filter.cc: none opens a file, starts a program, or reaches another process.

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>

namespace crane::filter {

// Of the process' own memory, in pages that are never given back.
struct Filter {
  const Filter* older;
  std::size_t size;
  const struct sock_filter* code;
};

// What the filter answers, a SECCOMP_RET_* with its data.  Of a program that the kernel will refuse
// the answer means nothing, but no memory outside of the machine is touched.
std::uint32_t judge(const struct sock_filter* code, std::size_t size,
                    const struct seccomp_data& call) noexcept;
// Of all filters from this one on: the most severe.
std::uint32_t judge(const Filter* newest, const struct seccomp_data& call) noexcept;

// A copy that lasts, before `older`; null: there is no memory.
const Filter* keep(const struct sock_fprog& program, const Filter* older) noexcept;

// Whose calls pass: those of the text [begin, end).
struct Own {
  std::uintptr_t begin, end;
  std::uint32_t process;
  bool starts_processes;
  // Where libc returns from handlers to the kernel, behind the instruction: from ours as well, for
  // slices that end and reads of the processor's counter.
  std::uintptr_t handler_return = 0;
};
inline constexpr std::size_t kOwnPartMax = 250;  // instructions
// A copy that no thread uses.
void drop(const Filter* filter) noexcept;

// The program for the kernel: out[0, result).  0: it has no room, or our text no usable place.
std::size_t compose(const struct sock_fprog& program, const Own& of, struct sock_filter* out,
                    std::size_t room) noexcept;

// si_errno of a trap that stands for a kill.
inline constexpr std::uint16_t kKillMark = 0xfffe;

}  // namespace crane::filter
