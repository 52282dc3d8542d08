// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether this thread executes Crane's own code: then the calls that our code makes go straight to
// the real functions.  One thread-local byte, no allocation (initial-exec TLS),
// constant-initialised.
//
// A thread that has no slot (the library is not attached, a thread of a foreign library before its
// adoption, a thread past its end) is inside for good: everything it calls is real.
//
// INVARIANT INSIDE-1  The application's code never runs with inside() true (but for threads without
//               a slot).  So a wrapper leaves with OutsideCrane before a real call that may be
//               cancelled, longjmp away, or call back into the program (malloc, atfork handlers):
//               the unwinder does not run our destructors (no exceptions here).

namespace crane {

class InsideCrane {
 public:
  InsideCrane() noexcept { set_inside(); }
  ~InsideCrane() { set_outside(); }
  InsideCrane(const InsideCrane&) = delete;
  InsideCrane& operator=(const InsideCrane&) = delete;

  static bool inside() noexcept { return !application_; }

  // The thread got a slot, or lost it: from here on it is outside, or inside for good.
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

  // A thread calls `entered` when it has entered Crane, and `leaves` instead of leaving: that one
  // sets the byte.
  using Entered = void (*)();
  using Leaves = void (*)(bool& application);
  static void watch(Entered entered, Leaves leaves) noexcept {
    entered_ = entered;
    leaves_ = leaves;
  }

  // A handler that interrupts the thread anywhere: neither is called.
  static bool hide() noexcept {
    const bool was_inside = !application_;
    application_ = false;
    return was_inside;
  }
  static void unhide(bool was_inside) noexcept { application_ = !was_inside; }

  // The byte as the kernel reads it (system_call_trap.h): 1 = it traps this thread's system calls.
  static const void* selector() noexcept { return &application_; }

 private:
  static thread_local bool application_;
  static inline constinit Entered entered_ = nullptr;
  static inline constinit Leaves leaves_ = nullptr;
};

inline constinit thread_local bool InsideCrane::application_ = false;

// For code of ours that is also called by code of ours: leaves as it came.
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

// Restores what was before, so that it may be used by code that also runs in unattached threads.
class OutsideCrane {
 public:
  OutsideCrane() noexcept { InsideCrane::set_outside(); }
  ~OutsideCrane() { InsideCrane::set_inside(); }
  OutsideCrane(const OutsideCrane&) = delete;
  OutsideCrane& operator=(const OutsideCrane&) = delete;
};

}  // namespace crane
