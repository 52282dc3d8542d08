// SPDX-License-Identifier: Apache-2.0
#pragma once
// The group's secret file and what is derived from it.  Every host of a group has the same file;
// who has it is a replica, who has not stays outside.
//
// Each use has a key of its own, HMAC-SHA256(secret, label + group's name), so that one that leaks
// says nothing about the others.
//
// Threads: plain functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/setup/messages.h"

namespace crane::setup {

inline constexpr std::size_t kSecretBytesMin = 32;

struct GroupKeys {
  std::array<std::byte, 32> links{};      // authenticates replicas to each other
  std::array<std::uint64_t, 4> random{};  // the seed of virtual randomness (D7)
  std::uint64_t log_id = 0;               // C3; never 0
};

// `path` must be a file of at least kSecretBytesMin bytes (line ends do not count) that belongs to
// this user or root and that no other user may read or write.  Status kSecret.
Outcome read_secret(const std::string& path, const std::string& group, GroupKeys& keys);
// The same check; `secret` is what the file holds, without line ends.
Outcome read_secret_text(const std::string& path, std::string& secret);
// A secret from the kernel's randomness, as hexadecimal digits.
std::string random_secret_text();
// Writes it into a new file of mode 0600; refuses to replace one.
Outcome write_secret(const std::string& path, const std::string& secret);
// Makes such a file from the kernel's randomness; refuses to replace one.
Outcome make_secret(const std::string& path);

// Exposed for tests.
GroupKeys derive_keys(const std::string& secret, const std::string& group);

}  // namespace crane::setup
