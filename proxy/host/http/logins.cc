// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/logins.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// Of no password.  An unknown name costs as much time as a known one, so that answers do not tell
// which names there are.
constexpr const char* kNoUser =
    "$6$crane$......................................................................"
    "................";

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return (x | 0x20) == (y | 0x20);
         });
}

std::optional<std::string> decoded(std::string_view base64) {
  if (base64.empty() || base64.size() % 4 != 0 || base64.size() > kHttpHeadMax) return std::nullopt;
  std::string bytes(base64.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(base64.data()),
                                   static_cast<int>(base64.size()));
  if (size < 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && base64[base64.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

bool same(const void* a, const void* b, std::size_t size) { return CRYPTO_memcmp(a, b, size) == 0; }

}  // namespace

std::optional<HttpCredential> credential_of(std::string_view authorization) {
  const auto space = authorization.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view scheme = authorization.substr(0, space);
  std::string_view rest = authorization.substr(space);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const bool basic = same_word(scheme, "basic");
  if (!basic && !same_word(scheme, "bearer")) return std::nullopt;
  const std::optional<std::string> text = basic ? decoded(rest) : std::string(rest);
  if (!text) return std::nullopt;
  const auto cut = text->find(basic ? ':' : '.');
  if (cut == std::string::npos) return std::nullopt;
  return HttpCredential{text->substr(0, cut), text->substr(cut + 1)};
}

HttpLogins::HttpLogins() : key_{} {
  CRANE_ASSERT(RAND_bytes(key_.data(), static_cast<int>(key_.size())) == 1);
}

void HttpLogins::set_users(std::vector<setup::HttpUser> users) {
  users_.clear();
  for (setup::HttpUser& user : users) users_.push_back({std::move(user), std::nullopt});
}

HttpLogins::Digest HttpLogins::digest_of(const std::string& password) const {
  Digest out{};
  unsigned size = 0;
  CRANE_ASSERT(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                    reinterpret_cast<const unsigned char*>(password.data()), password.size(),
                    out.data(), &size) != nullptr);
  return out;
}

bool HttpLogins::is_right(const std::string& password, const std::string& hash) {
  ++hashed_;
  const auto data = std::make_unique<crypt_data>();
  const char* const made = crypt_r(password.c_str(), hash.c_str(), data.get());
  const std::string_view text = made == nullptr ? "" : made;
  return text.size() == hash.size() && same(text.data(), hash.data(), hash.size());
}

HttpLogins::Result HttpLogins::check(const std::string& authorization, bool loopback,
                                     std::int64_t now_ns) {
  if (authorization.empty()) return {};
  const auto given = credential_of(authorization);
  // crypt(3) ends a password at a zero byte, and refuses one of more than 511 bytes.
  const bool possible = given && given->password.find('\0') == std::string::npos &&
                        given->password.size() < CRYPT_MAX_PASSPHRASE_SIZE;
  if (!possible) return {HttpLogin::kWrong, {}, {}};
  const auto known = std::find_if(users_.begin(), users_.end(),
                                  [&](const Known& one) { return one.user.name == given->name; });
  const bool is_known = known != users_.end();
  const Digest digest = digest_of(given->password);
  if (is_known && known->verified && same(known->verified->data(), digest.data(), digest.size())) {
    return {HttpLogin::kUser, known->user.role, known->user.name};
  }
  if (!(loopback ? here_ : elsewhere_).take(now_ns)) return {HttpLogin::kTooMany, {}, {}};
  const bool right = is_right(given->password, is_known ? known->user.hash : kNoUser);
  if (!is_known || !right) return {HttpLogin::kWrong, {}, {}};
  known->verified = digest;
  return {HttpLogin::kUser, known->user.role, known->user.name};
}

}  // namespace crane::node
