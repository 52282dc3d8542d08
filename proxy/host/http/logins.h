// SPDX-License-Identifier: Apache-2.0
#pragma once
// The users of HTTP, and whether an Authorization header is one of them.
//
// A hash of crypt(3) costs milliseconds, and the node's event loop waits for it.  Therefore each
// user's last right password is remembered by a keyed digest, so that a scrape costs microseconds,
// and other passwords are tried at a bounded rate: kTriesPerSecond for clients of this machine, and
// as many for all others together, so that neither can keep the other from logging in.  With
// setup::kHashRoundsMost this is at most 5 ms in a row, and 5 % of the loop's time.
//
// Threads: the node's one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/host/http/access.h"
#include "proxy/host/http/token_bucket.h"
#include "runtime/setup/http_users.h"

namespace crane::node {

class HttpLogins {
 public:
  static constexpr double kTriesPerSecond = 5, kTriesAtOnce = 10;

  struct Result {
    HttpLogin login = HttpLogin::kNone;
    setup::HttpRole role = setup::HttpRole::kRead;
    std::string name;  // of kUser
  };

  HttpLogins();
  // Forgets the passwords that the former users had.
  void set_users(std::vector<setup::HttpUser> users);
  bool empty() const noexcept { return users_.empty(); }
  Result check(const std::string& authorization, bool loopback, std::int64_t now_ns);
  // How often a hash was computed, for tests.
  std::uint64_t hashed() const noexcept { return hashed_; }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Known {
    setup::HttpUser user;
    std::optional<Digest> verified;  // of the last right password
  };
  Digest digest_of(const std::string& password) const;
  bool is_right(const std::string& password, const std::string& hash);

  std::array<unsigned char, 32> key_;  // random: a digest says nothing without it
  std::vector<Known> users_;
  TokenBucket here_{kTriesPerSecond, kTriesAtOnce}, elsewhere_{kTriesPerSecond, kTriesAtOnce};
  std::uint64_t hashed_ = 0;
};

// The name and password of "Basic BASE64" or "Bearer NAME.PASSWORD"; nullopt: it is neither.
struct HttpCredential {
  std::string name, password;
};
std::optional<HttpCredential> credential_of(std::string_view authorization);

}  // namespace crane::node
