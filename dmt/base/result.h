// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operating errors as values: Result<T> is a T or an Error.  Programming errors are CRANE_ASSERT.
// There is no third kind, and no exception crosses a folder.
//
// One Error type serves both uses: code that decides reads `code`; code that reports prints
// message().  The preloaded library does not use it: its functions return the errno that the server
// gets.
//
// Threads: plain values.

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "dmt/base/assert.h"

namespace crane {

enum class Code : int {
  kOk = 0,
  kBadArgument,   // the argument cannot be used
  kNotFound,      // the named object does not exist
  kExists,        // the named object exists already
  kDenied,        // the system refused: privilege is missing
  kWrongVersion,  // a shared segment or a file of another version
  kDamaged,       // a checksum or a structure is invalid
  kFull,          // disk, memory, ring or table has no room
  kBusy,          // try again later: the pipeline is full
  kNotLeader,     // only the leader may do this
  kPeerFailed,    // one peer is gone; only that peer is affected
  kRevoked,       // the permission to write was taken away
  kUnsupported,   // this machine cannot do it
  kSystem,        // a system call failed; `detail` is its errno
  kGone,          // it existed and is no longer kept
};

struct [[nodiscard]] Error {
  Code code = Code::kOk;
  int detail = 0;         // errno where the system gave one, else 0
  const char* what = "";  // static text: the step that failed
  // For an operator: what failed, with which object, why, and what to do.  Empty if the caller
  // knows more than the step does.
  std::string text = {};
  int exit_status = 0;  // the program's exit status for this error; 0: the program decides

  // Returns `text`, or if it is empty the step and the reason from errno.
  std::string message() const;
};

inline Error system_error(const char* what) noexcept { return {Code::kSystem, errno, what}; }
inline Error failure(Code code, const char* what, std::string text) noexcept {
  return {code, 0, what, std::move(text)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}     // NOLINT: by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {  // NOLINT: by design
    CRANE_ASSERT(std::get_if<1>(&state_)->code != Code::kOk);
  }

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  T& value() & noexcept {
    CRANE_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& noexcept {
    CRANE_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && noexcept {
    CRANE_ASSERT(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  const Error& error() const noexcept {
    CRANE_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// A result without a value.
struct Done {};
using Outcome = Result<Done>;

}  // namespace crane
