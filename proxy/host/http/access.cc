// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/access.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "dmt/base/assert.h"

namespace crane::node {
namespace {

// Load balancers and Kubernetes ask these without a user.  They tell a role and a lag.
constexpr std::string_view kChecks[] = {"/liveness", "/health", "/leader", "/replica",
                                        "/readiness"};
constexpr std::string_view kControl = "/control";

// A page of another site makes a browser send a request with the user's password.  Such a request
// has an Origin, and a form cannot have this type.
std::optional<HttpRefusal> foreign(const HttpRequest& request) {
  if (request.content_type != "application/json") {
    return HttpRefusal{415, "POST /control takes JSON: send Content-Type: application/json"};
  }
  if (request.origin.empty()) return std::nullopt;
  const auto host = request.origin.find("://");
  const bool same = host != std::string::npos && request.origin.substr(host + 3) == request.host;
  if (same) return std::nullopt;
  return HttpRefusal{403, "a page of another site (" + request.origin + ") may not send requests"};
}

}  // namespace

HttpNeed need_of(const HttpRequest& request, const HttpRules& rules) {
  if (request.method == HttpMethod::kPost) return HttpNeed::kOperator;
  const bool check =
      std::find(std::begin(kChecks), std::end(kChecks), request.path) != std::end(kChecks);
  return check || rules.open || !rules.has_users ? HttpNeed::kNobody : HttpNeed::kReader;
}

std::optional<HttpRefusal> refusal_of(const HttpRequest& request, const HttpPeer& peer,
                                      const HttpRules& rules, HttpLogin login,
                                      setup::HttpRole role) {
  if (request.method == HttpMethod::kPost && request.path != kControl) {
    return HttpRefusal{405, "only /control takes POST"};
  }
  const HttpNeed need = need_of(request, rules);
  if (need == HttpNeed::kNobody) return std::nullopt;
  if (need == HttpNeed::kOperator && !rules.has_users) {
    return HttpRefusal{403, "POST /control needs an operator, and this node has no file of users"};
  }
  if (need == HttpNeed::kOperator && !peer.tls && !peer.loopback) {
    return HttpRefusal{403, "POST /control needs TLS, or a client on this machine"};
  }
  switch (login) {
    case HttpLogin::kNone:
      return HttpRefusal{401, "a user is required: Basic NAME:PASSWORD, or Bearer NAME.PASSWORD"};
    case HttpLogin::kWrong:
      return HttpRefusal{401, "no user has this name and password"};
    case HttpLogin::kTooMany:
      return HttpRefusal{429, "too many passwords were tried: try again in a second"};
    case HttpLogin::kUser:
      break;
  }
  if (need == HttpNeed::kReader) return std::nullopt;
  if (role != setup::HttpRole::kOperator) {
    return HttpRefusal{403, "POST /control needs the role operator"};
  }
  if (auto refused = foreign(request)) return refused;
  CRANE_ASSERT(login == HttpLogin::kUser && role == setup::HttpRole::kOperator);  // HTTP-1
  return std::nullopt;
}

bool needs_this_host(const control::Message& request) {
  // A crane-run takes the connection over; the others use files that crane-ctl made on this host.
  return request.is("supervise") || request.is("copy_log") || request.is("hand_over");
}

}  // namespace crane::node
