// SPDX-License-Identifier: Apache-2.0
// GOAL    Each name lookup of the server gets one answer under any leader, and the node never waits
//         for a resolver.
// METHOD  One or two replicas' Names with a fake resolver; libc's resolver in its own process with
//         a DNS server of the test, with a silent one, and without one.
// CHECKS  NAME-2; which lookups are repeated, and which are not.
#include "proxy/clients/names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "proxy/clients/resolver.h"
#include "tests/unit/clients/loopback_listener.h"

using namespace crane;
using namespace crane::proxy;

namespace {

constexpr std::uint64_t kNumber = kOutboundBit | 1000;

NameRequest question(const char* name, int family = AF_UNSPEC, int flags = 0) {
  NameRequest request{};
  request.question = NameQuestion::kAddresses;
  request.address.family = static_cast<std::uint16_t>(family);
  request.flags = static_cast<std::uint32_t>(flags);
  std::strcpy(request.name, name);
  return request;
}

ResolvedBody answer_to(std::uint64_t number, int error = 0) {
  ResolvedBody body{};
  body.number = number;
  body.error = error;
  return body;
}

struct QueuedResolver final : NameResolver {
  explicit QueuedResolver(std::vector<std::uint64_t>& all) : numbers(all) {}
  void ask(std::uint64_t number, const NameRequest&) override { numbers.push_back(number); }
  void forget_all() override { numbers.clear(); }
  std::vector<std::uint64_t>& numbers;
};

struct Replica {
  Replica() { names.use(std::make_unique<QueuedResolver>(asked)); }
  std::vector<std::uint64_t> asked;
  Names names;
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("names: the leader resolves a name, and the others wait for the committed answer",
          "[names][NAME-2]") {
  Replica leader, follower;
  leader.names.lead(true);
  for (Replica* r : {&leader, &follower}) r->names.asked(kNumber, question("a.example"));
  CHECK(leader.asked == Numbers{kNumber});
  CHECK(follower.asked.empty());
  CHECK(leader.names.answered(kNumber));
  for (Replica* r : {&leader, &follower}) {
    r->names.committed(answer_to(kNumber));
    CHECK(r->names.pending() == 0);
  }
  follower.names.lead(true);
  CHECK(follower.asked.empty());
}

TEST_CASE("names: a new leader repeats lookups that have no answer in the log", "[names]") {
  Replica old, next;
  old.names.lead(true);
  for (Replica* r : {&old, &next}) r->names.asked(kNumber, question("a.example"));
  SECTION("the old leader was still resolving it") {}
  SECTION("the old leader's proposal of the answer was not committed") {
    CHECK(old.names.answered(kNumber));
  }
  old.names.lead(false);
  CHECK(old.asked.empty());
  next.names.lead(true);
  CHECK(next.asked == Numbers{kNumber});
  CHECK_FALSE(old.names.answered(kNumber));  // its resolver had this answer ready
  // Both leaders' answers are committed: the second one has no effect.
  next.names.committed(answer_to(kNumber));
  next.names.committed(answer_to(kNumber, EAI_AGAIN));
  next.names.asked(kNumber + 1, question("b.example"));
  CHECK(next.asked == Numbers{kNumber, kNumber + 1});
}

TEST_CASE("names: the log may be ahead of this replica's server", "[names]") {
  Replica r;
  r.names.committed(answer_to(kNumber));
  r.names.lead(true);
  r.names.asked(kNumber, question("a.example"));
  CHECK(r.asked.empty());
  CHECK(r.names.pending() == 0);
  r.names.asked(kNumber + 7, question("a.example"));
  CHECK(r.asked == Numbers{kNumber + 7});
}

TEST_CASE("names: a replica that recovers resolves the names that have no answer", "[names]") {
  Replica r;
  r.names.asked(kNumber, question("a.example"));  // from the segment
  r.names.recover_at(2000);
  r.names.committed(answer_to(kOutboundBit | 1500));  // of a lookup that is finished
  r.names.lead(true);
  CHECK(r.asked == Numbers{kNumber});
}

TEST_CASE("names: a replay gets the answers from the log", "[names]") {
  Names names;
  names.asked(kNumber, question("a.example"));
  names.lead(true);
  CHECK_FALSE(names.answered(kNumber));
  CHECK(names.pending() == 0);
}

// --- libc's resolver -----------------------------------------------------------------------------

namespace {

// Answers every query with 192.0.2.7 or 2001:db8::7, or stays silent.
struct DnsServer {
  explicit DnsServer(bool is_silent = false)
      : silent(is_silent), fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    address.family = AF_INET;
    address.port = ntohs(at.sin_port);
    address.ip[0] = 127;
    address.ip[3] = 1;
  }
  ~DnsServer() { ::close(fd); }

  void serve() {
    std::string m(512, '\0');
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t n =
        ::recvfrom(fd, m.data(), m.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 17) return;
    ++answer_count;
    if (silent) return;
    std::size_t end = 12;
    while (m[end] != 0) end += 1U + static_cast<unsigned char>(m[end]);
    const char type = m[end + 2];
    m.resize(end + 5);
    const std::string ip = type == 1
                               ? std::string("\xc0\x00\x02\x07", 4)
                               : std::string("\x20\x01\x0d\xb8", 4) + std::string(11, '\0') + '\7';
    m[2] = '\x81';
    m[3] = '\x80';
    m[7] = 1;                  // one answer,
    m[9] = m[10] = m[11] = 0;  // nothing more
    m += std::string("\xc0\x0c\0", 3) + type + std::string("\0\1\0\0\0\3c\0", 8).substr(0, 6);
    m += std::string(1, '\0') + static_cast<char>(ip.size()) + ip;
    ::sendto(fd, m.data(), m.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }

  bool silent;
  int fd;
  VirtualAddress address{};
  int answer_count = 0;
};

struct LibcResolver final : Resolver::Owner {
  explicit LibcResolver(const ResolverOptions& options)
      : base(event_base_new()), resolver(std::make_unique<Resolver>(base, options, *this)) {}
  void answered(const ResolvedBody& body) override { answers.push_back(body); }
  ~LibcResolver() {
    resolver.reset();
    CHECK(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
  }
  bool until_answered(std::size_t count, DnsServer* server = nullptr) {
    return turned_until([&] { return answers.size() >= count; },
                        [&] {
                          if (server != nullptr) server->serve();
                          event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
                        });
  }
  event_base* base;
  std::unique_ptr<Resolver> resolver;
  std::vector<ResolvedBody> answers;
};

}  // namespace

TEST_CASE("resolver: the event loop delivers libc's answers", "[names]") {
  DnsServer server;
  ResolverOptions options;
  options.server = server.address;
  LibcResolver r(options);
  r.resolver->ask(kNumber, question("a.crane-test.example", AF_INET, AI_CANONNAME));
  r.resolver->ask(kNumber + 1, question("a.crane-test.example", AF_INET6));
  CHECK(r.answers.empty());
  REQUIRE(r.until_answered(2, &server));
  CHECK(r.resolver->processes() == 0);
  for (const ResolvedBody& body : r.answers) {
    CAPTURE(body.error);
    REQUIRE(body.count == 1);
    const VirtualAddress& a = body.addresses[0];
    if (body.number == kNumber) {
      CHECK((a.family == AF_INET && a.ip[0] == 192 && a.ip[3] == 7));
      CHECK(std::string(body.name) == "a.crane-test.example");
    } else {
      CHECK((a.family == AF_INET6 && a.ip[0] == 0x20 && a.ip[15] == 7));
    }
  }
}

TEST_CASE("resolver: more lookups than processes are all answered", "[names]") {
  DnsServer server;
  ResolverOptions options;
  options.server = server.address;
  options.at_once = 2;
  LibcResolver r(options);
  for (std::uint64_t i = 0; i < 9; ++i)
    r.resolver->ask(kNumber + i, question("a.example", AF_INET));
  CHECK(r.resolver->processes() == 2);
  REQUIRE(r.until_answered(9, &server));
}

TEST_CASE("resolver: a silent DNS server causes a timeout, which stalls nothing", "[names]") {
  DnsServer server(true);
  ResolverOptions options;
  options.server = server.address;
  options.limit_ms = 50;
  LibcResolver r(options);
  const auto began = std::chrono::steady_clock::now();
  r.resolver->ask(kNumber, question("a.example"));
  REQUIRE(r.until_answered(1, &server));
  CHECK(r.answers[0].error == EAI_AGAIN);
  CHECK(r.answers[0].number == kNumber);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));  // libc: 5 s
  r.resolver->ask(kNumber + 1, question("a.example"));
  r.resolver->forget_all();
  CHECK(r.resolver->processes() == 0);
}

TEST_CASE("resolver: with only_files the DNS server gets no query", "[names]") {
  DnsServer server;
  ResolverOptions options;
  options.server = server.address;
  options.only_files = true;
  LibcResolver r(options);
  r.resolver->ask(kNumber, question("a.crane-test.example"));
  r.resolver->ask(kNumber + 1, question("localhost", AF_INET));
  REQUIRE(r.until_answered(2, &server));
  CHECK(server.answer_count == 0);
  for (const ResolvedBody& body : r.answers) {
    CHECK(body.error == (body.number == kNumber ? EAI_FAIL : 0));
  }
}
