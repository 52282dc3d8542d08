// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <vector>

#include "consensus/fabric/secure_link.h"

namespace crane::test {
namespace {

// Bytes on their way from one socket to the other.
struct Flow {
  int from = -1;
  int to = -1;
  std::vector<char> bytes;
};

struct Carried {
  Flow flows[2];
  bool over = false;
};

void carry(Flow& f, bool& over) {
  char bytes[65536];
  if (f.bytes.empty()) {
    const ssize_t got = ::recv(f.from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) f.bytes.assign(bytes, bytes + got);
    if (got == 0 || (got < 0 && errno != EAGAIN)) over = true;
  }
  if (f.bytes.empty()) return;
  const ssize_t sent = ::send(f.to, f.bytes.data(), f.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) f.bytes.erase(f.bytes.begin(), f.bytes.begin() + sent);
  if (sent < 0 && errno != EAGAIN) over = true;
}

}  // namespace

void run_relay(const consensus::Endpoint& listen, const consensus::Endpoint& forward) {
  const auto here = consensus::resolve(listen.address, listen.port);
  const auto there = consensus::resolve(forward.address, forward.port);
  if (!here || !there) ::_exit(3);
  const auto listener = consensus::listen_on(here.value());
  if (!listener) ::_exit(3);
  std::list<Carried> all;
  for (;;) {
    std::vector<pollfd> fds{{listener.value(), POLLIN, 0}};
    for (const Carried& c : all) {
      for (const Flow& f : c.flows) {
        if (f.bytes.empty()) {
          fds.push_back({f.from, POLLIN, 0});
        } else {
          fds.push_back({f.to, POLLOUT, 0});
        }
      }
    }
    ::poll(fds.data(), fds.size(), -1);
    for (;;) {
      const int in = ::accept(listener.value(), nullptr, nullptr);
      if (in < 0) break;
      const int out = ::socket(there.value().get()->sa_family, SOCK_STREAM, 0);
      if (::connect(out, there.value().get(), there.value().size) != 0) {
        ::close(in);
        ::close(out);
        continue;
      }
      all.push_back({{{in, out, {}}, {out, in, {}}}, false});
    }
    for (auto c = all.begin(); c != all.end();) {
      for (Flow& f : c->flows) carry(f, c->over);
      if (c->over) {
        ::close(c->flows[0].from);
        ::close(c->flows[0].to);
        c = all.erase(c);
      } else {
        ++c;
      }
    }
  }
}

}  // namespace crane::test
