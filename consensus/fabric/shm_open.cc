// SPDX-License-Identifier: Apache-2.0
// ShmFabric: creates and opens segments; attaches and detaches peers.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "consensus/fabric/process.h"
#include "consensus/fabric/shm.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using shm::Control;
using shm::Region;
using shm::WriteQueueOwner;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kBellTag = 0xffffffff;
constexpr std::uint64_t kRoomSlack = 16ULL << 20;

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) noexcept {
  return (n + to - 1) / to * to;
}

FileFormat format_of(const ShmOptions& o) noexcept {
  return {shm::kControlMagic,
          shm::kShmLayoutVersion,
          shm::control_bytes(o.replicas),
          kRoomSlack,
          0,
          "bell"};
}

}  // namespace

ShmFabric::ShmFabric(const ShmOptions& options) : options_(options), peers_(options.replicas) {
  if (options_.write_queue_bytes == 0) {
    // Records are up to a third larger than the smallest entries they carry.
    options_.write_queue_bytes = options_.log_bytes + options_.log_bytes / 2 + (8U << 20);
  }
  options_.write_queue_bytes = round_up(options_.write_queue_bytes, shm::kWriteQueueData);
  waiting_.reserve(4096);
}

ShmFabric::~ShmFabric() {
  for (Peer& p : peers_) {
    close_fd(p.pidfd);
    close_fd(p.bell);
  }
  for (const WriteQueueOwner& l : spares_) {
    ::unlink(shm::write_queue_path(own_dir_, l.key()).c_str());
  }
  for (const WriteQueueOwner& l : retired_) {
    ::unlink(shm::write_queue_path(own_dir_, l.key()).c_str());
  }
  close_fd(bell_fd_);
}

// --- opening ------------------------------------------------------------------------------------

Result<std::unique_ptr<ShmFabric>> ShmFabric::open(const ShmOptions& options) {
  if (!options.valid()) return Error{Code::kBadArgument, 0, "fabric options"};
  std::unique_ptr<ShmFabric> out(new ShmFabric(options));
  if (const Outcome opened = out->open_own(); !opened) return opened.error();
  if (const Outcome outcome = out->announce(); !outcome) return outcome.error();
  return out;
}

Outcome ShmFabric::open_own() {
  if (const Outcome opened = open_files(options_, format_of(options_)); !opened) return opened;
  Control* const c = own();
  if (!survived_) {
    c->write_queue_bytes = options_.write_queue_bytes;
    c->next_key.store(first_key());
  }
  if (const Outcome resumed = resume_grants(); !resumed) return resumed;
  if (options_.replicas <= shm::kLifeWatchedMax) {
    if (const Outcome held = life_.hold(own_dir_, options_.replicas); !held) return held;
  }
  for (auto& hello : c->hello) hello.store(0);
  // Requests to the previous process are dropped: it may have been another member with this number.
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    shm::Mailbox* const box = mailbox(control_, ReplicaId{i});
    box->head.store(box->tail.load());
  }
  c->sleeping.store(0);
  c->pid_start.store(process_start(::getpid()));
  c->pid.store(static_cast<std::uint32_t>(::getpid()));
  c->incarnation.store(random_word());
  tidy();
  return spares_.empty() ? add_spare() : Outcome{Done{}};
}

Outcome ShmFabric::resume_grants() {
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    auto& live = own()->live_key[i];
    if (live.load() == 0) continue;
    auto grant = WriteQueueOwner::open(own_dir_, Key{live.load()});
    if (!grant) {
      live.store(0);
      continue;
    }
    peers_[i].grant = std::move(grant).value();
    const bool whole = peers_[i].grant->take_in(log_memory());
    if (!whole || !peers_[i].grant->live()) revoke_writes(ReplicaId{i});
  }
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(own_dir_, ignored)) {
    const std::string name = file.path().filename();
    if (!name.starts_with("write_queue-")) continue;
    const bool used = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& p) {
      return p.grant && shm::write_queue_path(own_dir_, p.grant->key()) == file.path();
    });
    if (!used) fs::remove(file.path(), ignored);
  }
  return Done{};
}

Outcome ShmFabric::announce() {
  bell_fd_ = ::open((own_dir_ + "/bell").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (bell_fd_ < 0) return system_error("open the doorbell");
  if (const Outcome added = watch(bell_fd_, {.u32 = kBellTag}); !added) return added;
  if (const Outcome out = publish(format_of(options_)); !out) return out;
  // Each replica publishes itself before it looks for the others. So of two that start together, at
  // least one sees the other, and writes to the other's `hello`.
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    if (ReplicaId{i} != options_.self) attach(ReplicaId{i});
  }
  return Done{};
}

// --- peers --------------------------------------------------------------------------------------

bool ShmFabric::attach(ReplicaId id) {
  const std::string dir = options_.directory_of(id);
  auto control = Region::open(dir + "/control", Region::Access::kReadWrite,
                              shm::control_bytes(options_.replicas));
  if (!control) return false;
  const auto* c = control.value().as<Control>();
  Peer& p = peer(id);
  const std::uint64_t incarnation = c->incarnation.load(std::memory_order_acquire);
  p.refused = incarnation;
  if (!format_of(options_).fits(c->head, options_)) {
    Message()
        << "replica refused: r" << static_cast<unsigned>(value(id))
        << ": its segment belongs to another group or version; start it with the same options";
    return false;
  }
  auto log = Region::open(dir + "/log", Region::Access::kRead, options_.log_bytes);
  if (!log) return false;
  if (p.incarnation != 0) detach(id);
  if (!attach_process(p, id, static_cast<pid_t>(c->pid.load()), c->pid_start.load())) return false;
  p.control = std::move(control).value();
  p.log = std::move(log).value();
  p.incarnation = incarnation;
  p.refused = 0;
  p.failed_key = kNoKey;
  p.header()->hello[value(options_.self)].store(own()->incarnation.load(),
                                                std::memory_order_release);
  p.dirty = true;
  ring_doorbell(id);
  waiting_.push_back({FabricEvent::Kind::kPeerUp, id, true, {}, {}});
  return true;
}

bool ShmFabric::attach_process(Peer& p, ReplicaId id, pid_t pid, std::uint64_t pid_start) {
  p.pidfd = open_pidfd(pid);
  // Another process may have got the number before the descriptor was opened, but not after.
  if (p.pidfd < 0 || process_start(pid) != pid_start || !watch(p.pidfd, {.u32 = value(id)}).ok()) {
    close_fd(p.pidfd);
    return false;
  }
  p.bell = ::open((options_.directory_of(id) + "/bell").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (p.bell < 0) {
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, p.pidfd, nullptr);
    close_fd(p.pidfd);
    return false;
  }
  // Only a hint: without it the pidfd reports the death.
  if (options_.replicas <= shm::kLifeWatchedMax &&
      p.life.start(options_.directory_of(id), options_.replicas, options_.self, options_.urgency)
          .ok()) {
    static_cast<void>(watch(p.life.fd(), {.u32 = value(id)}).ok());
  }
  return true;
}

void ShmFabric::detach(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (p.incarnation == 0) return;
  // Remove explicitly: a forked child may hold a copy of the descriptor, which would keep it in the
  // set.
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, p.pidfd, nullptr);
  if (p.life.fd() >= 0) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, p.life.fd(), nullptr);
  p.life.stop();
  close_fd(p.pidfd);
  close_fd(p.bell);
  p.writer.reset();
  p.refused = p.incarnation;
  p.incarnation = 0;
  p.dirty = false;
  waiting_.push_back({FabricEvent::Kind::kPeerDown, id, true, {}, {}});
}

void ShmFabric::look_for_peers() {
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    const Peer& p = peers_[i];
    const std::uint64_t hello = own()->hello[i].load(std::memory_order_acquire);
    if (hello == 0 || hello == p.incarnation || hello == p.refused) continue;
    if (!attach(ReplicaId{i}) && p.refused != hello) {
      own()->hello[i].store(0);  // it ended meanwhile; its next incarnation writes `hello` again
    }
  }
}

void ShmFabric::take_system_events() {
  epoll_event events[16];
  const int n = ::epoll_wait(epoll_fd_, events, 16, 0);
  for (int i = 0; i < n; ++i) {
    const std::uint32_t tag = events[i].data.u32;
    if (tag == kBellTag) {
      char bytes[64];
      while (::read(bell_fd_, bytes, sizeof bytes) == sizeof bytes) {
      }
    } else {
      detach(ReplicaId{static_cast<std::uint8_t>(tag)});
    }
  }
}

PeerProcess ShmFabric::process_of(ReplicaId peer) const noexcept {
  const Peer& p = peers_[value(peer)];
  if (p.incarnation == 0) return PeerProcess::kUnknown;
  const ProcessStat found = process_stat(static_cast<pid_t>(p.header()->pid.load()));
  if (found.stopped()) return PeerProcess::kStopped;
  return found.state == 'R' || found.state == 'D' ? PeerProcess::kStarved : PeerProcess::kUnknown;
}

}  // namespace crane::consensus
