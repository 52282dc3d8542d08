// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/host_role.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/ipv4_prefix.h"
#include "runtime/setup/host_address.h"
#include "runtime/setup/service_manager.h"

namespace crane::node {

namespace {
constexpr timeval kAnnounceEvery{1, 0}, kAnnounceAgain{0, 1000};
}  // namespace

HostRole::HostRole(event_base* base, const Config& config, proxy::Proxy& proxy,
                   const replica::Leadership& leadership, Owner& owner)
    : config_(config),
      file_(*config.host),
      proxy_(proxy),
      leadership_(leadership),
      owner_(owner),
      forwarder_(base, owner),
      role_hook_(base, file_.role_change),
      announce_(::event_new(base, -1, 0, on_announce, this)) {}

HostRole::~HostRole() {
  ::event_free(announce_);
  if (heard_ != nullptr) ::event_free(heard_);
  if (watchdog_ != nullptr) ::event_free(watchdog_);
}

bool HostRole::open() {
  proxy_.set_clients_to_forward(*this);
  if (file_.virtual_ip.empty()) return true;
  if (const Outcome own = setup::check_virtual_ip(file_.virtual_ip); !own) {
    owner_.fail(ExitStatus::kNoListener, own.error().text);
    return false;
  }
  const auto virtual_ip = parse_ipv4_prefix(file_.virtual_ip);
  const bool left =
      virtual_ip && setup::owner_of_address(virtual_ip->number) == setup::AddressOwner::kCrane;
  const Outcome opened = address_.open(file_.virtual_ip, file_.interface, left);
  if (opened.ok()) {
    if (address_.fd() >= 0) {
      heard_ = ::event_new(::event_get_base(announce_), address_.fd(), EV_READ | EV_PERSIST,
                           on_arp_packets, this);
      ::event_add(heard_, nullptr);
    }
    return true;
  }
  owner_.fail(ExitStatus::kNoListener,
              fmt::format("cannot use the virtual address {} on {}: {}; correct [clients] "
                          "virtual_ip and interface",
                          file_.virtual_ip, file_.interface, opened.error().message()));
  return false;
}

// If this fails, the group works, but connections end with their leader.
void HostRole::keep_connections() {
  const auto virtual_ip = parse_ipv4_prefix(file_.virtual_ip);
  if (!config_.keeps_connections || !virtual_ip) return;
  const std::string& address = virtual_ip->address;
  const Outcome moves = proxy_.move_clients_of(address);
  if (moves.ok()) return;
  spdlog::warn("clients of {} will be reset when the leader changes: {}", address,
               moves.error().message());
}

// --- the service manager ----------------------------------------------------------------------

void HostRole::up() {
  setup::ServiceManager& manager = setup::service_manager();
  manager.ready(summary(false));
  const std::int64_t every_ns = manager.watchdog_ns();
  if (every_ns == 0) return;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000, kNsPerUs = 1000;
  const timeval every{every_ns / kNsPerSecond, every_ns % kNsPerSecond / kNsPerUs};
  watchdog_ = ::event_new(::event_get_base(announce_), -1, EV_PERSIST, on_watchdog, this);
  ::event_add(watchdog_, &every);
}

void HostRole::on_watchdog(int, short, void* role) {
  static_cast<HostRole*>(role)->owner_.woke();
  setup::service_manager().alive();
}

std::string HostRole::summary(bool refuses) const {
  const unsigned leader = value(leadership_.leader());
  std::string text =
      fmt::format("{}: replica {} of {} ", config_.group, config_.replica, config_.replicas);
  if (leadership_.leads()) {
    text += "leads";
  } else if (leader < config_.replicas) {
    text += fmt::format("follows replica {}", leader);
  } else {
    text += "knows no leader";
  }
  return text + (refuses ? "; no quorum: clients are refused" : "");
}

// --- listeners of the server's ports ------------------------------------------------------------

int HostRole::open_port(const Place& place, std::uint64_t backlog, OpenPort listener) {
  const std::optional<setup::Published> published =
      setup::published_port(file_.publish, place.port);
  if (!published) {
    spdlog::info("port {} of the server is not published: clients do not reach it", place.port);
    return 0;
  }
  const std::uint16_t ours = published->ours;
  const bool elsewhere = !published->address.empty();
  const std::string where = address_here(elsewhere ? published->address : place.address);
  const int length = static_cast<int>(std::min<std::uint64_t>(backlog, 65535));
  const auto fd = listener(where, ours, length, true);
  if (!fd.ok()) return fd.error().detail;
  spdlog::info("{} of the server is {} of this host", place::text(place), place::text(ours, where));
  const auto moves = parse_ipv4_prefix(file_.virtual_ip);
  if (!(moves && moves->address == where) && !setup::has_address(where)) {
    spdlog::warn(
        "this host does not have the address {} at which the server listens: while this replica "
        "leads, no client reaches the server there until the host has that address",
        where);
  }
  proxy_.add_listener(elsewhere ? Place(place.port) : place, fd.value(), length);
  const Ports::value_type pair{place.port, ours};
  if (std::find(ports_.begin(), ports_.end(), pair) == ports_.end()) ports_.push_back(pair);
  return 0;
}

// Replaces the address of any of the group's hosts by this host's own, so that one configuration of
// the server is right on all hosts (HOST-2).
std::string HostRole::address_here(const std::string& address) const {
  const std::string& own = file_.replicas[config_.replica].clients;
  const bool of_hosts =
      std::any_of(file_.replicas.begin(), file_.replicas.end(),
                  [&address](const auto& replica) { return replica.clients == address; });
  const bool on_one_machine = place::is_loopback(own) && place::is_loopback(address);
  const bool all = address.empty() || place::is_wildcard(address);
  if (of_hosts || on_one_machine || (all && !file_.listen_any)) return own;
  return address.empty() ? std::string(place::kBoth) : address;
}

void HostRole::open_listener(const Place& place, std::uint64_t backlog) {
  const int error = try_listener(place, backlog);
  if (error == 0) return;
  const std::uint16_t port = place.port;
  const std::uint16_t ours = setup::published_port(file_.publish, port).value().ours;
  if (!ports_.empty() || (place::is_ipv6(place.address) && error == EAFNOSUPPORT)) {
    // The leader's host may have the port: a client that makes the server listen ends no replica.
    spdlog::error("cannot listen on {}: {}; clients do not reach the server there on this host",
                  place::text(ours, place.address), std::strerror(error));
    return;
  }
  owner_.fail(
      ExitStatus::kNoListener,
      fmt::format("cannot listen on port {}: {}; stop its owner, or publish the server's port "
                  "elsewhere ([clients] publish = [\"OTHER:{}\"])",
                  ours, std::strerror(error), port));
}

// --- the role -----------------------------------------------------------------------------------

// If this fails, only clients of the address are not served: log it and continue.
void HostRole::take_address(std::uint32_t reign) {
  if (!address_.configured()) return;
  const Outcome taken = address_.take(reign);
  if (taken.ok()) {
    spdlog::info("this host now has {} on {}", file_.virtual_ip, file_.interface);
    announce(true);
    return;
  }
  spdlog::error("cannot move {} to {}: {}; run the node as root, or leave virtual_ip out",
                file_.virtual_ip, file_.interface, taken.error().message());
}

void HostRole::release_address() {
  announce(false);
  address_.give_up();
}

void HostRole::announce(bool on) {
  if (on) {
    ::event_add(announce_, &kAnnounceEvery);
  } else {
    ::event_del(announce_);
  }
}

void HostRole::on_announce(int, short, void* role) {
  auto& that = *static_cast<HostRole*>(role);
  that.owner_.woke();
  (void)that.address_.announce().ok();  // if it fails, the next one may succeed
  that.announce(true);
}

void HostRole::on_arp_packets(int, short, void* role) {
  auto& that = *static_cast<HostRole*>(role);
  that.owner_.woke();
  that.handle_arp_packets();
}

void HostRole::handle_arp_packets() {
  const VirtualAddress::ArpSighting what = address_.read_arp_packets();
  if (!address_.held() || what == VirtualAddress::ArpSighting::kNothing) return;
  if (what == VirtualAddress::ArpSighting::kReplaced) {  // before the log shows it
    announce(false);
    return proxy_.silence();
  }
  // The host of an earlier leader has answered, or will answer: announce the address again soon.
  if (::evtimer_pending(announce_, nullptr) != 0) ::event_add(announce_, &kAnnounceAgain);
}

void HostRole::refuse(bool refuses) {
  proxy_.refuse(refuses);
  if (address_.held()) announce(!refuses);  // without a quorum another host may already hold it
  pass_clients_on(refuses);
  setup::service_manager().status(summary(refuses));
}

// Decides where clients go that reach this host while it follows.
void HostRole::pass_clients_on(bool refuses) {
  const unsigned leader = value(leadership_.leader());
  const bool follows = leadership_.role() != consensus::Role::kCandidate &&
                       leadership_.role() != consensus::Role::kLeader;
  const bool named = leader < config_.replicas;
  const bool known = follows && named && leader != config_.replica && !refuses;  // HOST-1
  // While no leader is known, forwarded clients stay: if the same leader continues, they are not
  // affected; if it stopped leading, it has reset them.
  if (named || !follows || refuses) {
    forwarder_.set_target(known && file_.forward ? file_.replicas[leader].clients : "");
  }
  // While no leader is known, clients wait in the kernel.
  if (!leadership_.leads()) proxy_.take_clients_to_forward(known);
}

void HostRole::follow(bool refuses) {
  const bool named = value(leadership_.leader()) < config_.replicas;
  pass_clients_on(refuses);
  setup::service_manager().status(summary(refuses));
  role_hook_.changed(
      {"CRANE_GROUP=" + config_.group, fmt::format("CRANE_REPLICA={}", config_.replica),
       fmt::format("CRANE_ROLE={}", consensus::name(leadership_.role())),
       fmt::format("CRANE_VIEW={}", view_counter(leadership_.view())),
       named ? fmt::format("CRANE_LEADER={}", value(leadership_.leader())) : "CRANE_LEADER="});
}

void HostRole::take_client_to_forward(int fd, std::uint16_t port, const std::string& peer) {
  const std::uint16_t ours = setup::published_port(file_.publish, port).value().ours;
  if (file_.forward) return forwarder_.take(fd, ours, peer);
  const unsigned leader = value(leadership_.leader());
  spdlog::info("client {} was refused: replica {} leads, at {}:{}", peer, leader,
               file_.replicas[leader].clients, ours);
  reset_socket(fd);
}

}  // namespace crane::node
