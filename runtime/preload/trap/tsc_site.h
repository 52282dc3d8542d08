// SPDX-License-Identifier: Apache-2.0
#pragma once
// Places in the program's code where RDTSC runs repeatedly: a stub (tsc_stub.h) replaces their
// trap, in this process' own copy of the page.
//
// A place is found by its traps, not by scanning code: bytes that trap are certainly an
// instruction, a program that does not read the counter pays nothing, and libraries that are loaded
// later need no special case. The price is that other threads may be at the place. So the bytes
// change one at a time, and membarrier serialises every processor in between: int3 over RDTSC, int3
// over the next instruction, the rest of the jump, the jump. A thread that reaches such an int3
// continues in the stub.
//
// The value is the same as that of the trap: the thread's own time, one nanosecond per read. A read
// that is a turn, and a read by a thread inside Crane, still trap. So schedules do not depend on
// whether, or when, a place was changed.
//
// A place keeps its trap in these cases: RDTSCP, whose jump would need the int3 elsewhere; a next
// instruction that is unknown, a jump, or shorter than three bytes; five bytes in two pages; code
// of libc, ld.so and Crane, where no read takes a turn; code outside any object, which its owner
// may change (a JIT's); a stub that would be out of reach; a thread with seccomp filters, which may
// forbid the changes; a kernel that refuses to change code.
//
// fork    The child has the code, the table and the stubs.  If another thread was changing a place,
//         the child changes no more places; the unfinished one costs it a signal, as before.
// exec    The new program begins without any.
// restore CRIU restores all of it, because it is private memory.  The kernel's registration for
//         membarrier may be lost, so the next change registers again.
// fault   Of the moved instruction: the program's handler gets the instruction's original place.
// dlclose The place stays in the table.  It is used again when RDTSC traps at the same address.
// valgrind  RDTSC does not trap, so nothing is changed.
//
// A program that hashes its own code in memory would see the jumps, as it would see a debugger's
// breakpoints. Debian's libcrypto and libgcrypt hash their files, not their memory.
//
// INVARIANT TSC-1  A place's stub is complete before its first byte changes, and its entry is never
//     removed, so a thread on its way to the entry finds it.
// INVARIANT TSC-2  At every moment, each byte at which an instruction of the place begins is that
//     instruction's own byte, an int3 that leads to it, or the jump.
//
// Threads: any, in a handler of SIGSEGV or SIGTRAP. Bounds: kSitesMax places in one process; others
// keep their trap.

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "runtime/preload/ground/types.h"

namespace crane::tsc {

inline constexpr std::size_t kSitesMax = 256;
inline constexpr std::uint32_t kTrapsBeforeChange = 16;  // rarely read places keep their trap

// Reserves memory for stubs in reach of the program itself, at a fixed address if the program has
// one. Called once, in the constructor.
void prepare_sites() noexcept;

// Counts a trap of the RDTSC at `site`. REQUIRES that the thread is inside Crane.
void note_trap(std::uintptr_t site) noexcept;

// Returns the program's RDTSC for the one at `address`: that of a stub, or itself.
std::uintptr_t site_of(std::uintptr_t address) noexcept;

// Called before a fault is reported: maps the stub's moved instruction to its original place.
void show_program(void* context) noexcept;

// Continues a thread in the stub if another thread was changing the place, or had changed it.
// `address`: where it was stopped. False: not a place of ours.
bool resume(std::uintptr_t address, ucontext_t& context) noexcept;

// Handles a SIGTRAP of such a place; false: another cause.
bool handle_break(const siginfo_t* info, void* context) noexcept;

}  // namespace crane::tsc
