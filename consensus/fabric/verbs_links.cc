// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/verbs_links.h"
#include "dmt/base/accept_error.h"
#include "dmt/base/clock.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crane::consensus::verbs {
namespace {

constexpr std::uint8_t kPlane = 16;       // carries the fabric's frames
constexpr std::uint8_t kKnockPlane = 17;  // a knock: requests the peer to dial
constexpr long kRedialNs = 50'000'000;
constexpr std::uint32_t kFrameMax = 4096;
constexpr std::size_t kFillBytes = 64U << 10;
constexpr std::size_t kAcceptedMax = 64;  // connections that have not proved the secret yet
constexpr std::uint64_t kFreshNs = 1'000'000'000;

std::uint64_t now_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

}  // namespace

Result<std::unique_ptr<Links>> Links::open(const LinksOptions& options) {
  std::unique_ptr<Links> out(new Links(options));
  if (const Outcome started = out->start(); !started) return started.error();
  return out;
}

Outcome Links::start() {
  const std::size_t replicas = options_.endpoints.size();
  if (replicas == 0 || replicas > kReplicasMax || value(options_.self) >= replicas) {
    return Error{Code::kBadArgument, 0, "the verbs fabric needs one endpoint per replica"};
  }
  if (options_.secret == GroupSecret{}) {
    return Error{Code::kBadArgument, 0, "the verbs fabric needs the group's secret"};
  }
  open_.resize(replicas);
  opened_ns_.resize(replicas);
  dialing_.resize(replicas);
  knocking_.resize(replicas);
  for (const Endpoint& at : options_.endpoints) {
    auto address = resolve(at.address, at.port);
    if (!address) return address.error();
    addresses_.push_back(address.value());
  }
  auto context =
      LinkContext::create(options_.secret, options_.self, static_cast<std::uint8_t>(replicas));
  if (!context) return context.error();
  context_ = std::move(context).value();
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (epoll_fd_ < 0 || timer_fd_ < 0) return system_error("epoll or timer");
  auto listening = listen_on(addresses_[value(options_.self)]);
  if (!listening) return listening.error();
  listen_fd_ = listening.value();
  for (const int fd : {listen_fd_, timer_fd_}) {
    epoll_event want{};
    want.events = EPOLLIN;
    want.data.fd = fd;
    if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &want) != 0) return system_error("epoll_ctl");
  }
  for (std::uint8_t i = 0; i < replicas; ++i) {
    if (value(options_.self) < i) dial(ReplicaId{i}, kKnockPlane);
  }
  dial_missing();
  return Done{};
}

Links::~Links() {
  // Shut down, not only close: a forked child may hold copies of the descriptors.
  for (auto* list : {&open_, &dialing_, &knocking_, &accepted_}) {
    for (const auto& link : *list) {
      if (link) ::shutdown(link->fd(), SHUT_RDWR);
    }
  }
  if (listen_fd_ >= 0) ::shutdown(listen_fd_, SHUT_RDWR);
  for (const int fd : {listen_fd_, timer_fd_, epoll_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Links::watch(SecureLink& link, bool fresh) {
  epoll_event want{};
  want.events = EPOLLIN | (link.wants_write() ? EPOLLOUT : 0U);
  want.data.fd = link.fd();
  ::epoll_ctl(epoll_fd_, fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, link.fd(), &want);
}

void Links::dial(ReplicaId peer, std::uint8_t plane) {
  auto link = SecureLink::dial(*context_, {options_.self, peer, plane}, addresses_[value(peer)],
                               options_.user_timeout_ms);
  if (!link) return;
  auto& place = (plane == kPlane ? dialing_ : knocking_)[value(peer)];
  place = std::move(link).value();
  watch(*place, true);
  continue_handshake(place);
}

void Links::dial_missing() {
  for (std::uint8_t i = 0; i < value(options_.self); ++i) {
    if (!open_[i] && !dialing_[i]) dial(ReplicaId{i}, kPlane);
  }
  set_timer();
}

// Starts or stops listening.  It stops while descriptors are missing; the timer starts it again.
void Links::listen(bool on) {
  epoll_event want{};
  want.events = EPOLLIN;
  want.data.fd = listen_fd_;
  const int how = on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (::epoll_ctl(epoll_fd_, how, listen_fd_, &want) == 0) listens_ = on;
  set_timer();
}

// The timer runs while a replica that this one dials is missing, and while this one does not
// listen.
void Links::set_timer() {
  bool missing = false;
  for (std::uint8_t i = 0; i < value(options_.self); ++i) missing = missing || !open_[i];
  missing = missing || !listens_;
  if (missing == timer_on_) return;
  timer_on_ = missing;
  itimerspec every{};
  if (missing) every.it_value.tv_nsec = every.it_interval.tv_nsec = kRedialNs;
  ::timerfd_settime(timer_fd_, 0, &every, nullptr);
}

void Links::accept_all() {
  for (;;) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      const AcceptError kind = classify_accept_error(errno);
      if (kind == AcceptError::kOneClient) continue;
      if (kind == AcceptError::kHost) listen(false);  // it would wake the loop again and again
      return;
    }
    if (accepted_.size() >= kAcceptedMax) {
      accepted_.erase(accepted_.begin());  // the oldest that has sent nothing
    }
    auto link = SecureLink::accept(*context_, fd, options_.user_timeout_ms);
    if (!link) continue;
    accepted_.push_back(std::move(link).value());
    watch(*accepted_.back(), true);
    continue_handshake(accepted_.back());
  }
}

// Advances a link that is not open yet.  Resets the pointer when the link failed or has another
// owner.
void Links::continue_handshake(std::unique_ptr<SecureLink>& link) {
  switch (link->progress()) {
    case SecureLink::State::kOpen:
      link->flush();
      on_open(link);
      return;
    case SecureLink::State::kFailed:
      link.reset();
      return;
    case SecureLink::State::kConnecting:
    case SecureLink::State::kHandshaking:
      watch(*link, false);
  }
}

void Links::on_open(std::unique_ptr<SecureLink>& link) {
  const LinkName name = link->name();
  const ReplicaId peer = name.from == options_.self ? name.to : name.from;
  const bool theirs = name.from != options_.self;
  if (name.plane == kKnockPlane) {
    if (theirs) {
      link.reset();
      // The peer has just started, so an older link belongs to its previous process.
      const bool fresh = open_[value(peer)] && now_ns() - opened_ns_[value(peer)] < kFreshNs;
      if (dials(peer) && !fresh) {
        drop(peer);
        dial(peer, kPlane);
        set_timer();
      }
      return;
    }
    watch(*link, false);  // this replica's knock: wait until the peer closes it
    return;
  }
  if (is_visit(name) && theirs && options_.take_visitor) {
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, link->fd(), nullptr);
    options_.take_visitor(peer, std::move(link));
    return;
  }
  if (name.plane != kPlane || theirs == dials(peer)) {
    link.reset();
    return;
  }
  drop(peer);
  open_[value(peer)] = std::move(link);
  opened_ns_[value(peer)] = now_ns();
  arrived_.push_back({Event::Kind::kUp, peer, {}});
  watch(*open_[value(peer)], false);
  set_timer();
  read_from(peer);
}

void Links::drop(ReplicaId peer) {
  auto& link = open_[value(peer)];
  if (!link) return;
  ::shutdown(link->fd(), SHUT_RDWR);
  link.reset();
  arrived_.push_back({Event::Kind::kDown, peer, {}});
}

void Links::reset(ReplicaId peer) {
  drop(peer);
  set_timer();
}

void Links::read_from(ReplicaId peer) {
  auto& link = open_[value(peer)];
  bool more = true;
  while (more && link) {
    more = link->fill(kFillBytes);
    for (;;) {
      const auto in = link->in();
      std::uint32_t size = 0;
      if (in.size() < sizeof size) break;
      std::memcpy(&size, in.data(), sizeof size);
      if (size > kFrameMax) {  // a member of another version
        reset(peer);
        return;
      }
      if (in.size() - sizeof size < size) break;
      const auto body = in.subspan(sizeof size, size);
      arrived_.push_back({Event::Kind::kFrame, peer, {body.begin(), body.end()}});
      link->consume(sizeof size + size);
    }
  }
  if (link->state() == SecureLink::State::kFailed) {
    reset(peer);
    return;
  }
  if (link->wants_write()) link->flush();
  watch(*link, false);
}

bool Links::send(ReplicaId peer, std::span<const std::byte> frame) {
  auto& link = open_[value(peer)];
  if (!link || frame.size() > kFrameMax) return false;
  const auto size = static_cast<std::uint32_t>(frame.size());
  const auto head = std::as_bytes(std::span(&size, 1));
  auto& out = link->out();
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), frame.begin(), frame.end());
  link->flush();
  watch(*link, false);
  return link->state() == SecureLink::State::kOpen;
}

bool Links::next(Event& out) {
  if (arrived_.empty()) {
    epoll_event events[16];
    const int n = ::epoll_wait(epoll_fd_, events, 16, 0);
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listen_fd_) {
        accept_all();
      } else if (fd == timer_fd_) {
        std::uint64_t times = 0;
        if (::read(timer_fd_, &times, sizeof times) > 0) {
          if (!listens_) listen(true);
          dial_missing();
        }
      } else {
        for (auto* list : {&dialing_, &knocking_, &accepted_}) {
          for (auto& link : *list) {
            if (!link || link->fd() != fd) continue;
            if (link->state() == SecureLink::State::kOpen) {  // the peer closed our knock
              link.reset();
            } else {
              continue_handshake(link);
            }
          }
        }
        for (std::uint8_t k = 0; k < open_.size(); ++k) {
          if (open_[k] && open_[k]->fd() == fd) read_from(ReplicaId{k});
        }
      }
    }
    std::erase(accepted_, nullptr);
    if (arrived_.empty()) return false;
  }
  handed_ = std::move(arrived_.front());
  arrived_.pop_front();
  out = {handed_.kind, handed_.peer, handed_.data};
  return true;
}

}  // namespace crane::consensus::verbs
