// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places in the program's code where RDTSC is executed again and again: their trap is taken out
// (tsc_stub.h), in this process' own copy of the page.
//
// A place is found by its traps, not by looking through code: what traps is an instruction for
// sure, a program that does not read pays nothing, and a library that is loaded later is as any
// other.  The price is that other threads may be running there.  So the bytes change one at a time,
// with every processor serialised in between (membarrier): int3 over RDTSC, int3 over what follows,
// the rest of the jump, the jump.  A thread that meets an int3 of ours goes on in the stub.
//
// The value is the one that the trap gives: the thread's own time, one nanosecond for each read.  A
// read that is a turn, and one of a thread that is inside of Crane, still traps.  So schedules do
// not depend on whether, or when, a place was changed.
//
// A place keeps its trap: RDTSCP, whose jump would need the int3 elsewhere; an instruction behind
// it that is unknown, a jump, or shorter than three bytes; five bytes that lie in two pages; code
// of libc, ld.so and ourselves, where no read takes a turn; code of no object, which its owner may
// change (a JIT's); a stub that would be out of reach; a thread with seccomp filters, which may
// forbid what is done here; a kernel that refuses to change code.
//
// fork    The child has the code, the table and the stubs.  If another thread was changing a place,
//         the child changes none any more; that place costs it a signal, as before.
// exec    Begins without any.
// restore All of it is private memory, which CRIU brings back.  The kernel's list of processes that
//         may ask for membarrier may not be: the next change asks to be in it again.
// fault   Of the moved instruction: the program's handler is told of the instruction's own place.
// dlclose The place stays in the table.  It is used again when RDTSC traps at the same address.
// valgrind  There RDTSC does not trap, so that nothing is changed.
//
// A program that hashes its own code in memory would see the jumps, as it would a debugger's
// breakpoints.  Debian's libcrypto and libgcrypt hash their files.
//
// INVARIANT TSC-1  A place's stub is complete before its first byte changes, and its entry is never
//               taken back: who is on the way to it finds it.
// INVARIANT TSC-2  At every moment each byte at which an instruction of the place begins is that
//               instruction's own, an int3 that leads to it, or the jump.
//
// Threads: any, in a handler of SIGSEGV or SIGTRAP.  Bounds: kSitesMax places in one process;
// others keep their trap.

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "runtime/preload/ground/types.h"

namespace crane::tsc {

inline constexpr std::size_t kSitesMax = 256;
inline constexpr std::uint32_t kTrapsBeforeChange = 16;  // what is read once is left alone

// Memory for stubs in reach of the program itself, where it may have an address that it always has.
// Once, in the constructor.
void prepare_sites() noexcept;

// The RDTSC at `site` has trapped.  REQUIRES that the thread is inside of Crane.
void note_trap(std::uintptr_t site) noexcept;

// The RDTSC of the program that the one at `address` stands for: that of a stub, or itself.
std::uintptr_t site_of(std::uintptr_t address) noexcept;

// A fault is about to be told: where it was the stub's moved instruction, it was the program's.
void show_program(void* context) noexcept;

// The thread was stopped at a place that another thread was just changing, or has changed: it goes
// on in the stub.  `address`: where it was stopped.  False: none of ours.
bool resume(std::uintptr_t address, ucontext_t& context) noexcept;

// SIGTRAP of such a place; false: it is something else.
bool handle_break(const siginfo_t* info, void* context) noexcept;

}  // namespace crane::tsc
