// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/forwarder.h"
#include "proxy/clients/host_sockets.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace crane::node {
namespace {

constexpr std::size_t kBuffered = 256 * 1024;
constexpr timeval kConnectTimeout{3, 0};
constexpr std::size_t kShareOfDescriptors = 4;  // a share of the limit; each connection takes two

socklen_t socket_address(const std::string& address, std::uint16_t port, sockaddr_storage& to) {
  to = {};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&to);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&to);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return sizeof *v4;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return sizeof *v6;
  }
  return 0;
}

std::size_t descriptors_most() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

}  // namespace

void reset_socket(int fd) noexcept {
  const linger now{1, 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(fd);
}

struct Forwarder::Pair {
  Forwarder* owner;
  std::string peer;
  bufferevent* client = nullptr;
  bufferevent* leader = nullptr;
  bool connected = false;
  bool client_ended = false, leader_ended = false;  // EOF was read from that side
  bool client_shut = false, leader_shut = false;    // that EOF was forwarded

  bufferevent* other(const bufferevent* side) const { return side == client ? leader : client; }
  // Forwards an EOF when everything before it is written.
  void shut_down(bufferevent* side) {
    const bool to_client = side == client;
    bool& shut = to_client ? client_shut : leader_shut;
    const bool ended = to_client ? leader_ended : client_ended;
    if (!ended || shut || !connected) return;
    if (evbuffer_get_length(bufferevent_get_output(side)) > 0) return;
    shut = true;
    ::shutdown(bufferevent_getfd(side), SHUT_WR);
  }
  bool finished() const { return client_shut && leader_shut; }
};

Forwarder::Forwarder(event_base* base, proxy::Woken& woken)
    : base_(base), woken_(woken), most_(descriptors_most() / kShareOfDescriptors / 2) {}

Forwarder::~Forwarder() { set_target(""); }

void Forwarder::set_target(const std::string& address) {
  if (address == target_) return;
  target_ = address;
  while (!pairs_.empty()) end(*pairs_.begin(), true);  // FORWARD-1
}

void Forwarder::take(int client, std::uint16_t port, const std::string& peer) {
  sockaddr_storage to;
  const socklen_t size = socket_address(target_, port, to);
  if (size == 0 || pairs_.size() >= most_) {
    spdlog::warn("a client was reset: {}: {}", peer,
                 size == 0 ? "there is no leader" : "too many connections are passed on");
    reset_socket(client);
    return;
  }
  auto* pair = new Pair{this, peer};
  pairs_.insert(pair);
  ++accepted_;
  pair->client = bufferevent_socket_new(base_, client, 0);
  pair->leader = bufferevent_socket_new(base_, -1, 0);
  for (bufferevent* side : {pair->client, pair->leader}) {
    bufferevent_setcb(side, on_read, on_written, Forwarder::on_event, pair);
    bufferevent_setwatermark(side, EV_READ, 0, kBuffered);
    bufferevent_setwatermark(side, EV_WRITE, kBuffered / 2, 0);
  }
  bufferevent_set_timeouts(pair->leader, nullptr, &kConnectTimeout);
  if (bufferevent_socket_connect(pair->leader, reinterpret_cast<sockaddr*>(&to),
                                 static_cast<int>(size)) != 0) {
    return;  // on_event has ended the pair
  }
  spdlog::info("client {} is passed on to {}:{}", peer, target_, port);
  bufferevent_enable(pair->client, EV_READ | EV_WRITE);
}

// While much output is waiting at `to`, `from` is not read.
void Forwarder::pass_on(bufferevent* from, bufferevent* to) {
  bufferevent_write_buffer(to, bufferevent_get_input(from));
  if (evbuffer_get_length(bufferevent_get_output(to)) >= kBuffered) {
    bufferevent_disable(from, EV_READ);
  }
}

void Forwarder::on_read(bufferevent* from, void* argument) {
  Pair& pair = *static_cast<Pair*>(argument);
  pair.owner->woken_.woke();
  pass_on(from, pair.other(from));
}

void Forwarder::on_written(bufferevent* to, void* argument) {
  Pair& pair = *static_cast<Pair*>(argument);
  pair.owner->woken_.woke();
  bufferevent* from = pair.other(to);
  const bool ended = from == pair.client ? pair.client_ended : pair.leader_ended;
  if (!ended) bufferevent_enable(from, EV_READ);
  pair.shut_down(to);
  if (pair.finished()) pair.owner->end(&pair, false);
}

void Forwarder::on_event(bufferevent* side, short what, void* argument) {
  Pair& pair = *static_cast<Pair*>(argument);
  Forwarder& self = *pair.owner;
  self.woken_.woke();
  if ((what & BEV_EVENT_CONNECTED) != 0) {
    pair.connected = true;
    bufferevent_set_timeouts(side, nullptr, nullptr);
    proxy::set_stream_options(bufferevent_getfd(side));
    proxy::set_stream_options(bufferevent_getfd(pair.client));
    bufferevent_enable(side, EV_READ | EV_WRITE);
    pair.shut_down(side);
    return;
  }
  if ((what & BEV_EVENT_EOF) != 0) {
    (side == pair.client ? pair.client_ended : pair.leader_ended) = true;
    bufferevent* other = pair.other(side);
    pass_on(side, other);
    pair.shut_down(other);
    if (pair.finished()) self.end(&pair, false);
    return;
  }
  if (!pair.connected) {
    spdlog::warn(
        "client {} was reset: {} does not answer: {}", pair.peer, self.target_,
        (what & BEV_EVENT_TIMEOUT) != 0 ? "timed out" : std::strerror(EVUTIL_SOCKET_ERROR()));
  }
  self.end(&pair, true);
}

void Forwarder::end(Pair* pair, bool reset) {
  pairs_.erase(pair);
  for (bufferevent* side : {pair->client, pair->leader}) {
    const int fd = bufferevent_getfd(side);
    bufferevent_free(side);
    if (fd < 0) continue;
    if (reset) {
      reset_socket(fd);
    } else {
      ::close(fd);
    }
  }
  delete pair;
}

}  // namespace crane::node
