// SPDX-License-Identifier: Apache-2.0
// Who gets which HTTP answer, and the limits: requests, roles, logins and places without a socket.
#include "proxy/host/http/access.h"

#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "proxy/host/http/file_watch.h"
#include "proxy/host/http/logins.h"
#include "proxy/host/http/places.h"
#include "proxy/host/http/request.h"

namespace crane::node {
namespace {

using setup::HttpRole;

// openssl passwd -6 -salt crane secret
constexpr const char* kSecretHash =
    "$6$crane$ZPjiGx0O/SdcPDRiAVG/BZ7z8oobkfppIWOmYISnUXN..xU9rXm"
    "zt1b1GNR6ff0szgTCeK2Bhkuz8oYwILexD1";

HttpRequest request(HttpMethod method, const std::string& path) {
  HttpRequest r;
  r.method = method;
  r.path = path;
  r.content_type = "application/json";
  r.host = "node:9100";
  return r;
}

int status(const HttpRequest& r, const HttpPeer& peer, const HttpRules& rules, HttpLogin login,
           HttpRole role = HttpRole::kRead) {
  const auto refused = refusal_of(r, peer, rules, login, role);
  return refused ? refused->status : 200;
}

const HttpPeer kHere{"127.0.0.1", "127.0.0.1", true, false};
const HttpPeer kPlain{"10.0.0.1", "10.0.0.1", false, false};
const HttpPeer kTls{"10.0.0.1", "10.0.0.1", false, true};
constexpr HttpRules kNoUsers{false, false}, kOpen{false, true}, kUsers{true, false},
    kOpenWithUsers{true, true};

int status_of_head(const std::string& text) { return parse_head(text).status; }

}  // namespace

TEST_CASE("a complete head is read, and the rest of the bytes is left") {
  const std::string head =
      "POST /control?a=1&b=2 HTTP/1.1\r\nHost: Node:9100\r\nAUTHORIZATION:  Basic Zm9v \r\n"
      "Content-Type: Application/JSON; charset=utf-8\r\nContent-Length: 12\r\n"
      "Origin: https://Node:9100\r\nExpect: 100-continue\r\n\r\n";
  const HttpHead read = parse_head(head + "{\"do\":\"x\"}..");
  REQUIRE(read.status == 200);
  CHECK(read.bytes == head.size());
  CHECK(read.request.method == HttpMethod::kPost);
  CHECK(read.request.path == "/control");
  CHECK(read.request.query == "a=1&b=2");
  CHECK(read.request.authorization == "Basic Zm9v");
  CHECK(read.request.content_type == "application/json");
  CHECK(read.request.origin == "https://node:9100");
  CHECK(read.request.body_bytes == 12);
  CHECK(read.request.expects_continue);
  CHECK(read.request.keeps_open);
  for (std::size_t size = 0; size < head.size(); ++size) {
    CHECK(parse_head(head.substr(0, size)).status == 0);
  }
}

TEST_CASE("targets, versions and line ends that load balancers send are read") {
  CHECK(parse_head("GET http://a:1/metrics?x HTTP/1.1\r\n\r\n").request.path == "/metrics");
  CHECK(parse_head("GET http://a:1?x HTTP/1.1\r\n\r\n").request.path == "/");
  CHECK(parse_head("OPTIONS * HTTP/1.0\n\n").request.path == "/");
  CHECK_FALSE(parse_head("GET /leader HTTP/1.0\r\n\r\n").request.keeps_open);
  CHECK(parse_head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").request.keeps_open);
  CHECK_FALSE(parse_head("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").request.keeps_open);
}

TEST_CASE("a head that could be read in two ways, or is too large, is refused") {
  CHECK(status_of_head("PUT / HTTP/1.1\r\n\r\n") == 405);
  CHECK(status_of_head("GET / HTTP/2.0\r\n\r\n") == 505);
  CHECK(status_of_head("GET /\r\n\r\n") == 400);
  CHECK(status_of_head("GET a HTTP/1.1\r\n\r\n") == 400);
  CHECK(status_of_head("GET /a b HTTP/1.1\r\n\r\n") == 400);
  CHECK(status_of_head("GET / HTTP/1.1\r\nA : b\r\n\r\n") == 400);
  CHECK(status_of_head("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n") == 400);
  CHECK(status_of_head("GET / HTTP/1.1\r\nA: \rb\r\n\r\n") == 400);
  CHECK(status_of_head("GET /a\rb HTTP/1.1\r\n\r\n") == 400);
  CHECK(status_of_head(std::string("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 25)) == 400);
  CHECK(status_of_head("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") == 411);
  CHECK(status_of_head("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n") == 400);
  CHECK(status_of_head("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n") == 400);
  CHECK(status_of_head("POST / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n") == 200);
  CHECK(status_of_head("POST / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n") == 413);
  CHECK(status_of_head("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n") == 413);
  CHECK(status_of_head("GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n") == 400);
  CHECK(status_of_head(std::string(kHttpHeadMax - 1, 'a')) == 0);
  CHECK(status_of_head(std::string(kHttpHeadMax, 'a')) == 431);
}

// HTTP-1
TEST_CASE("only an operator's request changes the state, by TLS or on this machine") {
  const HttpRequest control = request(HttpMethod::kPost, "/control");
  for (const HttpRules& rules : {kNoUsers, kOpen, kUsers, kOpenWithUsers}) {
    for (const HttpPeer& peer : {kHere, kPlain, kTls}) {
      for (const HttpLogin login : {HttpLogin::kNone, HttpLogin::kWrong, HttpLogin::kTooMany}) {
        CHECK(status(control, peer, rules, login, HttpRole::kOperator) != 200);
      }
      CHECK(status(control, peer, rules, HttpLogin::kUser, HttpRole::kRead) != 200);
      const bool may = rules.has_users && (peer.loopback || peer.tls);
      CHECK((status(control, peer, rules, HttpLogin::kUser, HttpRole::kOperator) == 200) == may);
    }
  }
  CHECK(status(request(HttpMethod::kPost, "/status"), kHere, kUsers, HttpLogin::kUser,
               HttpRole::kOperator) == 405);
}

TEST_CASE("a request that a page of another site sends is refused") {
  HttpRequest control = request(HttpMethod::kPost, "/control");
  const auto answer = [&] {
    return status(control, kTls, kUsers, HttpLogin::kUser, HttpRole::kOperator);
  };
  control.origin = "https://node:9100";
  CHECK(answer() == 200);
  for (const char* other : {"https://evil", "https://node:9100.evil", "null", "node:9100"}) {
    control.origin = other;
    CHECK(answer() == 403);
  }
  control.origin.clear();
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded"}) {
    control.content_type = type;
    CHECK(answer() == 415);
  }
}

TEST_CASE("with users, only the checks of load balancers need none") {
  for (const char* path : {"/liveness", "/health", "/leader", "/replica", "/readiness"}) {
    CHECK(status(request(HttpMethod::kGet, path), kTls, kUsers, HttpLogin::kNone) == 200);
  }
  for (const char* path : {"/", "/metrics", "/status", "/history", "/health/", "/nothing"}) {
    CAPTURE(path);
    const HttpRequest get = request(HttpMethod::kGet, path);
    CHECK(status(get, kHere, kUsers, HttpLogin::kNone) == 401);
    CHECK(status(get, kTls, kUsers, HttpLogin::kWrong) == 401);
    CHECK(status(get, kTls, kUsers, HttpLogin::kTooMany) == 429);
    CHECK(status(get, kTls, kUsers, HttpLogin::kUser) == 200);
    CHECK(status(get, kPlain, kOpenWithUsers, HttpLogin::kNone) == 200);
    CHECK(status(get, kHere, kNoUsers, HttpLogin::kNone) == 200);
  }
}

TEST_CASE("requests that need files or descriptors of the node's host are known") {
  const auto needs = [](const std::string& text) {
    const auto parsed = control::parse(control::Channel::kNode, text);
    REQUIRE(parsed.message);
    return needs_this_host(*parsed.message);
  };
  CHECK(needs(R"({"do":"supervise"})"));
  CHECK(needs(R"({"do":"hand_over","to":"x"})"));
  CHECK(needs(R"({"do":"copy_log","view":1,"index":1,"position":1,"through":1,"file":1})"));
  CHECK_FALSE(needs(R"({"do":"transfer"})"));
  CHECK_FALSE(needs(R"({"do":"checkpoint"})"));
}

TEST_CASE("credentials are Basic, or Bearer with a name and a dot") {
  CHECK(credential_of("Basic YWRhOnNlY3JldA==")->name == "ada");
  CHECK(credential_of("basic  YWRhOnNlY3JldA==")->password == "secret");
  CHECK(credential_of("Basic YTpiOmM=")->password == "b:c");
  CHECK(credential_of("Bearer ada.se.cret")->password == "se.cret");
  for (const char* wrong : {"Basic", "Basic YWRh", "Basic ====", "Basic YWRhOnNlY3JldA",
                            "Basic !!!!", "Bearer ada", "Digest x", "Basic  "}) {
    CAPTURE(wrong);
    CHECK_FALSE(credential_of(wrong));
  }
}

TEST_CASE("a right password is hashed once, and other tries are limited") {
  HttpLogins logins;
  logins.set_users({{"ada", HttpRole::kOperator, kSecretHash}});
  std::int64_t now = 1;
  const auto login = [&](const char* typed, bool loopback = false) {
    return logins.check(typed, loopback, now).login;
  };
  CHECK(login("") == HttpLogin::kNone);
  CHECK(login("Bearer ada.secret") == HttpLogin::kUser);
  for (int i = 0; i < 100; ++i) CHECK(login("Basic YWRhOnNlY3JldA==") == HttpLogin::kUser);
  CHECK(logins.hashed() == 1);
  CHECK(login("Bearer nobody.secret") == HttpLogin::kWrong);
  CHECK(logins.hashed() == 2);  // an unknown name costs as much
  int wrong = 0;
  for (int i = 0; i < 100; ++i) wrong += login("Bearer ada.guess") == HttpLogin::kWrong;
  CHECK(wrong == static_cast<int>(HttpLogins::kTriesAtOnce) - 2);
  CHECK(login("Bearer ada.guess") == HttpLogin::kTooMany);
  CHECK(login("Bearer ada.guess", true) == HttpLogin::kWrong);  // this machine has its own tries
  CHECK(login("Bearer ada.secret") == HttpLogin::kUser);
  now += 1'000'000'000;
  CHECK(login("Bearer ada.guess") == HttpLogin::kWrong);
  CHECK(logins.check("Bearer ada.secret", false, now).role == HttpRole::kOperator);
  logins.set_users({{"bob", HttpRole::kRead, kSecretHash}});
  CHECK(login("Bearer ada.secret") == HttpLogin::kWrong);
  CHECK(logins.check("Bearer bob.secret", false, now).role == HttpRole::kRead);
  CHECK(login(("Bearer bob." + std::string(600, 'x')).c_str()) == HttpLogin::kWrong);
}

TEST_CASE("other machines cannot take the places of this one, nor one network those of others") {
  HttpPlaces places;
  const auto from = [](const std::string& network) {
    return HttpPeer{network, network, false, true};
  };
  std::int64_t now = 1;
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += places.take(from("10.0.0.1"), now);
  CHECK(taken == HttpPlaces::kMostOfNetwork);
  for (int network = 2; network < 20; ++network) {
    now += 1'000'000'000;
    for (int i = 0; i < 100; ++i)
      taken += places.take(from("10.0.0." + std::to_string(network)), now);
  }
  CHECK(taken == HttpPlaces::kMost);
  int here = 0;
  for (int i = 0; i < 100; ++i) here += places.take(kHere, now);
  CHECK(here == HttpPlaces::kMost);
  places.release(kHere);
  CHECK(places.take(kHere, now));
  places.release(from("10.0.0.1"));
  now += 1'000'000'000;
  CHECK(places.take(from("10.0.0.9"), now));
  CHECK(places.taken() == 2 * HttpPlaces::kMost);
}

TEST_CASE("handshakes of other machines have a rate") {
  HttpPlaces places;
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!places.take(kTls, 1)) continue;
    ++taken;
    places.release(kTls);
  }
  CHECK(taken == static_cast<int>(HttpPlaces::kHandshakesAtOnce));
  CHECK(places.take(kPlain, 1));
}

TEST_CASE("a changed file is read once it is the same for a while") {
  char path[] = "/tmp/crane-watch-XXXXXX";
  const int fd = ::mkstemp(path);
  REQUIRE(fd >= 0);
  FileWatch watch({path, "/nonexistent"});
  CHECK(watch.changed());
  CHECK_FALSE(watch.changed());
  REQUIRE(::write(fd, "a", 1) == 1);
  CHECK_FALSE(watch.changed());
  REQUIRE(::write(fd, "b", 1) == 1);
  CHECK_FALSE(watch.changed());
  CHECK(watch.changed());
  CHECK_FALSE(watch.changed());
  ::close(fd);
  ::unlink(path);
  CHECK_FALSE(watch.changed());
  CHECK(watch.changed());
}

}  // namespace crane::node
