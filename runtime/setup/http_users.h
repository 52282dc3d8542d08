// SPDX-License-Identifier: Apache-2.0
#pragma once
// The file of the users who may use HTTP.  One line per user; # begins a comment:
//
//   ada:operator:$6$salt$hash     openssl passwd -6
//   prometheus:read:$6$...
//
// Only SHA-512 of crypt(3) is accepted, because a node verifies passwords in its event loop: with
// the most rounds that are accepted this takes about 5 ms, and with openssl's 5000 about 2 ms.
//
// Threads: plain functions; parse_http_users() is pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/setup/messages.h"

namespace crane::setup {

inline constexpr std::size_t kHttpUsersMost = 64;
inline constexpr std::uint32_t kHashRoundsMost = 10'000;

// In ascending order: a role includes those before it.
enum class HttpRole : std::uint8_t { kRead, kOperator };

struct HttpUser {
  std::string name;
  HttpRole role = HttpRole::kRead;
  std::string hash;  // of crypt(3)
};

// The error (kHttpFiles) of a file of HTTP; `what`: "the key of HTTP".
Outcome unusable_file(const std::string& what, const std::string& path, const std::string& cause,
                      const std::string& remedy);
// Errors: kHttpFiles; the message names the line.
Outcome parse_http_users(const std::string& text, const std::string& path,
                         std::vector<HttpUser>& users);
// Only root or this user may own the file and write to it, and others may not read it.
// Errors: kHttpFiles.
Outcome read_http_users(const std::string& path, std::vector<HttpUser>& users);

// Refuses a private file that others could read, or that other users could change.  `what` names
// it in the message, `text` gets its content.  Errors: kHttpFiles.
Outcome read_private_file(const std::string& what, const std::string& path, std::string& text);

}  // namespace crane::setup
