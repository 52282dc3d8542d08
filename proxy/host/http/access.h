// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which HTTP requests a node answers: by the path, the role of the user and the way that the
// request took.
//
// INVARIANT HTTP-1  No request without the operator role changes the node's state.
//
// Pure.  Threads: plain functions.

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/host/http/request.h"
#include "runtime/control/schema.h"
#include "runtime/setup/http_users.h"

namespace crane::node {

// How a request reached the node.
struct HttpPeer {
  std::string address;    // of the client, without its port
  std::string network;    // the address, or the first 64 bits of an IPv6 one
  bool loopback = false;  // a program of this machine
  bool tls = false;
};

// What the options allow (runtime/setup/http_access.h).
struct HttpRules {
  bool has_users = false;  // there is a file of users
  bool open = false;       // everyone may read
};

// What a request needs; in ascending order.
enum class HttpNeed : std::uint8_t { kNobody, kReader, kOperator };
HttpNeed need_of(const HttpRequest& request, const HttpRules& rules);

struct HttpRefusal {
  int status = 403;
  std::string text;  // for people, one line
};

// What the Authorization header of a request says about its sender.
enum class HttpLogin : std::uint8_t { kNone, kWrong, kTooMany, kUser };

// nullopt: the request is answered (HTTP-1).  `role` is that of kUser.
std::optional<HttpRefusal> refusal_of(const HttpRequest& request, const HttpPeer& peer,
                                      const HttpRules& rules, HttpLogin login,
                                      setup::HttpRole role);

// Whether this request of the control socket uses what only a program of this machine can pass or
// reach: descriptors, files of this host.
bool needs_this_host(const control::Message& request);

}  // namespace crane::node
