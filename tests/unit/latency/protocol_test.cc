// SPDX-License-Identifier: Apache-2.0
// GOAL    latency-load checks every answer: it reports a wrong one and waits for the rest of a
//         partial one.
// METHOD  Hand-written answers for each protocol, cut at every byte, and with one byte changed.
// CHECKS  The length of a whole answer; WrongAnswer; the end of an HTTP connection.
// REPLAY  none: nothing is random
#include "eval/latency/protocol.h"

#include <catch2/catch.hpp>

namespace {

using namespace latency;
const std::string kValue(kValueBytes, 'a' + 7);
constexpr Request kRead{.writes = false, .key = 7}, kWrite{.writes = true, .key = 7};

// Checks that `answer` is complete at its last byte and not before, and does not include later
// bytes.
void check_cuts(const Protocol& p, const Request& r, const std::string& answer) {
  for (std::size_t n = 0; n < answer.size(); ++n) CHECK(p.answer_in(r, answer.substr(0, n)) == 0);
  CHECK(p.answer_in(r, answer) == answer.size());
  CHECK(p.answer_in(r, answer + "more") == answer.size());
}

TEST_CASE("memcached: the text of requests is right, and wrong answers are refused") {
  const auto p = protocol_named("memcached", "");
  CHECK(p->text_of(kRead) == "get key:7\r\n");
  CHECK(p->text_of(kWrite) == "set key:7 0 0 64\r\n" + kValue + "\r\n");
  check_cuts(*p, kWrite, "STORED\r\n");
  check_cuts(*p, kRead, "VALUE key:7 0 64\r\n" + kValue + "\r\nEND\r\n");
  CHECK_THROWS_AS(p->answer_in(kRead, "END\r\n"), WrongAnswer);
  CHECK_THROWS_AS(p->answer_in(kRead, "VALUE key:8"), WrongAnswer);
  CHECK_THROWS_AS(p->answer_in(kWrite, "SERVER_ERROR\r\n"), WrongAnswer);
}

TEST_CASE("redis: the text of requests is right, and wrong answers are refused") {
  const auto p = protocol_named("redis", "");
  CHECK(p->text_of(kRead) == "*2\r\n$3\r\nGET\r\n$5\r\nkey:7\r\n");
  CHECK(p->text_of(kWrite) == "*3\r\n$3\r\nSET\r\n$5\r\nkey:7\r\n$64\r\n" + kValue + "\r\n");
  check_cuts(*p, kWrite, "+OK\r\n");
  check_cuts(*p, kRead, "$64\r\n" + kValue + "\r\n");
  CHECK_THROWS_AS(p->answer_in(kRead, "$-1\r\n"), WrongAnswer);
  CHECK_THROWS_AS(p->answer_in(kWrite, "-ERR"), WrongAnswer);
}

TEST_CASE("http: a page is complete at its last byte, and field names ignore case") {
  const auto p = protocol_named("http", "/1k.html");
  CHECK(p->text_of(kRead) == "GET /1k.html HTTP/1.1\r\nHost: crane.test\r\n\r\n");
  const std::string kept = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-LENGTH: 5\r\n\r\nhello";
  check_cuts(*p, kRead, kept);
  CHECK_FALSE(p->is_last(kept));
  CHECK(p->is_last("HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Length: 0\r\n\r\n"));
  CHECK_THROWS_AS(p->answer_in(kRead, "HTTP/1.1 404 Not Found\r\n\r\n"), WrongAnswer);
  CHECK_THROWS_AS(p->answer_in(kRead, "HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"), WrongAnswer);
}

TEST_CASE("One request in ten writes, all keys are used, and other protocols are unknown") {
  std::uint64_t writes = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) writes += request_of(i).writes;
  CHECK(writes == 100);
  CHECK(request_of(kKeys + 3).key == 3);
  CHECK(protocol_named("gopher", "") == nullptr);
}

}  // namespace
