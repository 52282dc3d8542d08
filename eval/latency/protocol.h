// SPDX-License-Identifier: Apache-2.0
// The requests that latency-load sends and the answers that it expects, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace latency {

struct WrongAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Request {
  bool writes = false;
  std::uint32_t key = 0;
};

inline constexpr std::uint32_t kKeys = 1000;
inline constexpr std::size_t kValueBytes = 64;
inline constexpr std::uint64_t kReadsPerWrite = 9;

class Protocol {
 public:
  virtual ~Protocol() = default;
  virtual std::string text_of(const Request& request) const = 0;
  // How many of the bytes form the answer; 0: it is incomplete. Throws WrongAnswer.
  virtual std::size_t answer_in(const Request& request, std::string_view bytes) const = 0;
  // Whether the server ends the connection after this answer.
  virtual bool is_last(std::string_view) const { return false; }
  // Whether keys need a value before they are read.
  virtual bool has_keys() const { return true; }
};

// "memcached", "redis" or "http" (`path` is for http); nullptr: unknown.
std::unique_ptr<Protocol> protocol_named(const std::string& name, const std::string& path);

// Request `i`: a write, then kReadsPerWrite reads; the keys take turns.
Request request_of(std::uint64_t i);

}  // namespace latency
