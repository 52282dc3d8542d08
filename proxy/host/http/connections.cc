// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/connections.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event_struct.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "dmt/base/clock.h"
#include "dmt/base/place.h"
#include "runtime/setup/address.h"

namespace crane::node {
namespace {

constexpr int kBacklog = 128;

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text, size};
}

HttpPeer peer_of(const sockaddr* address) {
  HttpPeer peer;
  char text[INET6_ADDRSTRLEN] = "";
  in6_addr six{};
  if (address->sa_family == AF_INET6) {
    six = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    // An IPv4 client of a socket for both families.
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
      ::inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
    } else {
      ::inet_ntop(AF_INET6, &six, text, sizeof text);
    }
  } else {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  }
  peer.address = peer.network = text;
  peer.loopback = place::is_loopback(peer.address);
  if (place::is_ipv6(peer.address)) {
    std::fill(six.s6_addr + 8, six.s6_addr + 16, std::uint8_t{0});
    ::inet_ntop(AF_INET6, &six, text, sizeof text);
    peer.network = text;
  }
  return peer;
}

// The size of the socket's address; 0: `address` is none.
socklen_t fill(const std::string& text, sockaddr_storage& socket) {
  VirtualAddress address{};
  if (!setup::parse_address(text, address)) return 0;
  if (address.family == AF_INET6) {
    auto& six = reinterpret_cast<sockaddr_in6&>(socket);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    std::memcpy(&six.sin6_addr, address.ip, sizeof six.sin6_addr);
    return sizeof six;
  }
  auto& four = reinterpret_cast<sockaddr_in&>(socket);
  four.sin_family = AF_INET;
  four.sin_port = htons(address.port);
  std::memcpy(&four.sin_addr, address.ip, sizeof four.sin_addr);
  return sizeof four;
}

}  // namespace

struct HttpConnections::Connection {
  enum class State : std::uint8_t {
    kReading,    // a request, or waiting for one
    kAnswering,  // until the answer has left the output buffer
    kClosing,    // all is sent; what the client still sends is dropped, so that it gets the answer
  };

  explicit Connection(HttpConnections& owner, HttpPeer who) : all(owner), peer(std::move(who)) {}
  ~Connection() {
    event_del(&deadline);
    // It also ends TLS, and closes the socket.
    bufferevent_free(events);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void limit(int seconds) {
    const timeval time{seconds, 0};
    event_add(&deadline, &time);
  }

  HttpConnections& all;
  const HttpPeer peer;
  bufferevent* events = nullptr;
  event deadline{};
  State state = State::kReading;
  std::optional<HttpRequest> request;  // its head is read
  bool keeps_open = true;
  bool answered = false;  // at least once
};

HttpConnections::HttpConnections(event_base* base, Owner& owner)
    : base_(base), owner_(owner), pause_(base, "its clients", *this) {}

HttpConnections::~HttpConnections() {
  connections_.clear();
  if (listener_ != nullptr) evconnlistener_free(listener_);
}

void HttpConnections::set_tls(setup::TlsContext tls) { tls_ = std::move(tls); }

void HttpConnections::accept_pause_changed() {
  if (listener_ == nullptr) return;
  pause_.on() ? evconnlistener_disable(listener_) : evconnlistener_enable(listener_);
}

Outcome HttpConnections::listen(const std::string& address) {
  sockaddr_storage socket{};
  const socklen_t size = fill(address, socket);
  if (size == 0) return Error{Code::kBadArgument, EINVAL, "the address"};
  address_ = address;
  listener_ = evconnlistener_new_bind(
      base_,
      [](evconnlistener*, int fd, sockaddr* from, int, void* self) {
        static_cast<HttpConnections*>(self)->accept(fd, from);
      },
      this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, kBacklog,
      reinterpret_cast<const sockaddr*>(&socket), static_cast<int>(size));
  if (listener_ == nullptr) return system_error("bind and listen");
  evconnlistener_set_error_cb(listener_, [](evconnlistener*, void* self) {
    auto& that = *static_cast<HttpConnections*>(self);
    // The failure concerned one client only: the next call accepts another one.
    (void)that.pause_.failed(EVUTIL_SOCKET_ERROR(), "http://" + that.address_ + "/");
  });
  return Done{};
}

HttpCounts HttpConnections::counts() const noexcept {
  HttpCounts counts = counts_;
  counts.open = static_cast<std::uint64_t>(places_.taken());
  return counts;
}

void HttpConnections::accept(int fd, const sockaddr* address) {
  owner_.woke();
  pause_.accepted();
  HttpPeer peer = peer_of(address);
  peer.tls = tls_ != nullptr;
  if (!places_.take(peer, monotonic_ns())) {
    ++counts_.refused;
    ::close(fd);
    return;
  }
  Connection* const connection = open(fd, peer);
  if (connection != nullptr) return;
  places_.release(peer);
  ++counts_.refused;
  ::close(fd);
}

// nullptr: no memory.
HttpConnections::Connection* HttpConnections::open(int fd, const HttpPeer& peer) {
  bufferevent* events = nullptr;
  if (SSL* const ssl = peer.tls ? SSL_new(tls_.get()) : nullptr; ssl != nullptr) {
    events = bufferevent_openssl_socket_new(base_, fd, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                            BEV_OPT_CLOSE_ON_FREE);
    if (events == nullptr) SSL_free(ssl);
  } else if (!peer.tls) {
    events = bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE);
  }
  if (events == nullptr) return nullptr;
  connections_.push_back(std::make_unique<Connection>(*this, peer));
  Connection& c = *connections_.back();
  c.events = events;
  bufferevent_setcb(
      events,
      [](bufferevent*, void* self) {
        auto& that = *static_cast<Connection*>(self);
        that.all.readable(that);
      },
      [](bufferevent*, void* self) {
        auto& that = *static_cast<Connection*>(self);
        that.all.written(that);
      },
      [](bufferevent*, short what, void* self) {
        auto& that = *static_cast<Connection*>(self);
        that.all.ended(that, what);
      },
      &c);
  evtimer_assign(
      &c.deadline, base_,
      [](int, short, void* self) {
        auto& that = *static_cast<Connection*>(self);
        that.all.late(that);
      },
      &c);
  bufferevent_setwatermark(events, EV_READ, 0, kHttpHeadMax + kHttpBodyMax);
  bufferevent_enable(events, EV_READ | EV_WRITE);
  c.limit(kRequestSeconds);
  return &c;
}

void HttpConnections::close(Connection& connection) {
  places_.release(connection.peer);
  std::erase_if(connections_, [&](const auto& c) { return c.get() == &connection; });
}

void HttpConnections::readable(Connection& c) {
  owner_.woke();
  if (c.state == Connection::State::kClosing) {
    evbuffer* const in = bufferevent_get_input(c.events);
    evbuffer_drain(in, evbuffer_get_length(in));
    return;
  }
  if (c.state == Connection::State::kReading) (void)read_request(c);
}

// False: the request is not complete.  True: it is being answered.
bool HttpConnections::read_request(Connection& c) {
  evbuffer* const in = bufferevent_get_input(c.events);
  if (!c.request) {
    const std::size_t size = std::min(evbuffer_get_length(in), kHttpHeadMax);
    if (size == 0) return false;
    const unsigned char* const bytes = evbuffer_pullup(in, static_cast<ev_ssize_t>(size));
    if (bytes == nullptr) return false;
    HttpHead head = parse_head({reinterpret_cast<const char*>(bytes), size});
    if (head.status == 0) return false;
    if (head.status != 200) {
      refuse(c, head.status);
      return true;
    }
    evbuffer_drain(in, head.bytes);
    c.request = std::move(head.request);
    if (c.request->expects_continue && c.request->body_bytes != 0) {
      constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      bufferevent_write(c.events, kContinue.data(), kContinue.size());
    }
  }
  HttpRequest& request = *c.request;
  if (evbuffer_get_length(in) < request.body_bytes) return false;
  request.body.resize(request.body_bytes);
  evbuffer_remove(in, request.body.data(), request.body.size());
  c.keeps_open = request.keeps_open;
  send(c, owner_.answer(request, c.peer), request.method == HttpMethod::kHead);
  c.request.reset();
  return true;
}

// What follows in the connection cannot be understood.
void HttpConnections::refuse(Connection& c, int status) {
  ++counts_.malformed;
  c.keeps_open = false;
  send(c, {status, "text/plain; charset=utf-8", std::string(reason_of(status)) + "\n"}, false);
}

void HttpConnections::send(Connection& c, const HttpReply& reply, bool head_only) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                  reply.status, reason_of(reply.status), date(), reply.type, reply.body.size());
  for (const auto& [name, value] : reply.headers) text += fmt::format("{}: {}\r\n", name, value);
  text += c.keeps_open ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  if (!head_only) text += reply.body;
  c.state = Connection::State::kAnswering;
  c.answered = true;
  c.limit(kAnswerSeconds);
  bufferevent_write(c.events, text.data(), text.size());
}

// The output buffer is empty.
void HttpConnections::written(Connection& c) {
  owner_.woke();
  if (c.state != Connection::State::kAnswering) return;  // 100 Continue
  if (c.keeps_open) {
    c.state = Connection::State::kReading;
    c.limit(kRequestSeconds);
    (void)read_request(c);
    return;
  }
  c.state = Connection::State::kClosing;
  c.limit(kCloseSeconds);
  if (SSL* const ssl = bufferevent_openssl_get_ssl(c.events); ssl != nullptr) SSL_shutdown(ssl);
  ::shutdown(bufferevent_getfd(c.events), SHUT_WR);
  evbuffer* const in = bufferevent_get_input(c.events);
  evbuffer_drain(in, evbuffer_get_length(in));
}

void HttpConnections::ended(Connection& c, short what) {
  owner_.woke();
  if ((what & BEV_EVENT_CONNECTED) != 0) return;
  // The client sends no more requests, but may still read the answer.
  if ((what & BEV_EVENT_EOF) != 0 && c.state == Connection::State::kAnswering) {
    c.keeps_open = false;
    return;
  }
  close(c);
}

void HttpConnections::late(Connection& c) {
  owner_.woke();
  const bool waits = c.state == Connection::State::kReading && c.answered && !c.request &&
                     evbuffer_get_length(bufferevent_get_input(c.events)) == 0;
  if (!waits && c.state != Connection::State::kClosing) ++counts_.timed_out;
  close(c);
}

}  // namespace crane::node
