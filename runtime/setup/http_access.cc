// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/http_access.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
#include <utility>

#include "dmt/base/place.h"
#include "runtime/setup/address.h"
#include "runtime/setup/http.h"

namespace crane::setup {
namespace {

std::string name_of(const char* key, HttpForm form) {
  return (form == HttpForm::kWords ? "--http-" : "[http] ") + std::string(key);
}

std::string open_of(HttpForm form) {
  return form == HttpForm::kWords ? "--http-open" : "[http] open = true";
}

std::optional<HttpProblem> files_problem(const NodeOptions& o, HttpForm form) {
  const std::array<std::pair<const char*, const std::string*>, 3> files = {
      {{"certificate", &o.http_certificate}, {"key", &o.http_key}, {"users", &o.http_users}}};
  for (const auto& [key, path] : files) {
    if (path->empty() || path->front() == '/') continue;
    return HttpProblem{key, *path, "is not an absolute path", "begin it with /"};
  }
  if (o.http_certificate.empty() == o.http_key.empty()) return std::nullopt;
  const bool lacks_key = o.http_key.empty();
  return HttpProblem{lacks_key ? "certificate" : "key", lacks_key ? o.http_certificate : o.http_key,
                     "needs " + name_of(lacks_key ? "key" : "certificate", form),
                     "name both files, or none"};
}

// OpenSSL's reason of the last error, for people.
std::string reason() {
  const char* text = ERR_reason_error_string(ERR_peek_last_error());
  return text == nullptr ? "OpenSSL gives no reason" : text;
}

// A key with a passphrase must not make the program wait at a terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

std::int64_t expiry_of(SSL_CTX* context) {
  std::tm at{};
  const X509* const certificate = SSL_CTX_get0_certificate(context);
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &at) != 1) return 0;
  return timegm(&at);
}

// From the text that was checked: the file may be replaced at any time.
bool use_key(SSL_CTX* context, const std::string& text) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      bio == nullptr ? nullptr
                     : PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr),
      EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

}  // namespace

std::optional<HttpProblem> http_problem(const std::vector<std::string>& listen,
                                        const NodeOptions& o, HttpForm form) {
  if (auto p = files_problem(o, form)) return p;
  const bool listens = std::any_of(listen.begin(), listen.end(),
                                   [](const std::string& text) { return !text.empty(); });
  if (!listens) {
    const std::string address = form == HttpForm::kWords ? "--http" : "[http] listen";
    const auto alone = [&](const char* key, const std::string& value) {
      return HttpProblem{key, value, "needs the address that it is for",
                         "add " + address + ", or leave it out"};
    };
    if (!o.http_certificate.empty()) return alone("certificate", o.http_certificate);
    if (!o.http_users.empty()) return alone("users", o.http_users);
    if (o.http_open) return alone("open", "true");
    return std::nullopt;
  }
  if (o.http_open) return std::nullopt;
  const std::string secure = name_of("certificate", form) + " and " + name_of("key", form);
  for (const std::string& text : listen) {
    const auto address = parse_http(text);
    if (!address || place::is_loopback(host_of(address_text(*address)))) continue;
    if (o.http_users.empty()) {
      return HttpProblem{"listen", text, "other machines reach it, and no users are named",
                         "add " + name_of("users", form) + " with " + secure +
                             ", or let everyone "
                             "read with " +
                             open_of(form)};
    }
    if (o.http_certificate.empty()) {
      return HttpProblem{
          "listen", text, "other machines reach it, and passwords would be sent unencrypted",
          "add " + secure + ", or let everyone read without a password with " + open_of(form)};
    }
  }
  return std::nullopt;
}

Outcome check_http_access(const std::string& listen, const NodeOptions& options) {
  const auto wrong = http_problem({listen}, options, HttpForm::kWords);
  if (!wrong) return Done{};
  const std::string word = wrong->key == "listen" ? "--http" : "--http-" + wrong->key;
  return failure(Status::kUsage, word, wrong->object, wrong->cause, wrong->advice);
}

void FreeTls::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }

Outcome read_http_tls(const std::string& certificate, const std::string& key, HttpTls& tls) {
  constexpr const char* kCertificate = "the certificate of HTTP";
  constexpr const char* kKey = "the key of HTTP";
  std::string text;
  if (auto p = read_private_file(kKey, key, text); !p) return p;
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return unusable_file(kCertificate, certificate, reason(), "try again");
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) {
    return unusable_file(kCertificate, certificate, reason(),
                         "name a file with the certificate and those that signed it, in PEM");
  }
  if (!use_key(context.get(), text)) {
    const bool other = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    return unusable_file(kKey, key, reason(),
                         other ? "name the key of " + certificate
                               : "name a file with a private key in PEM, without a passphrase");
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return unusable_file(kKey, key, reason(), "name the key of " + certificate);
  }
  tls.expires_unix_s = expiry_of(context.get());
  tls.context = std::move(context);
  return Done{};
}

Outcome check_http_files(const NodeOptions& o) {
  HttpTls tls;
  std::vector<HttpUser> users;
  if (!o.http_certificate.empty()) {
    if (auto p = read_http_tls(o.http_certificate, o.http_key, tls); !p) return p;
  }
  return o.http_users.empty() ? Outcome(Done{}) : read_http_users(o.http_users, users);
}

}  // namespace crane::setup
