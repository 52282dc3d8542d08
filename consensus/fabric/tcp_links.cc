// SPDX-License-Identifier: Apache-2.0
// TcpFabric: opening, links, and the coming and going of peers.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "consensus/fabric/tcp.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using tcp::Decoded;
using tcp::Frame;
using tcp::FrameKind;
using tcp::Hello;
using tcp::Plane;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kBackoffMinNs = 10 * kMs;
constexpr unsigned kBackoffPowerMax = 5;  // 320 ms
constexpr std::uint64_t kStrangersEveryNs = 10'000 * kMs;
constexpr unsigned kComplainAfterTries = 8;
constexpr std::size_t kUngreetedMax = 64;
constexpr std::size_t kReadBudget = 1U << 20;
constexpr unsigned kBackgroundUnsent = 64U << 10;
constexpr std::size_t kEventsPerWait = 64;
constexpr const char* kUnreachable =
    "it cannot be reached; is its node started, and its address right?";
constexpr std::size_t kLogLane = static_cast<std::size_t>(Plane::kLog);
constexpr std::size_t kBackLane = static_cast<std::size_t>(Plane::kBackground);

void close_fd(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

// --- opening ------------------------------------------------------------------------------------

TcpFabric::TcpFabric(const TcpOptions& options) : options_(options), peers_(options.replicas) {
  if (options_.backlog_bytes == 0) {
    // As much as a peer can lag behind and still be brought up to date from the log memory.
    options_.backlog_bytes = options_.log_bytes + options_.log_bytes / 2 + (8U << 20);
  }
}

TcpFabric::~TcpFabric() {
  for (const auto& lane : lanes_) {
    if (!lane->dead) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, lane->link->fd(), nullptr);
  }
  if (listen_fd_ >= 0) ::shutdown(listen_fd_, SHUT_RDWR);  // also for copies in forked children
  close_fd(listen_fd_);
  close_fd(timer_fd_);
  close_fd(wake_fd_);
  close_fd(epoll_fd_);
}

Result<std::unique_ptr<TcpFabric>> TcpFabric::open(const TcpOptions& options) {
  if (options.replicas < 1 || options.replicas > kReplicasMax ||
      value(options.self) >= options.replicas || options.log_bytes == 0 ||
      options.log_bytes % 64 != 0 || options.log_bytes > (1ULL << 31)) {
    return Error{Code::kBadArgument, 0, "fabric options"};
  }
  if (options.endpoints.size() != options.replicas) {
    return Error{Code::kBadArgument, 0, "the tcp fabric needs one endpoint per replica"};
  }
  if (options.secret == GroupSecret{}) {
    return Error{Code::kBadArgument, 0, "the tcp fabric needs the group's secret"};
  }
  std::unique_ptr<TcpFabric> out(new TcpFabric(options));
  if (const Outcome started = out->start(); !started) return started.error();
  return out;
}

Outcome TcpFabric::add_to_epoll(int fd, void* tag) noexcept {
  epoll_event want{};
  want.events = EPOLLIN;
  want.data.ptr = tag;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &want) != 0) return system_error("epoll_ctl");
  return Done{};
}

Outcome TcpFabric::start() {
  const Outcome owned = memory_.open(options_.directory, options_.self, options_.replicas,
                                     options_.group, options_.log_bytes);
  if (!owned) return owned;
  auto context = LinkContext::create(options_.secret, options_.self, options_.replicas);
  if (!context) return context.error();
  context_ = std::move(context).value();
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    auto address = resolve(options_.endpoints[i].address, options_.endpoints[i].port);
    if (!address) return address.error();
    peers_[i].address = address.value();
  }
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return system_error("epoll_create1");
  auto listener = listen_on(peer(options_.self).address);
  if (!listener) return listener.error();
  listen_fd_ = listener.value();
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (timer_fd_ < 0 || wake_fd_ < 0) return system_error("make a timer");
  for (int* const fd : {&listen_fd_, &timer_fd_, &wake_fd_}) {
    if (const Outcome added = add_to_epoll(*fd, fd); !added) return added;
  }
  return Done{};
}

// --- sockets ------------------------------------------------------------------------------------

void TcpFabric::take_socket_events() noexcept {
  epoll_event events[kEventsPerWait];
  const int n = ::epoll_wait(epoll_fd_, events, kEventsPerWait, 0);
  for (int i = 0; i < n; ++i) {
    void* const tag = events[i].data.ptr;
    if (tag == &listen_fd_) {
      accept_links();
    } else if (tag == &timer_fd_ || tag == &wake_fd_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got =
          ::read(*static_cast<const int*>(tag), &count, sizeof count);
      if (tag == &timer_fd_) armed_ns_ = 0;
    } else if (Lane* const lane = static_cast<Lane*>(tag); !lane->dead) {
      pump(*lane);
    }
  }
}

void TcpFabric::add_lane(std::unique_ptr<Lane> lane) noexcept {
  lane->deadline_ns = now_ns_ + options_.silence_ns;
  if (!add_to_epoll(lane->link->fd(), lane.get()).ok()) {
    lane->dead = true;
    graveyard_.push_back(std::move(lane));
    return;
  }
  if (lane->dialled) peers_[lane->peer].lanes[static_cast<std::size_t>(lane->plane)] = lane.get();
  lanes_.push_back(std::move(lane));
}

void TcpFabric::accept_links() noexcept {
  const auto timeout = static_cast<unsigned>(2 * options_.silence_ns / kMs);
  for (;;) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const auto unknown = [](const std::unique_ptr<Lane>& l) { return l->peer == kNobody; };
    // Whoever says nothing is pushed out by who comes later.
    if (static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(), unknown)) >=
        kUngreetedMax) {
      close_lane(**std::find_if(lanes_.begin(), lanes_.end(), unknown));
    }
    auto link = SecureLink::accept(*context_, fd, timeout);
    if (!link) continue;
    auto lane = std::make_unique<Lane>();
    lane->link = std::move(link).value();
    add_lane(std::move(lane));
  }
}

void TcpFabric::dial(ReplicaId id, Plane plane) noexcept {
  Peer& p = peer(id);
  if (p.lanes[kLogLane] == nullptr && p.lanes[kBackLane] == nullptr) {
    p.session = tcp::random_word();
    p.incarnation = 0;
  }
  p.dial_at_ns[static_cast<std::size_t>(plane)] =
      now_ns_ + (kBackoffMinNs << std::min(p.tries, kBackoffPowerMax));
  const LinkName name{options_.self, id, static_cast<std::uint8_t>(plane)};
  auto link = SecureLink::dial(*context_, name, p.address,
                               static_cast<unsigned>(2 * options_.silence_ns / kMs));
  if (!link) {
    ++p.tries;
    return;
  }
  auto lane = std::make_unique<Lane>();
  lane->link = std::move(link).value();
  lane->plane = plane;
  lane->peer = value(id);
  lane->dialled = true;
  lane->more = true;  // it may have connected at once
  add_lane(std::move(lane));
}

// Takes in what the socket of `lane` has.
void TcpFabric::pump(Lane& lane) noexcept {
  SecureLink& link = *lane.link;
  lane.more = false;
  if (link.progress() == SecureLink::State::kOpen) {
    if (lane.dialled && !lane.hello_sent) send_hello(lane);
    if (!lane.dialled && lane.peer == kNobody) name_lane(lane);
    if (!lane.dead) {
      lane.more = link.fill(kReadBudget);
      take_frames(lane);
    }
  }
  if (!lane.dead && link.state() == SecureLink::State::kFailed) lane_failed(lane);
  if (!lane.dead && link.wants_write() != lane.wants_write) {
    lane.wants_write = link.wants_write();
    epoll_event want{};
    want.events = EPOLLIN | (lane.wants_write ? EPOLLOUT : 0U);
    want.data.ptr = &lane;
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, link.fd(), &want);
  }
}

// The handshake is over: the link's name is true (LINK-S1), but it must be one that we would
// accept.
void TcpFabric::name_lane(Lane& lane) noexcept {
  const LinkName& name = lane.link->name();
  if (name.plane == kVisitPlane && options_.take_visitor) {
    lane.dead = true;
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, lane.link->fd(), nullptr);
    const ReplicaId from = name.from;
    options_.take_visitor(from, std::move(lane.link));
    forget_lane(lane);
    return;
  }
  if (value(name.from) >= value(options_.self) || name.plane >= tcp::kPlanes) {
    complain(lane, "it is not a replica of this group");
    close_lane(lane);
    return;
  }
  lane.peer = value(name.from);
  lane.plane = static_cast<Plane>(name.plane);
}

void TcpFabric::take_frames(Lane& lane) noexcept {
  const ReplicaId id{lane.peer};
  Frame frame;
  while (!lane.dead) {
    // What comes before the pair is complete waits for kPeerUp.
    if (lane.greeted && !peer(id).up) return;
    const Decoded found = decode(lane.link->in(), lane.plane, options_.log_bytes, frame);
    if (found == Decoded::kMore) break;
    bool good = found == Decoded::kFrame;
    if (good && lane.greeted) {
      good = on_frame(peer(id), id, lane.plane, frame);
    } else if (good) {
      good = frame.head.kind == FrameKind::kHello && greet(lane, frame);
    }
    if (lane.dead) return;
    if (!good) {
      complain(lane, "it does not speak this version's protocol");
      lane_failed(lane);
      return;
    }
    lane.link->consume(frame.bytes);
    peer(id).heard_ns = now_ns_;
    peer(id).quiet.heard(now_ns_);
  }
}

void TcpFabric::flush_all() noexcept {
  for (Peer& p : peers_) put_ack(p);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    if (lane.dead) continue;
    flush(lane);
    if (lane.link->wants_write() != lane.wants_write) {
      lane.wants_write = lane.link->wants_write();
      epoll_event want{};
      want.events = EPOLLIN | (lane.wants_write ? EPOLLOUT : 0U);
      want.data.ptr = &lane;
      ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, lane.link->fd(), &want);
    }
  }
}

// --- peers --------------------------------------------------------------------------------------

void TcpFabric::send_hello(Lane& lane) noexcept {
  lane.hello_sent = true;
  const Hello hello{tcp::kHelloMagic,   tcp::kTcpVersion, options_.replicas,        options_.group,
                    options_.log_bytes, incarnation_,     peers_[lane.peer].session};
  tcp::encode(lane.link->out(), {0, FrameKind::kHello, 0, 0, 0},
              std::as_bytes(std::span(&hello, 1)));
  lane.link->flush();
}

// False: it breaks the rules.
bool TcpFabric::greet(Lane& lane, const Frame& frame) noexcept {
  Hello hello;
  std::memcpy(&hello, frame.body.data(), sizeof hello);
  if (hello.magic != tcp::kHelloMagic || hello.version != tcp::kTcpVersion ||
      hello.replicas != options_.replicas || hello.group != options_.group ||
      hello.log_bytes != options_.log_bytes || hello.incarnation == 0) {
    complain(lane, "it is of another group or version; start all replicas with the same options");
    lane_failed(lane);
    return true;
  }
  const ReplicaId id{lane.peer};
  Peer& p = peer(id);
  if (!lane.dialled) {
    adopt_accepted(lane, hello);
  } else {
    if (hello.session != p.session) return false;
    if (p.incarnation != 0 && p.incarnation != hello.incarnation) {
      peer_down(id);
      return true;  // this lane is closed too
    }
    p.incarnation = hello.incarnation;
    if (lane.plane == Plane::kBackground) {
      p.dial_at_ns[kLogLane] = due_ns_ = now_ns_;
      p.tries = 0;
    }
  }
  lane.greeted = true;
  if (lane.plane == Plane::kBackground) lane.link->limit_unsent(kBackgroundUnsent);
  if (p.up && lane.plane == Plane::kLog) {
    auto& out = lane.link->out();
    out.insert(out.end(), p.early.begin(), p.early.end());
    p.early.clear();
  }
  const bool both = p.lanes[kLogLane] != nullptr && p.lanes[kLogLane]->greeted &&
                    p.lanes[kBackLane] != nullptr && p.lanes[kBackLane]->greeted;
  if (both && !p.up) peer_up(id);
  return true;
}

// The dialler begins a session whenever it begins anew: what is left of an older one, or of an
// older process, is dropped unread.
void TcpFabric::adopt_accepted(Lane& lane, const Hello& hello) noexcept {
  const ReplicaId id{lane.peer};
  Peer& p = peer(id);
  Lane*& place = p.lanes[static_cast<std::size_t>(lane.plane)];
  if (hello.session != p.session || hello.incarnation != p.incarnation ||
      (lane.plane == Plane::kBackground && place != nullptr)) {
    peer_down(id);
  } else if (place != nullptr) {
    break_log(id);
  }
  p.session = hello.session;
  p.incarnation = hello.incarnation;
  place = &lane;
  send_hello(lane);
}

void TcpFabric::peer_up(ReplicaId id) noexcept {
  Peer& p = peer(id);
  p.up = true;
  p.tries = 0;
  p.complaint = nullptr;
  p.heard_ns = p.sent_ns = now_ns_;
  for (Lane* const lane : p.lanes) lane->more = true;
  for (AnswerClock& clock : p.clocks) clock.forget();
  p.quiet.forget();
  tell({FabricEvent::Kind::kPeerUp, id, true, {}, {}});
}

// Everything between the two is over: what is outstanding fails, both links are closed.
void TcpFabric::peer_down(ReplicaId id) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  for (Op& op : p.ops) settle(p, op, false);
  for (Lane* const lane : p.lanes) {
    if (lane != nullptr) close_lane(*lane);
  }
  p.early.clear();
  p.jobs.clear();
  p.ack_due = false;
  p.requests = 0;
  p.incarnation = 0;
  p.session = 0;
  if (!p.up) return;
  p.up = false;
  ++links_lost_;
  tell({FabricEvent::Kind::kPeerDown, id, true, {}, {}});
}

// The log plane alone is lost or given up.
void TcpFabric::break_log(ReplicaId id) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  p.clocks[kLogLane].forget();
  p.early.clear();
  p.ack_due = false;
  if (p.lanes[kLogLane] != nullptr) close_lane(*p.lanes[kLogLane]);
}

void TcpFabric::lane_failed(Lane& lane) noexcept {
  using Failure = SecureLink::Failure;
  const Failure why = lane.link->failure();
  if (why == Failure::kSecret) {
    complain(lane, "it does not hold this group's secret; give all replicas the same one");
  } else if (why == Failure::kStranger) {
    complain(lane, "it is not a replica of this group");
  }
  if (lane.peer == kNobody ||
      peers_[lane.peer].lanes[static_cast<std::size_t>(lane.plane)] != &lane) {
    close_lane(lane);
    return;
  }
  const ReplicaId id{lane.peer};
  Peer& p = peer(id);
  ++p.tries;
  if (why == Failure::kUnreachable && p.tries == kComplainAfterTries) complain(lane, kUnreachable);
  if (p.up && lane.plane == Plane::kBackground) {
    peer_down(id);
  } else if (p.up) {
    break_log(id);
  } else {
    close_lane(lane);
  }
}

void TcpFabric::close_lane(Lane& lane) noexcept {
  if (lane.dead) return;
  lane.dead = true;
  // Explicitly: a forked child may hold a copy of the descriptor, which would keep it in the set.
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, lane.link->fd(), nullptr);
  ::shutdown(lane.link->fd(), SHUT_RDWR);
  if (lane.peer != kNobody) {
    Peer& p = peers_[lane.peer];
    const auto plane = static_cast<std::size_t>(lane.plane);
    if (p.lanes[plane] == &lane) {
      p.lanes[plane] = nullptr;
      p.dial_at_ns[plane] = now_ns_ + (kBackoffMinNs << std::min(p.tries, kBackoffPowerMax));
      due_ns_ = std::min(due_ns_, p.dial_at_ns[plane]);
    }
  }
  forget_lane(lane);
}

void TcpFabric::forget_lane(Lane& lane) noexcept {
  const auto at =
      std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& l) { return l.get() == &lane; });
  if (at == lanes_.end()) return;
  graveyard_.push_back(std::move(*at));
  lanes_.erase(at);
}

void TcpFabric::complain(const Lane& lane, const char* why) noexcept {
  if (lane.peer != kNobody) {
    Peer& p = peers_[lane.peer];
    if (p.complaint == why) return;
    p.complaint = why;
    Message() << "replica not connected: r" << static_cast<unsigned>(lane.peer) << " at "
              << (lane.dialled ? to_text(p.address) : lane.link->peer_address()).c_str() << ": "
              << why;
    return;
  }
  if (stranger_told_ns_ != 0 && now_ns_ - stranger_told_ns_ < kStrangersEveryNs) return;
  stranger_told_ns_ = now_ns_;
  Message() << "connection refused: from " << lane.link->peer_address().c_str() << ": " << why;
}

// --- time ---------------------------------------------------------------------------------------

void TcpFabric::housekeeping() noexcept {
  const std::uint64_t period = options_.silence_ns / 4;
  // Whoever was away itself cannot say that others were silent.
  const bool was_away = kept_ns_ != 0 && now_ns_ - kept_ns_ > 2 * period;
  kept_ns_ = now_ns_;
  due_ns_ = now_ns_ + period;
  note_losses();
  for (std::size_t i = 0; i < lanes_.size();) {
    Lane& lane = *lanes_[i];
    if (was_away) lane.deadline_ns = now_ns_ + options_.silence_ns;
    const bool complete = lane.greeted && peers_[lane.peer].up;
    if (complete || now_ns_ < lane.deadline_ns) {
      ++i;
      continue;
    }
    if (lane.dialled && ++peers_[lane.peer].tries == kComplainAfterTries) {
      complain(lane, kUnreachable);
    }
    close_lane(lane);
  }
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} == options_.self) continue;
    if (was_away) peers_[i].heard_ns = peers_[i].log_heard_ns = now_ns_;
    look_after(ReplicaId{i});
  }
}

void TcpFabric::look_after(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (p.up) {
    if (now_ns_ - p.heard_ns > options_.silence_ns) {
      peer_down(id);
    } else if (now_ns_ - p.sent_ns >= options_.silence_ns / 4) {
      put(p, Plane::kBackground, {0, FrameKind::kPing, tcp::kAlive, 0, 0});
    }
    if (p.log_pending > 0 && now_ns_ - p.log_heard_ns > 2 * options_.silence_ns) break_log(id);
  }
  if (value(id) < value(options_.self)) return;  // it dials
  for (const Plane plane : {Plane::kBackground, Plane::kLog}) {
    const auto at = static_cast<std::size_t>(plane);
    if (p.lanes[at] != nullptr) continue;
    // The background plane first: it finds out whether anybody is there.
    if (plane == Plane::kLog && (p.lanes[kBackLane] == nullptr || !p.lanes[kBackLane]->greeted)) {
      continue;
    }
    if (now_ns_ >= p.dial_at_ns[at]) {
      dial(id, plane);
    }
    due_ns_ = std::min(due_ns_, std::max(p.dial_at_ns[at], now_ns_ + kMs));
  }
}

// Only earlier times are set anew: most answers come long before a probe would be due.
void TcpFabric::arm_timer() noexcept {
  const std::uint64_t due = std::min({due_ns_, probe_due_ns(), quiet_due_ns()});
  if (armed_ns_ != 0 && armed_ns_ <= due) return;
  armed_ns_ = std::max<std::uint64_t>(due, 1);
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(armed_ns_ / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(armed_ns_ % 1'000'000'000);
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

bool TcpFabric::prepare_to_sleep() noexcept {
  flush_all();
  if (next_waiting_ < waiting_.size() || ops_ready_) return false;
  for (const auto& lane : lanes_) {
    if (lane->more || lane->link->state() == SecureLink::State::kFailed) return false;
  }
  for (const Peer& p : peers_) {
    if (p.landed) return false;
    const Lane* const lane = p.lanes[kBackLane];
    if (!p.jobs.empty() && lane != nullptr && !lane->wants_write) return false;
  }
  if (options_.replicas > 1) arm_timer();  // what arrives makes the sockets readable
  return true;
}

void TcpFabric::wake_self() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t sent = ::write(wake_fd_, &one, sizeof one);
}

}  // namespace crane::consensus
