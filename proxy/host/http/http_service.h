// SPDX-License-Identifier: Apache-2.0
#pragma once
// A node's answers to HTTP requests: metrics, health, its status and a page.  Read only.  Every
// program that reaches the address may send requests, so the default is the loopback address.
//
//   /metrics    Prometheus' text format
//   /health     200: the group serves, as known to this replica
//   /leader     200: this replica leads and takes clients
//   /replica    200: it follows, and is at most ?lag=100ms behind
//   /readiness  200: either of these
//   /liveness   200: the node's loop turns
//   /status     this replica's status, as crane-ctl status -o json shows it
//   /history    the last minutes, for the page
//   /           the page
//
// If the address is taken, the node logs this once and tries again; the replica does not end.
//
// Threads: the node's one thread, inside its event loop.
// INVARIANT HTTP-1  No request changes the node's state.

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/kept.h"
#include "dmt/base/result.h"
#include "proxy/clients/accept_pause.h"
#include "proxy/clients/woken.h"
#include "proxy/host/config.h"
#include "proxy/host/http/history.h"
#include "proxy/host/http/metrics.h"
#include "proxy/host/http/recent_events.h"
#include "proxy/host/status.h"

namespace crane::node {

class HttpService final : private proxy::AcceptPause::Owner {
 public:
  class Owner : public proxy::Woken {
   public:
    virtual NodeStatus status() = 0;
    virtual std::string status_text() = 0;  // as the control socket answers

   protected:
    ~Owner() = default;
  };

  // Both must outlive it.  REQUIRES: `config` contains the address to listen at.
  HttpService(event_base* base, const Config& config, Owner& owner);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Takes a sample for the page, and tries to listen, when due.
  void step(std::int64_t now_ns);
  std::int64_t due_ns() const noexcept { return due_ns_; }

 private:
  struct Reply;
  struct FreeHttp {
    void operator()(evhttp* http) const noexcept { evhttp_free(http); }
  };

  static void on_accept_error(evconnlistener* listener, void* http);
  void accept_pause_changed() override;
  void listen();
  void answer(evhttp_request* request);
  Reply reply_to(const std::string& path, const std::string& query);
  Reply health_reply(const std::string& path, const std::string& query);
  std::string history_text();
  Surroundings surroundings();

  event_base* const base_;
  const Config& config_;
  Owner& owner_;
  std::unique_ptr<evhttp, FreeHttp> http_;  // nullptr: it does not listen yet
  evconnlistener* listener_ = nullptr;      // owned by http_
  proxy::AcceptPause pause_;
  bool complained_ = false;
  std::int64_t due_ns_ = 0;
  History history_;
  RecentEvents events_;
  checkpoint::Newest newest_;
};

}  // namespace crane::node
