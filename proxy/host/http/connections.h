// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTTP connections of a node, with or without TLS: reads one request after the other, and
// writes the owner's answers.
//
// A client has kRequestSeconds for its whole request, from the connection (with TLS, from before
// the handshake) or from the end of the previous answer, and kAnswerSeconds to take the answer.
// Bytes that arrive slowly do not prolong this.  places.h limits the connections, request.h the
// sizes.
//
// Threads: the node's one thread, inside its event loop.
// Errors: listen() returns the errno.  Later a client that breaks a limit gets a status, if it can
// still be told, and is closed; counts() has the numbers.

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/clients/accept_pause.h"
#include "proxy/clients/woken.h"
#include "proxy/host/http/access.h"
#include "proxy/host/http/places.h"
#include "runtime/setup/http_access.h"

namespace crane::node {

struct HttpReply {
  int status = 200;
  const char* type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<const char*, std::string>> headers = {};
};

struct HttpCounts {
  std::uint64_t open = 0;       // connections now
  std::uint64_t refused = 0;    // connections that found no place
  std::uint64_t timed_out = 0;  // connections whose request or answer took too long
  std::uint64_t malformed = 0;  // requests that are not HTTP, or too large
};

class HttpConnections final : private proxy::AcceptPause::Owner {
 public:
  static constexpr int kRequestSeconds = 5, kAnswerSeconds = 10, kCloseSeconds = 2;

  class Owner : public proxy::Woken {
   public:
    virtual HttpReply answer(const HttpRequest& request, const HttpPeer& peer) = 0;

   protected:
    ~Owner() = default;
  };

  // `owner` must outlive it.
  HttpConnections(event_base* base, Owner& owner);
  ~HttpConnections();
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

  // Encrypts the connections that are accepted from now on; the others continue.
  void set_tls(setup::TlsContext tls);
  // `address`: ADDRESS:PORT.
  Outcome listen(const std::string& address);
  bool listens() const noexcept { return listener_ != nullptr; }
  HttpCounts counts() const noexcept;

 private:
  struct Connection;

  void accept_pause_changed() override;
  void accept(int fd, const sockaddr* address);
  Connection* open(int fd, const HttpPeer& peer);
  void close(Connection& connection);
  void readable(Connection& connection);
  bool read_request(Connection& connection);
  void refuse(Connection& connection, int status);
  void send(Connection& connection, const HttpReply& reply, bool head_only);
  void written(Connection& connection);
  void ended(Connection& connection, short what);
  void late(Connection& connection);

  event_base* const base_;
  Owner& owner_;
  setup::TlsContext tls_;  // nullptr: without TLS
  evconnlistener* listener_ = nullptr;
  std::string address_;
  proxy::AcceptPause pause_;
  HttpPlaces places_;
  HttpCounts counts_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace crane::node
