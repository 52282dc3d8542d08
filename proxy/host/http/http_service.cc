// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/http_service.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "proxy/host/http/health.h"
#include "proxy/host/http/page.h"
#include "runtime/setup/address.h"

namespace crane::node {
namespace {

constexpr int kTimeoutSeconds = 5;  // a client that is silent is dropped
constexpr ev_ssize_t kHeadersMax = 8192;
constexpr ev_ssize_t kBodyMax = 0;

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kPaths =
    "no such page; the pages are: / /metrics /health /leader /replica /readiness /liveness "
    "/status /history\n";

// The value of one parameter of "a=1&b=2"; nullopt: it is absent.
std::optional<std::string> word_of(const std::string& query, const char* name) {
  evkeyvalq words{};
  std::optional<std::string> value;
  if (evhttp_parse_query_str(query.c_str(), &words) == 0) {
    if (const char* found = evhttp_find_header(&words, name); found != nullptr) value = found;
  }
  evhttp_clear_headers(&words);
  return value;
}

HttpService* service_of_process = nullptr;  // the only one, in the node's one thread

std::string host_of(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool six = host.size() > 2 && host.front() == '[';
  return six ? host.substr(1, host.size() - 2) : host;
}

}  // namespace

struct HttpService::Reply {
  int status = 200;
  const char* type = kText;
  std::string body;
};

HttpService::HttpService(event_base* base, const Config& config, Owner& owner)
    : base_(base), config_(config), owner_(owner), pause_(base, "its clients", *this) {
  listen();
}

void HttpService::accept_pause_changed() {
  if (listener_ == nullptr) return;
  pause_.on() ? evconnlistener_disable(listener_) : evconnlistener_enable(listener_);
}

HttpService::~HttpService() { service_of_process = nullptr; }

void HttpService::listen() {
  VirtualAddress address{};
  if (!setup::parse_address(config_.http_listen, address)) return;
  std::unique_ptr<evhttp, FreeHttp> http(evhttp_new(base_));
  if (http == nullptr) return;
  evhttp_set_timeout(http.get(), kTimeoutSeconds);
  evhttp_set_max_headers_size(http.get(), kHeadersMax);
  evhttp_set_max_body_size(http.get(), kBodyMax);
  // HAProxy sends OPTIONS by default.
  evhttp_set_allowed_methods(http.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_OPTIONS);
  evhttp_set_gencb(
      http.get(),
      [](evhttp_request* request, void* self) { static_cast<HttpService*>(self)->answer(request); },
      this);
  const std::string host = host_of(config_.http_listen);
  evhttp_bound_socket* const socket =
      evhttp_bind_socket_with_handle(http.get(), host.c_str(), address.port);
  if (socket == nullptr) {
    if (!complained_) {
      spdlog::warn(
          "HTTP is not answered yet: {}: {}; the node tries again every {} s: free the address, or "
          "configure another one",
          config_.http_listen, std::strerror(errno), History::kPeriodNs / 1'000'000'000);
    }
    complained_ = true;
    return;
  }
  spdlog::info("HTTP is answered at http://{}/", config_.http_listen);
  http_ = std::move(http);
  listener_ = evhttp_bound_socket_get_listener(socket);
  service_of_process = this;
  evconnlistener_set_error_cb(listener_, on_accept_error);
}

// Uses service_of_process, because libevent passes evhttp's own argument.
void HttpService::on_accept_error(evconnlistener*, void*) {
  HttpService& self = *service_of_process;
  // The failure concerned one client only: the next call accepts another one.
  (void)self.pause_.failed(EVUTIL_SOCKET_ERROR(), "http://" + self.config_.http_listen + "/");
}

void HttpService::step(std::int64_t now_ns) {
  if (now_ns < due_ns_) return;
  due_ns_ = now_ns + History::kPeriodNs;
  if (http_ == nullptr) listen();
  history_.add(owner_.status(), unix_ms());
}

Surroundings HttpService::surroundings() {
  return {own_process(), file_systems_of(config_), newest_checkpoint(newest_, config_)};
}

std::string HttpService::history_text() {
  const NewestCheckpoint newest = newest_checkpoint(newest_, config_);
  nlohmann::json checkpoint;
  if (newest.index != 0) {
    checkpoint = {{"index", newest.index},
                  {"age_s", unix_ms() / 1000 - newest.unix_seconds},
                  {"bytes", newest.bytes}};
  }
  return nlohmann::json{
             {"replica", config_.replica},          {"period_ms", History::kPeriodNs / 1'000'000},
             {"pages", config_.http_pages},         {"checkpoint", checkpoint},
             {"events", events_.look(config_.dir)}, {"samples", history_.columns()}}
             .dump() +
         "\n";
}

HttpService::Reply HttpService::health_reply(const std::string& path, const std::string& query) {
  std::optional<std::int64_t> lag_ns;
  if (const auto typed = word_of(query, "lag")) {
    lag_ns = parse_lag(*typed);
    if (!lag_ns) return {400, kText, "lag: write it as 100ms or 2s, as in /replica?lag=100ms\n"};
  }
  const NodeStatus status = owner_.status();
  const HealthAnswer answer = path == "/health"    ? health(status)
                              : path == "/leader"  ? leads(status)
                              : path == "/replica" ? follows(status, lag_ns)
                                                   : ready(status, lag_ns);
  const bool led = status.leader < config_.replicas;
  const nlohmann::json body{
      {"group", status.group},
      {"replica", status.replica},
      {"role", status.role},
      {"leader", led ? nlohmann::json(status.leader) : nlohmann::json()},
      {"lag_ms", status.lag_ns / 1'000'000},
      {"reason", answer.reason.empty() ? nlohmann::json() : nlohmann::json(answer.reason)}};
  return {answer.status, kJson,
          body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

HttpService::Reply HttpService::reply_to(const std::string& path, const std::string& query) {
  if (path == "/") return {200, kHtml, std::string(page_html())};
  if (path == "/metrics") return {200, kMetrics, metrics_text(owner_.status(), surroundings())};
  if (path == "/status") return {200, kJson, owner_.status_text() + "\n"};
  if (path == "/history") return {200, kJson, history_text()};
  if (path == "/liveness") return {200, kText, "the node's loop turns\n"};
  for (const char* known : {"/health", "/leader", "/replica", "/readiness"}) {
    if (path == known) return health_reply(path, query);
  }
  return {404, kText, kPaths};
}

void HttpService::answer(evhttp_request* request) {
  owner_.woke();
  pause_.accepted();
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  const char* path = uri == nullptr ? nullptr : evhttp_uri_get_path(uri);
  const char* query = uri == nullptr ? nullptr : evhttp_uri_get_query(uri);
  const bool root = path == nullptr || *path == '\0';
  const Reply reply = reply_to(root ? "/" : path, query == nullptr ? "" : query);
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", reply.type);
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  // The page needs no other resource.
  evhttp_add_header(headers, "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                    "connect-src 'self'; img-src data:");
  evbuffer* body = evbuffer_new();
  if (body != nullptr) evbuffer_add(body, reply.body.data(), reply.body.size());
  evhttp_send_reply(request, reply.status, nullptr, body);
  if (body != nullptr) evbuffer_free(body);
}

}  // namespace crane::node
