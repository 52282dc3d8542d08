// SPDX-License-Identifier: Apache-2.0
// TcpFabric: opens the fabric and its links; connects and disconnects peers.
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "consensus/fabric/tcp.h"
#include "dmt/base/accept_error.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using tcp::Decoded;
using tcp::Frame;
using tcp::FrameKind;
using tcp::Hello;
using tcp::Plane;

namespace {

constexpr std::uint64_t kRoomSlack = 1ULL << 20;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kBackoffMinNs = 10 * kMs;
constexpr unsigned kBackoffPowerMax = 5;  // 320 ms
constexpr std::uint64_t kForeignReportNs = 10'000 * kMs;
constexpr unsigned kComplainAfterTries = 8;
constexpr std::size_t kUngreetedMax = 64;
constexpr std::size_t kReadBudget = 1U << 20;
constexpr unsigned kBackgroundUnsent = 64U << 10;
constexpr std::size_t kEventsPerWait = 64;
constexpr const char* kUnreachable =
    "it cannot be reached; check that its node runs and that its address is right";
constexpr std::size_t kLogConnection = static_cast<std::size_t>(Plane::kLog);
constexpr std::size_t kBackConnection = static_cast<std::size_t>(Plane::kBackground);

}  // namespace

// --- opening ------------------------------------------------------------------------------------

TcpFabric::TcpFabric(const TcpOptions& options) : options_(options), peers_(options.replicas) {
  if (options_.backlog_bytes == 0) {
    // The most that a peer can lag and still catch up from the log memory.
    options_.backlog_bytes = options_.log_bytes + options_.log_bytes / 2 + (8U << 20);
  }
}

TcpFabric::~TcpFabric() {
  for (const auto& connection : connections_) {
    if (!connection->dead) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection->link->fd(), nullptr);
  }
  // Ends the copies in forked children, too.
  if (listen_fd_ >= 0) ::shutdown(listen_fd_, SHUT_RDWR);
  close_fd(listen_fd_);
  close_fd(timer_fd_);
  close_fd(wake_fd_);
}

Result<std::unique_ptr<TcpFabric>> TcpFabric::open(const TcpOptions& options) {
  if (!options.valid() || options.log_bytes > (1ULL << 31)) {
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

Outcome TcpFabric::start() {
  const FileFormat format{tcp::kTcpControlMagic, tcp::kTcpMemoryVersion, sizeof(tcp::Control),
                          kRoomSlack};
  if (const Outcome opened = open_files(options_, format); !opened) return opened;
  if (!survived_) own()->next_key = first_key();
  if (const Outcome published = publish(format); !published) return published;
  auto context = LinkContext::create(options_.secret, options_.self, options_.replicas);
  if (!context) return context.error();
  context_ = std::move(context).value();
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    auto address = resolve(options_.endpoints[i].address, options_.endpoints[i].port);
    if (!address) return address.error();
    peers_[i].address = address.value();
  }
  auto listener = listen_on(peer(options_.self).address);
  if (!listener) return listener.error();
  listen_fd_ = listener.value();
  timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (timer_fd_ < 0 || wake_fd_ < 0) return system_error("make a timer");
  for (int* const fd : {&listen_fd_, &timer_fd_, &wake_fd_}) {
    if (const Outcome added = watch(*fd, {.ptr = fd}); !added) return added;
  }
  return Done{};
}

// --- sockets ------------------------------------------------------------------------------------

// True when there were events, and none are left.
bool TcpFabric::take_socket_events() noexcept {
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
      if (tag == &timer_fd_) timer_.fired();
    } else if (Connection* const connection = static_cast<Connection*>(tag); !connection->dead) {
      pump(*connection);
    }
  }
  return n > 0 && n < static_cast<int>(kEventsPerWait);
}

void TcpFabric::add_connection(std::unique_ptr<Connection> connection) noexcept {
  connection->deadline_ns = now_ns_ + options_.silence_ns;
  if (!watch(connection->link->fd(), {.ptr = connection.get()}).ok()) {
    connection->dead = true;
    graveyard_.push_back(std::move(connection));
    return;
  }
  if (connection->dialled)
    peers_[connection->peer].connections[static_cast<std::size_t>(connection->plane)] =
        connection.get();
  connections_.push_back(std::move(connection));
}

void TcpFabric::accept_links() noexcept {
  const auto timeout = static_cast<unsigned>(2 * options_.silence_ns / kMs);
  for (;;) {
    const int fd = ::accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      const AcceptError kind = classify_accept_error(errno);
      if (kind == AcceptError::kOneClient) continue;
      if (kind == AcceptError::kHost) pause_listening();
      return;
    }
    pause_reported_ = false;
    const auto unknown = [](const std::unique_ptr<Connection>& l) {
      return l->peer == kUnknownPeer;
    };
    // A connection that sends nothing is closed when a newer one needs its place.
    if (static_cast<std::size_t>(
            std::count_if(connections_.begin(), connections_.end(), unknown)) >= kUngreetedMax) {
      close_connection(**std::find_if(connections_.begin(), connections_.end(), unknown));
    }
    auto link = SecureLink::accept(*context_, fd, timeout);
    if (!link) continue;
    auto connection = std::make_unique<Connection>();
    connection->link = std::move(link).value();
    add_connection(std::move(connection));
  }
}

// Called when descriptors ran out: the listener would wake the loop again and again.
void TcpFabric::pause_listening() noexcept {
  if (!std::exchange(pause_reported_, true)) {
    Message() << "cannot accept connections from other replicas: " << std::strerror(errno)
              << "; they wait";
  }
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, listen_fd_, nullptr);
  listen_again_ns_ = now_ns_ + kAcceptAgainMs * kMs;
  due_ns_ = std::min(due_ns_, listen_again_ns_);
}

void TcpFabric::listen_again() noexcept {
  if (listen_again_ns_ == 0) return;
  if (now_ns_ >= listen_again_ns_) {
    const bool listens = watch(listen_fd_, {.ptr = &listen_fd_}).ok();
    listen_again_ns_ = listens ? 0 : now_ns_ + kAcceptAgainMs * kMs;
  }
  if (listen_again_ns_ != 0) due_ns_ = std::min(due_ns_, listen_again_ns_);
}

void TcpFabric::dial(ReplicaId id, Plane plane) noexcept {
  Peer& p = peer(id);
  if (p.connections[kLogConnection] == nullptr && p.connections[kBackConnection] == nullptr) {
    p.session = random_word();
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
  auto connection = std::make_unique<Connection>();
  connection->link = std::move(link).value();
  connection->plane = plane;
  connection->peer = value(id);
  connection->dialled = true;
  connection->more = true;  // the link may have connected at once
  add_connection(std::move(connection));
}

// Processes the bytes of `connection`'s socket.
void TcpFabric::pump(Connection& connection) noexcept {
  SecureLink& link = *connection.link;
  connection.more = false;
  if (link.progress() == SecureLink::State::kOpen) {
    if (connection.dialled && !connection.hello_sent) send_hello(connection);
    if (!connection.dialled && connection.peer == kUnknownPeer) name_connection(connection);
    if (!connection.dead) {
      connection.more = link.fill(kReadBudget);
      take_frames(connection);
    }
  }
  if (!connection.dead && link.state() == SecureLink::State::kFailed) connection_failed(connection);
  if (!connection.dead) watch_writes(connection);
}

void TcpFabric::watch_writes(Connection& connection) noexcept {
  const SecureLink& link = *connection.link;
  if (link.wants_write() == connection.wants_write) return;
  connection.wants_write = link.wants_write();
  epoll_event want{};
  want.events = EPOLLIN | (connection.wants_write ? EPOLLOUT : 0U);
  want.data.ptr = &connection;
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, link.fd(), &want);
}

// The handshake is over and the link's name is verified (LINK-S1), but this replica must also
// accept that name.
void TcpFabric::name_connection(Connection& connection) noexcept {
  const LinkName& name = connection.link->name();
  if (is_visit(name) && options_.take_visitor) {
    connection.dead = true;
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection.link->fd(), nullptr);
    const ReplicaId from = name.from;
    options_.take_visitor(from, std::move(connection.link));
    forget_connection(connection);
    return;
  }
  if (value(name.from) >= value(options_.self) || name.plane >= tcp::kPlanes) {
    complain(connection, "it is not a replica of this group");
    close_connection(connection);
    return;
  }
  connection.peer = value(name.from);
  connection.plane = static_cast<Plane>(name.plane);
}

void TcpFabric::take_frames(Connection& connection) noexcept {
  const ReplicaId id{connection.peer};
  Frame frame;
  while (!connection.dead) {
    // Frames that come before both links are up wait for kPeerUp.
    if (connection.greeted && !peer(id).up) return;
    const Decoded found =
        decode(connection.link->in(), connection.plane, options_.log_bytes, frame);
    if (found == Decoded::kMore) break;
    bool good = found == Decoded::kFrame;
    if (good && connection.greeted) {
      good = on_frame(peer(id), id, connection.plane, frame);
    } else if (good) {
      good = frame.head.kind == FrameKind::kHello && greet(connection, frame);
    }
    if (connection.dead) return;
    if (!good) {
      complain(connection, "it does not speak this version's protocol");
      connection_failed(connection);
      return;
    }
    connection.link->consume(frame.bytes);
    peer(id).last_received_ns = now_ns_;
    peer(id).quiet.on_receive(now_ns_, !tcp::is_probe(frame.head));
  }
}

void TcpFabric::flush_all() noexcept {
  for (Peer& p : peers_) put_ack(p);
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = *connections_[i];
    if (connection.dead) continue;
    flush(connection);
    watch_writes(connection);
  }
}

// --- peers --------------------------------------------------------------------------------------

void TcpFabric::send_hello(Connection& connection) noexcept {
  connection.hello_sent = true;
  const Hello hello{tcp::kHelloMagic,
                    tcp::kTcpVersion,
                    options_.replicas,
                    options_.group,
                    options_.log_bytes,
                    incarnation_,
                    peers_[connection.peer].session};
  tcp::encode(connection.link->out(), {0, FrameKind::kHello, 0, 0, 0},
              std::as_bytes(std::span(&hello, 1)));
  connection.link->flush();
}

// False: the hello breaks the protocol.
bool TcpFabric::greet(Connection& connection, const Frame& frame) noexcept {
  Hello hello;
  std::memcpy(&hello, frame.body.data(), sizeof hello);
  if (hello.magic != tcp::kHelloMagic || hello.version != tcp::kTcpVersion ||
      hello.replicas != options_.replicas || hello.group != options_.group ||
      hello.log_bytes != options_.log_bytes || hello.incarnation == 0) {
    complain(connection,
             "it belongs to another group or version; start all replicas with the same options");
    connection_failed(connection);
    return true;
  }
  const ReplicaId id{connection.peer};
  Peer& p = peer(id);
  if (!connection.dialled) {
    adopt_accepted(connection, hello);
  } else {
    if (hello.session != p.session) return false;
    if (p.incarnation != 0 && p.incarnation != hello.incarnation) {
      peer_down(id);
      return true;  // peer_down() closed this connection, too
    }
    p.incarnation = hello.incarnation;
    if (connection.plane == Plane::kBackground) {
      p.dial_at_ns[kLogConnection] = due_ns_ = now_ns_;
      p.tries = 0;
    }
  }
  connection.greeted = true;
  if (connection.plane == Plane::kBackground) connection.link->limit_unsent(kBackgroundUnsent);
  if (p.up && connection.plane == Plane::kLog) {
    auto& out = connection.link->out();
    out.insert(out.end(), p.early.begin(), p.early.end());
    p.early.clear();
  }
  const bool both =
      p.connections[kLogConnection] != nullptr && p.connections[kLogConnection]->greeted &&
      p.connections[kBackConnection] != nullptr && p.connections[kBackConnection]->greeted;
  if (both && !p.up) peer_up(id);
  return true;
}

// The dialler begins a new session whenever it starts over.  The rest of an older session, or of an
// older process, is dropped unread.
void TcpFabric::adopt_accepted(Connection& connection, const Hello& hello) noexcept {
  const ReplicaId id{connection.peer};
  Peer& p = peer(id);
  Connection*& place = p.connections[static_cast<std::size_t>(connection.plane)];
  if (hello.session != p.session || hello.incarnation != p.incarnation ||
      (connection.plane == Plane::kBackground && place != nullptr)) {
    peer_down(id);
  } else if (place != nullptr) {
    break_log(id);
  }
  p.session = hello.session;
  p.incarnation = hello.incarnation;
  place = &connection;
  send_hello(connection);
}

void TcpFabric::peer_up(ReplicaId id) noexcept {
  Peer& p = peer(id);
  p.up = true;
  p.tries = 0;
  p.complaint = nullptr;
  p.last_received_ns = p.sent_ns = now_ns_;
  for (Connection* const connection : p.connections) connection->more = true;
  for (AnswerClock& clock : p.clocks) clock.forget();
  p.quiet.forget();
  report_event({FabricEvent::Kind::kPeerUp, id, true, {}, {}});
}

// Ends everything between the two replicas: outstanding operations fail, both links are closed.
void TcpFabric::peer_down(ReplicaId id) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  for (Op& op : p.ops) settle(p, op, false);
  for (Connection* const connection : p.connections) {
    if (connection != nullptr) close_connection(*connection);
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
  report_event({FabricEvent::Kind::kPeerDown, id, true, {}, {}});
}

// Only the log plane is lost or given up.
void TcpFabric::break_log(ReplicaId id) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  p.clocks[kLogConnection].forget();
  p.early.clear();
  p.ack_due = false;
  if (p.connections[kLogConnection] != nullptr) close_connection(*p.connections[kLogConnection]);
}

void TcpFabric::connection_failed(Connection& connection) noexcept {
  using Failure = SecureLink::Failure;
  const Failure why = connection.link->failure();
  if (why == Failure::kSecret) {
    complain(connection, "it does not hold this group's secret; give all replicas the same one");
  } else if (why == Failure::kNotMember) {
    complain(connection, "it is not a replica of this group");
  }
  if (connection.peer == kUnknownPeer ||
      peers_[connection.peer].connections[static_cast<std::size_t>(connection.plane)] !=
          &connection) {
    close_connection(connection);
    return;
  }
  const ReplicaId id{connection.peer};
  Peer& p = peer(id);
  ++p.tries;
  if (why == Failure::kUnreachable && p.tries == kComplainAfterTries)
    complain(connection, kUnreachable);
  if (p.up && connection.plane == Plane::kBackground) {
    peer_down(id);
  } else if (p.up) {
    break_log(id);
  } else {
    close_connection(connection);
  }
}

void TcpFabric::close_connection(Connection& connection) noexcept {
  if (connection.dead) return;
  connection.dead = true;
  // Remove explicitly: a forked child may hold a copy of the descriptor, which would keep it in the
  // set.
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, connection.link->fd(), nullptr);
  ::shutdown(connection.link->fd(), SHUT_RDWR);
  if (connection.peer != kUnknownPeer) {
    Peer& p = peers_[connection.peer];
    const auto plane = static_cast<std::size_t>(connection.plane);
    if (p.connections[plane] == &connection) {
      p.connections[plane] = nullptr;
      p.dial_at_ns[plane] = now_ns_ + (kBackoffMinNs << std::min(p.tries, kBackoffPowerMax));
      due_ns_ = std::min(due_ns_, p.dial_at_ns[plane]);
    }
  }
  forget_connection(connection);
}

void TcpFabric::forget_connection(Connection& connection) noexcept {
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [&](const auto& l) { return l.get() == &connection; });
  if (at == connections_.end()) return;
  graveyard_.push_back(std::move(*at));
  connections_.erase(at);
}

void TcpFabric::complain(const Connection& connection, const char* why) noexcept {
  if (connection.peer != kUnknownPeer) {
    Peer& p = peers_[connection.peer];
    if (p.complaint == why) return;
    p.complaint = why;
    Message() << "replica not connected: r" << static_cast<unsigned>(connection.peer) << " at "
              << (connection.dialled ? to_text(p.address) : connection.link->peer_address()).c_str()
              << ": " << why;
    return;
  }
  if (foreign_reported_ns_ != 0 && now_ns_ - foreign_reported_ns_ < kForeignReportNs) return;
  foreign_reported_ns_ = now_ns_;
  Message() << "connection refused: from " << connection.link->peer_address().c_str() << ": "
            << why;
}

// --- time ---------------------------------------------------------------------------------------

void TcpFabric::housekeeping() noexcept {
  const std::uint64_t period = options_.silence_ns / 4;
  // If this process did not run for a while, the peers' silence is no sign.
  const bool was_suspended = kept_ns_ != 0 && now_ns_ - kept_ns_ > 2 * period;
  kept_ns_ = now_ns_;
  due_ns_ = now_ns_ + period;
  listen_again();
  note_losses();
  for (std::size_t i = 0; i < connections_.size();) {
    Connection& connection = *connections_[i];
    if (was_suspended) connection.deadline_ns = now_ns_ + options_.silence_ns;
    const bool complete = connection.greeted && peers_[connection.peer].up;
    if (complete || now_ns_ < connection.deadline_ns) {
      ++i;
      continue;
    }
    if (connection.dialled && ++peers_[connection.peer].tries == kComplainAfterTries) {
      complain(connection, kUnreachable);
    }
    close_connection(connection);
  }
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} == options_.self) continue;
    if (was_suspended) peers_[i].last_received_ns = peers_[i].last_log_progress_ns = now_ns_;
    maintain_peer(ReplicaId{i});
  }
}

void TcpFabric::maintain_peer(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (p.up) {
    if (now_ns_ - p.last_received_ns > options_.silence_ns) {
      peer_down(id);
    } else if (now_ns_ - p.sent_ns >= options_.silence_ns / 4) {
      put(p, Plane::kBackground, {0, FrameKind::kPing, tcp::kAlive, 0, 0});
    }
    if (p.log_pending > 0 && now_ns_ - p.last_log_progress_ns > 2 * options_.silence_ns)
      break_log(id);
  }
  if (value(id) < value(options_.self)) return;  // the peer dials
  for (const Plane plane : {Plane::kBackground, Plane::kLog}) {
    const auto at = static_cast<std::size_t>(plane);
    if (p.connections[at] != nullptr) continue;
    // The background plane first: it finds out whether the peer runs.
    if (plane == Plane::kLog &&
        (p.connections[kBackConnection] == nullptr || !p.connections[kBackConnection]->greeted)) {
      continue;
    }
    if (now_ns_ >= p.dial_at_ns[at]) {
      dial(id, plane);
    }
    due_ns_ = std::min(due_ns_, std::max(p.dial_at_ns[at], now_ns_ + kMs));
  }
}

// Most answers come long before a probe would be due.
void TcpFabric::arm_timer() noexcept {
  if (!timer_.due(std::min({due_ns_, probe_due_ns(), quiet_due_ns()}), now_ns_)) return;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(timer_.set_ns() / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(timer_.set_ns() % 1'000'000'000);
  ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

bool TcpFabric::prepare_to_sleep() noexcept {
  drained_ = false;
  flush_all();
  if (next_waiting_ < waiting_.size() || ops_ready_) return false;
  for (const auto& connection : connections_) {
    if (connection->more || connection->link->state() == SecureLink::State::kFailed) return false;
  }
  for (const Peer& p : peers_) {
    if (p.landed) return false;
    const Connection* const connection = p.connections[kBackConnection];
    if (!p.jobs.empty() && connection != nullptr && !connection->wants_write) return false;
  }
  if (options_.replicas > 1) arm_timer();  // arriving bytes make the sockets readable
  return true;
}

void TcpFabric::wake_self() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t sent = ::write(wake_fd_, &one, sizeof one);
}

}  // namespace crane::consensus
