// SPDX-License-Identifier: Apache-2.0
#pragma once
// A history: the operations that clients called on a server and its answers, with times of one
// clock.
//
// One operation per line, words separated by blanks:
//
//   CLIENT KEY ACTION ARGUMENT CALLED RETURNED RESULT
//   17 r3.12 set 4711 1000 1850 ok
//   18 c0.2 incr 0 1010 1700 5
//   19 l1.0 range 0 1020 2000 [8,9]
//   20 r3.12 get 0 1030 - ?1730
//
// CALLED and RETURNED are nanoseconds. RETURNED is `-` if there was no answer. The operation is
// then open: it may have happened at any time after CALLED, or never. RESULT is the time at which
// its client gave up, which proves nothing about the operation. A server's refusal is written as `-
// error` and also counts as open. The first letter of a key is its type: r a register (set, get), c
// a counter (incr, get), l a list (push, which returns the new length; range, which returns all).
// `nil` is the answer of get for a missing key.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dmt/base/result.h"

namespace crane::linear {

enum class Model : std::uint8_t { kRegister, kCounter, kList };
enum class Action : std::uint8_t { kSet, kGet, kIncr, kPush, kRange };

inline constexpr std::int64_t kNil = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint64_t kOpen = std::numeric_limits<std::uint64_t>::max();

struct Operation {
  std::uint64_t client = 0;
  Action action{};
  bool refused = false;       // answered with an error; open
  std::int64_t argument = 0;  // of set and push
  std::uint64_t called_ns = 0;
  std::uint64_t returned_ns = kOpen;
  std::uint64_t given_up_ns = 0;    // of an open one
  std::int64_t result = 0;          // of get, incr, push
  std::vector<std::int64_t> items;  // of range

  bool open() const noexcept { return returned_ns == kOpen; }
  bool reads() const noexcept { return action == Action::kGet || action == Action::kRange; }
};

// The operations on one key, in any order.
struct KeyHistory {
  std::string key;
  Model model{};
  std::vector<Operation> operations;
};

const char* name(Model model) noexcept;
const char* name(Action action) noexcept;

// Appends one line with its newline.
void write_line(std::string& to, std::string_view key, const Operation& operation);
// Returns false if the line is invalid.
bool read_line(std::string_view line, std::string& key, Model& model, Operation& operation);

// Histories by key. Linearizability is compositional: a history is linearizable exactly if each
// object's part is (Herlihy and Wing).
class History {
 public:
  // Errors: kSystem if a file cannot be read, kBadArgument with the line's number as the detail.
  Outcome read(const std::string& path);
  bool add(std::string_view line);

  const std::vector<KeyHistory>& keys() const noexcept { return keys_; }

 private:
  std::vector<KeyHistory> keys_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace crane::linear
