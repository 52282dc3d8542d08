// SPDX-License-Identifier: Apache-2.0
#pragma once
// The turn as clang's thread-safety analysis knows it (DMT-L1; tests/lint/thread_safety.py): which
// functions of libcrane.so may be called by the thread that holds it only.  For other compilers the
// words mean nothing.

#if defined(__clang__)
#define CRANE_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define CRANE_THREAD_SAFETY(attribute)
#endif

namespace crane {

class CRANE_THREAD_SAFETY(capability("turn")) TurnCapability {};
inline constexpr TurnCapability the_turn;

}  // namespace crane

// Of a pointer: what it points to.
#define CRANE_GUARDED_BY_TURN CRANE_THREAD_SAFETY(pt_guarded_by(::crane::the_turn))
// Of a function: the caller holds the turn, before and after.
#define CRANE_REQUIRES_TURN CRANE_THREAD_SAFETY(requires_capability(::crane::the_turn))
#define CRANE_TAKES_TURN CRANE_THREAD_SAFETY(acquire_capability(::crane::the_turn))
#define CRANE_PUTS_TURN CRANE_THREAD_SAFETY(release_capability(::crane::the_turn))
// Of a class: its constructor takes the turn, its destructor puts it.
#define CRANE_HOLDS_TURN CRANE_THREAD_SAFETY(scoped_lockable)
// Of a function that the analysis cannot follow.  A comment says why it is right.
#define CRANE_TURN_UNCHECKED CRANE_THREAD_SAFETY(no_thread_safety_analysis)
