// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/http_service.h"

#include <event2/http.h>
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
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

constexpr std::int64_t kLogFailuresNs = 10'000'000'000;

constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kHtml = "text/html; charset=utf-8";
// The page needs no other resource.
constexpr const char* kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:";
constexpr const char* kPaths =
    "no such page; the pages are: / /metrics /health /leader /replica /readiness /liveness "
    "/status /history; POST: /control\n";

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

std::vector<std::pair<const char*, std::string>> headers_of(const HttpReply& reply) {
  std::vector<std::pair<const char*, std::string>> all{{"Cache-Control", "no-store"},
                                                       {"X-Content-Type-Options", "nosniff"},
                                                       {"Content-Security-Policy", kPolicy}};
  if (reply.status == 401) {
    all.emplace_back("WWW-Authenticate", "Basic realm=\"crane\", charset=\"UTF-8\"");
  }
  if (reply.status == 405) all.emplace_back("Allow", "GET, HEAD, OPTIONS, POST");
  if (reply.status == 429) all.emplace_back("Retry-After", "1");
  return all;
}

}  // namespace

HttpService::HttpService(event_base* base, const Config& config, Owner& owner)
    : config_(config),
      owner_(owner),
      rules_{!config.http_users.empty(), config.http_open},
      tls_files_({config.http_certificate, config.http_key}),
      users_file_({config.http_users}),
      connections_(base, *this) {
  read_files();
  listen();
}

void HttpService::read_files() {
  const bool listens = connections_.listens();
  const auto complain = [listens](const Outcome& problem) {
    spdlog::warn("{}; {}", problem.error().text,
                 listens ? "until then HTTP continues with what the file was before"
                         : "until then HTTP is not answered");
  };
  if (!config_.http_certificate.empty() && tls_files_.changed()) {
    setup::HttpTls tls;
    if (auto p = setup::read_http_tls(config_.http_certificate, config_.http_key, tls); !p) {
      complain(p);
    } else {
      if (listens) spdlog::info("HTTP uses the new certificate {}", config_.http_certificate);
      connections_.set_tls(std::move(tls.context));
      certificate_expires_unix_s_ = tls.expires_unix_s;
      has_tls_ = true;
    }
  }
  if (rules_.has_users && users_file_.changed()) {
    std::vector<setup::HttpUser> users;
    if (auto p = setup::read_http_users(config_.http_users, users); !p) {
      complain(p);
    } else {
      if (listens) spdlog::info("HTTP has {} users of {}", users.size(), config_.http_users);
      logins_.set_users(std::move(users));
    }
  }
}

void HttpService::listen() {
  // Never with less protection than the options name.
  if (!config_.http_certificate.empty() && !has_tls_) return;
  if (rules_.has_users && logins_.empty()) return;
  if (const Outcome done = connections_.listen(config_.http_listen); !done.ok()) {
    if (!complained_) {
      spdlog::warn(
          "HTTP is not answered yet: {}: {}; the node tries again every {} s: free the address, or "
          "configure another one",
          config_.http_listen, std::strerror(done.error().detail),
          History::kPeriodNs / 1'000'000'000);
    }
    complained_ = true;
    return;
  }
  spdlog::info("HTTP is answered at {}://{}/", has_tls_ ? "https" : "http", config_.http_listen);
}

void HttpService::step(std::int64_t now_ns) {
  if (now_ns < due_ns_) return;
  due_ns_ = now_ns + History::kPeriodNs;
  read_files();
  if (!connections_.listens()) listen();
  history_.add(owner_.status(), unix_ms());
}

Surroundings HttpService::surroundings() {
  return {own_process(),
          file_systems_of(config_),
          newest_checkpoint(newest_, config_),
          {connections_.counts(), failed_logins_, certificate_expires_unix_s_}};
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

HttpReply HttpService::health_reply(const std::string& path, const std::string& query) {
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

HttpReply HttpService::reply_to(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/") return {200, kHtml, std::string(page_html())};
  if (path == "/metrics") return {200, kMetrics, metrics_text(owner_.status(), surroundings())};
  if (path == "/status") return {200, kJson, owner_.status_text() + "\n"};
  if (path == "/history") return {200, kJson, history_text()};
  if (path == "/liveness") return {200, kText, "the node's loop turns\n"};
  if (path == "/control") return {405, kText, "/control takes POST\n"};
  for (const char* known : {"/health", "/leader", "/replica", "/readiness"}) {
    if (path == known) return health_reply(path, request.query);
  }
  return {404, kText, kPaths};
}

// REQUIRES: the user is an operator (HTTP-1).
HttpReply HttpService::control_reply(const HttpRequest& request, const HttpPeer& peer,
                                     const std::string& user) {
  const control::Parsed parsed = control::parse(control::Channel::kNode, request.body);
  if (parsed.message && needs_this_host(*parsed.message)) {
    return {403, kJson,
            control::line_of(control::refused(
                "unsupported",
                "this request uses files or descriptors of the node's host: send it "
                "with crane-ctl there")) +
                "\n"};
  }
  const std::string answer = owner_.answer(request.body);
  const bool done = control::flag_in(nlohmann::json::parse(answer, nullptr, false), "ok", true);
  // Only the verb: the request may hold the server's secrets.
  spdlog::info("the operator {} ({}) sent {} by HTTP: {}", user, peer.address,
               parsed.message ? parsed.message->verb().name : "a wrong request",
               done ? "accepted" : "refused");
  return {!parsed.message ? 400 : done ? 200 : 409, kJson, answer + "\n"};
}

// One line, then one per kLogFailuresNs, so that no client fills the log.
void HttpService::login_failed(const HttpPeer& peer, HttpLogin login) {
  ++failed_logins_;
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns < log_failures_at_ns_) return;
  log_failures_at_ns_ = now_ns + kLogFailuresNs;
  const std::uint64_t others = failed_logins_ - logged_failures_ - 1;
  logged_failures_ = failed_logins_;
  spdlog::warn("HTTP: {} from {} ({} others since the last such line)",
               login == HttpLogin::kTooMany ? "too many passwords" : "a wrong name or password",
               peer.address, others);
}

HttpReply HttpService::answer(const HttpRequest& request, const HttpPeer& peer) {
  HttpLogins::Result user;
  if (need_of(request, rules_) != HttpNeed::kNobody) {
    user = logins_.check(request.authorization, peer.loopback, monotonic_ns());
    const bool failed = user.login == HttpLogin::kWrong || user.login == HttpLogin::kTooMany;
    if (failed) login_failed(peer, user.login);
  }
  HttpReply reply;
  if (const auto refused = refusal_of(request, peer, rules_, user.login, user.role)) {
    reply = {refused->status, kText, refused->text + "\n"};
  } else if (request.method == HttpMethod::kPost) {
    reply = control_reply(request, peer, user.name);
  } else {
    reply = reply_to(request);
  }
  reply.headers = headers_of(reply);
  return reply;
}

}  // namespace crane::node
