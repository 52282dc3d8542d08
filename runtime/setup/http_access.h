// SPDX-License-Identifier: Apache-2.0
#pragma once
// The protection of the HTTP addresses of a group's nodes: the options http_certificate,
// http_key, http_users and http_open, and the files that they name.
//
// Without a file of users everyone who reaches an address may read, and no one may change
// anything.  Therefore an address that other machines reach needs users and TLS, or the explicit
// word that everyone may read.
//
// Threads: plain functions; http_problem() is pure.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/setup/http_users.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/option_table.h"

struct ssl_ctx_st;  // SSL_CTX of OpenSSL

namespace crane::setup {

// How messages name the options: --http-users, or [http] users.
enum class HttpForm : std::uint8_t { kWords, kFile };

struct HttpProblem {
  std::string key;  // of [http] in group.toml
  std::string object, cause, advice;
};
// The first mistake in the options of nodes that listen at these addresses (parse_http()); nullopt:
// there is none.
std::optional<HttpProblem> http_problem(const std::vector<std::string>& listen,
                                        const NodeOptions& options, HttpForm form);
// The same for crane-run's command line.  Errors: kUsage.
Outcome check_http_access(const std::string& listen, const NodeOptions& options);

struct FreeTls {
  void operator()(ssl_ctx_st* context) const noexcept;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTls>;
struct HttpTls {
  TlsContext context;               // for servers, TLS 1.2 or newer
  std::int64_t expires_unix_s = 0;  // when the certificate does
};
// Others may not read the key, and it must belong to the certificate.  Errors: kHttpFiles.
Outcome read_http_tls(const std::string& certificate, const std::string& key, HttpTls& tls);

// Checks the content of the files that the options name.  Errors: kHttpFiles.
Outcome check_http_files(const NodeOptions& options);

}  // namespace crane::setup
