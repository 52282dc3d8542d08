// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this thread executes Crane's own code; then the calls of our code go directly to the real
// functions. One thread-local byte without allocation (initial-exec TLS), constant-initialised.
//
// A thread without a slot is permanently inside, and all its calls are real: the library is not
// attached, a foreign library's thread is not adopted yet, or the thread has ended for the
// schedule.
//
// INVARIANT INSIDE-1  The application's code never runs with inside() true (except in threads
//     without a slot). So a wrapper leaves with OutsideCrane before a real call that may be
//     cancelled, longjmp away, or call back into the program (malloc, atfork handlers): the
//     unwinder does not run our destructors (this library has no exceptions).

namespace crane {

class InsideCrane {
 public:
  InsideCrane() noexcept { set_inside(); }
  ~InsideCrane() { set_outside(); }
  InsideCrane(const InsideCrane&) = delete;
  InsideCrane& operator=(const InsideCrane&) = delete;

  static bool inside() noexcept { return !application_; }

  // Called when the thread gets or loses its slot: afterwards it is outside, or permanently inside.
  static void set_outside() noexcept {
    if (leaves_ == nullptr || application_) {
      application_ = true;
    } else {
      leaves_(application_);
    }
  }
  static void set_inside() noexcept {
    const bool was_outside = application_;
    application_ = false;
    if (entered_ != nullptr && was_outside) entered_();
  }

  // A thread calls `entered` when it has entered Crane, and `leaves` instead of leaving; `leaves`
  // sets the byte.
  using Entered = void (*)();
  using Leaves = void (*)(bool& application);
  static void watch(Entered entered, Leaves leaves) noexcept {
    entered_ = entered;
    leaves_ = leaves;
  }

  // For a handler that interrupts the thread anywhere: calls neither function.
  static bool hide() noexcept {
    const bool was_inside = !application_;
    application_ = false;
    return was_inside;
  }
  static void unhide(bool was_inside) noexcept { application_ = !was_inside; }

  // The byte that the kernel reads (system_call_trap.h): 1 = this thread's system calls trap.
  static const void* selector() noexcept { return &application_; }

 private:
  static thread_local bool application_;
  static inline constinit Entered entered_ = nullptr;
  static inline constinit Leaves leaves_ = nullptr;
};

inline constinit thread_local bool InsideCrane::application_ = false;

// For code of ours that code of ours also calls: restores the previous state at the end.
class WithinCrane {
 public:
  WithinCrane() noexcept : was_inside_(InsideCrane::inside()) { InsideCrane::set_inside(); }
  ~WithinCrane() {
    if (!was_inside_) InsideCrane::set_outside();
  }
  WithinCrane(const WithinCrane&) = delete;
  WithinCrane& operator=(const WithinCrane&) = delete;

  bool was_inside() const noexcept { return was_inside_; }

 private:
  const bool was_inside_;
};

// Leaves Crane for its scope.
class OutsideCrane {
 public:
  OutsideCrane() noexcept { InsideCrane::set_outside(); }
  ~OutsideCrane() { InsideCrane::set_inside(); }
  OutsideCrane(const OutsideCrane&) = delete;
  OutsideCrane& operator=(const OutsideCrane&) = delete;
};

}  // namespace crane
