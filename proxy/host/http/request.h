// SPDX-License-Identifier: Apache-2.0
#pragma once
// The head of an HTTP/1 request: its first line and its headers.
//
// Pure.  Threads: plain function.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crane::node {

inline constexpr std::size_t kHttpHeadMax = 8 * 1024;
inline constexpr std::size_t kHttpBodyMax = 64 * 1024;

enum class HttpMethod : std::uint8_t { kGet, kHead, kOptions, kPost };

// The headers that a node uses; an absent one is empty.
struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string path = "/", query;
  std::string authorization, content_type, origin, host;
  std::size_t body_bytes = 0;
  std::string body;  // parse_head() leaves it empty
  bool expects_continue = false;
  bool keeps_open = true;  // the connection is for further requests
};

struct HttpHead {
  // 0: the head is not complete yet.  200: `request` is valid.  Otherwise the head is refused with
  // this status, and nothing after it can be understood.
  int status = 0;
  std::size_t bytes = 0;  // of a complete head
  HttpRequest request;
};

// `bytes`: what a connection has sent since its last request, at most kHttpHeadMax bytes of it.
// REQUIRES: nothing; any bytes are safe.
HttpHead parse_head(std::string_view bytes);

}  // namespace crane::node
