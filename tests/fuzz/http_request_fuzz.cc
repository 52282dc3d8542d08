// SPDX-License-Identifier: Apache-2.0
// A stranger may send any bytes to a node's HTTP address.  The node reads them as an incomplete
// head, a refusal, or a request within the limits.  Credentials and files of users are read alike.

#include "dmt/base/assert.h"
#include "proxy/host/http/logins.h"
#include "proxy/host/http/request.h"
#include "runtime/setup/http_users.h"
#include "tests/fuzz/fuzz.h"

namespace crane::fuzz {
namespace {

void check_head(std::string_view bytes) {
  const node::HttpHead head = node::parse_head(bytes);
  CRANE_ASSERT(head.status == 0 || head.status == 200 || (head.status >= 400 && head.status < 600));
  CRANE_ASSERT(head.bytes <= bytes.size() && head.bytes <= node::kHttpHeadMax);
  if (head.status == 0) CRANE_ASSERT(bytes.size() < node::kHttpHeadMax && head.bytes == 0);
  if (head.status != 200) return;
  CRANE_ASSERT(head.bytes != 0 && head.request.path.starts_with('/'));
  CRANE_ASSERT(head.request.body_bytes <= node::kHttpBodyMax && head.request.body.empty());
  CRANE_ASSERT(head.request.path.find_first_of("\r\n ?") == std::string::npos);
  const node::HttpHead alone = node::parse_head(bytes.substr(0, head.bytes));
  CRANE_ASSERT(alone.status == 200 && alone.bytes == head.bytes);
  CRANE_ASSERT(node::parse_head(bytes.substr(0, head.bytes - 1)).status == 0);
}

}  // namespace

std::vector<std::string> seeds() {
  return {"GET /leader HTTP/1.0\r\n\r\n",
          "GET http://a:1/status?lag=1s#x HTTP/1.1\r\nHost: a:1\r\n\r\n",
          "POST /control HTTP/1.1\r\nContent-Length: 15\r\nContent-Type: application/json\r\n"
          "Authorization: Basic YWRhOnNlY3JldA==\r\nOrigin: https://a\r\n\r\n{\"do\":\"status\"}",
          "OPTIONS * HTTP/1.1\nConnection: close\nExpect: 100-continue\n\n",
          "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "\x16\x03\x01",
          "Basic YWRhOnNlY3JldA==",
          "Bearer ada.secret",
          "# x\nada:operator:$6$rounds=5000$salt$hash\n"};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace crane;
  const std::string text(reinterpret_cast<const char*>(data), size);
  fuzz::check_head(text);
  if (const auto credential = node::credential_of(text)) {
    CRANE_ASSERT(credential->name.size() + credential->password.size() < text.size());
  }
  std::vector<setup::HttpUser> users;
  const Outcome read = setup::parse_http_users(text, "users", users);
  if (read.ok()) CRANE_ASSERT(!users.empty() && users.size() <= setup::kHttpUsersMost);
  return 0;
}
