// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's answers to HTTP requests: metrics, health, its status and a page; from an operator, the
// requests of the control socket.  access.h decides who gets which answer, connections.h has the
// limits.
//
//   /metrics    Prometheus' text format
//   /health     200: the group serves, as known to this replica
//   /leader     200: this replica leads and takes clients
//   /replica    200: it follows, and is at most ?lag=100ms behind
//   /readiness  200: either of these
//   /liveness   200: the node's loop turns
//   /status     this replica's status, as crane-ctl status -o json shows it
//   /history    the last minutes, for the page
//   /control    POST: one request of the control socket, and its answer
//   /           the page
//
// If the address is taken, or the certificate, the key or the users cannot be used, the node logs
// this once and tries again; the replica does not end.  If a file becomes unusable while the node
// answers, the node logs this once and continues with what it had read.
//
// Threads: the node's one thread, inside its event loop.

#include <event2/event.h>

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/kept.h"
#include "dmt/base/result.h"
#include "proxy/clients/woken.h"
#include "proxy/host/config.h"
#include "proxy/host/http/connections.h"
#include "proxy/host/http/file_watch.h"
#include "proxy/host/http/history.h"
#include "proxy/host/http/logins.h"
#include "proxy/host/http/metrics.h"
#include "proxy/host/http/recent_events.h"
#include "proxy/host/status.h"

namespace crane::node {

class HttpService final : private HttpConnections::Owner {
 public:
  class Owner : public proxy::Woken {
   public:
    virtual NodeStatus status() = 0;
    virtual std::string status_text() = 0;  // as the control socket answers
    // Answers a request of the control socket.
    virtual std::string answer(const std::string& request) = 0;

   protected:
    ~Owner() = default;
  };

  // Both must outlive it.  REQUIRES: `config` contains the address to listen at.
  HttpService(event_base* base, const Config& config, Owner& owner);
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Takes a sample for the page, reads files that have changed, and tries to listen, when due.
  void step(std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return due_ns_; }

 private:
  void woke() override { owner_.woke(); }
  HttpReply answer(const HttpRequest& request, const HttpPeer& peer) override;
  void read_files();
  void listen();
  void login_failed(const HttpPeer& peer, HttpLogin login);
  HttpReply reply_to(const HttpRequest& request);
  HttpReply health_reply(const std::string& path, const std::string& query);
  HttpReply control_reply(const HttpRequest& request, const HttpPeer& peer,
                          const std::string& user);
  std::string history_text();
  Surroundings surroundings();

  const Config& config_;
  Owner& owner_;
  const HttpRules rules_;
  FileWatch tls_files_, users_file_;
  bool has_tls_ = false;  // a certificate and its key were read
  std::int64_t certificate_expires_unix_s_ = 0;
  HttpLogins logins_;
  HttpConnections connections_;
  bool complained_ = false;
  std::uint64_t failed_logins_ = 0, logged_failures_ = 0;
  std::int64_t log_failures_at_ns_ = 0;
  std::int64_t due_ns_ = 0;
  History history_;
  RecentEvents events_;
  checkpoint::Newest newest_;
};

}  // namespace crane::node
