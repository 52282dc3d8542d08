// SPDX-License-Identifier: Apache-2.0
#pragma once
// The group's secret file and the keys derived from it.  Every host of a group has the same file.
// The others accept only a host with this file as a replica.
//
// Each use has a separate key, HMAC-SHA256(secret, label + group's name), so that a leaked key
// reveals nothing about the others.
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

// `path` must be a file of at least kSecretBytesMin bytes (without line ends) that belongs to this
// user or root and that no other user may read or write.  Errors: kSecret.
Outcome read_secret(const std::string& path, const std::string& group, GroupKeys& keys);
// Like read_secret(), but returns the file's content without line ends.
Outcome read_secret_text(const std::string& path, std::string& secret);
// A secret from the kernel's randomness, as hexadecimal digits.
std::string random_secret_text();
// Writes `secret` to a new file of mode 0600; refuses to replace a file.
Outcome write_secret(const std::string& path, const std::string& secret);
// Makes such a file with a random secret; refuses to replace a file.
Outcome make_secret(const std::string& path);

// Exposed for tests.
GroupKeys derive_keys(const std::string& secret, const std::string& group);

}  // namespace crane::setup
