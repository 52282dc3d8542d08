// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of a fuzz target: one run, and initial inputs. Built with clang's libFuzzer (`make
// fuzz`), or with driver.cc as a plain program (`make test`).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dmt/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace crane::fuzz {

// Valid and nearly valid inputs, made by the code that writes the format.
std::vector<std::string> seeds();

// Takes values from the front of an input; zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const std::byte*>(data), size) {}
  template <typename T>
  T take() {
    T value{};
    const std::size_t n = rest_.size() < sizeof value ? rest_.size() : sizeof value;
    if (n > 0) std::memcpy(static_cast<void*>(&value), rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  std::span<const std::byte> take_bytes(std::size_t size) {
    const auto front = rest_.first(size < rest_.size() ? size : rest_.size());
    rest_ = rest_.subspan(front.size());
    return front;
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// Asserts that a target accepts its seeds: otherwise it would test nothing.  `accepted`: whether it
// accepted this input.
inline void check_seed(const std::uint8_t* data, std::size_t size, bool accepted) {
  static const std::vector<std::string> all = seeds();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const std::string& seed : all) CRANE_ASSERT(accepted || input != seed);
}

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace crane::fuzz
