// SPDX-License-Identifier: Apache-2.0
#pragma once
// Describes the turn to clang's thread-safety analysis (DMT-L1; tests/lint/thread_safety.py): which
// functions of libcrane.so only the turn holder may call.  Other compilers ignore the macros.

#if defined(__clang__)
#define CRANE_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define CRANE_THREAD_SAFETY(attribute)
#endif

namespace crane {

class CRANE_THREAD_SAFETY(capability("turn")) TurnCapability {};
inline constexpr TurnCapability the_turn;

}  // namespace crane

// On a pointer: guards the object it points to.
#define CRANE_GUARDED_BY_TURN CRANE_THREAD_SAFETY(pt_guarded_by(::crane::the_turn))
// On a function: the caller holds the turn before and after the call.
#define CRANE_REQUIRES_TURN CRANE_THREAD_SAFETY(requires_capability(::crane::the_turn))
#define CRANE_TAKES_TURN CRANE_THREAD_SAFETY(acquire_capability(::crane::the_turn))
#define CRANE_PUTS_TURN CRANE_THREAD_SAFETY(release_capability(::crane::the_turn))
// On a class: the constructor takes the turn and the destructor puts it.
#define CRANE_HOLDS_TURN CRANE_THREAD_SAFETY(scoped_lockable)
// On a function that the analysis cannot follow.  A comment explains why it is correct.
#define CRANE_TURN_UNCHECKED CRANE_THREAD_SAFETY(no_thread_safety_analysis)
