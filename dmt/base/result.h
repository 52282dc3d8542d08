// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operating errors as values: Result<T> is a T or an Error.  Programming errors are
// CRANE_ASSERT; there is no third kind, and no exception crosses a folder.
//
// One Error for all: who decides reads `code`, who reports prints message().  The preloaded library
// has none of this: there a function returns the errno that the server gets.
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
  kBadArgument,   // what the caller gave cannot be used
  kNotFound,      // the named object does not exist
  kExists,        // the named object is there already
  kDenied,        // the system refused: privilege is missing
  kWrongVersion,  // a shared segment or a file of another version
  kDamaged,       // a checksum or a structure does not hold
  kFull,          // disk, memory, ring or table has no room
  kBusy,          // try again later: the pipeline is full
  kNotLeader,     // only the leader may do this
  kPeerFailed,    // one peer is gone; concerns that peer only
  kRevoked,       // the permission to write was taken away
  kUnsupported,   // this machine cannot do it
  kSystem,        // a system call failed; `detail` is its errno
  kGone,          // it was there and is not held any more
};

struct [[nodiscard]] Error {
  Code code = Code::kOk;
  int detail = 0;         // errno where the system gave one, else 0
  const char* what = "";  // static text: which step failed
  // For an operator: what failed, with which object, why, and what to do.  Empty where the caller
  // knows more than the step does.
  std::string text = {};
  int exit_status = 0;  // with which a program ends because of it; 0: the program decides

  // `text`; without one: the step, and the reason that errno gives.
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
