// SPDX-License-Identifier: Apache-2.0
// VerbsFabric: opens and closes its files and its device.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "consensus/fabric/huge_pages.h"
#include "consensus/fabric/process.h"
#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_fence.h"
#include "consensus/fabric/verbs_wire.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using shm::Region;
using verbs::Control;
using verbs::Credit;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kRoomSlack = 16ULL << 20;
constexpr std::uint32_t kInlineWanted = 512;
constexpr int kPredecessorMs = 10'000;
constexpr unsigned kSelfTestRounds = 50;

void close_fd(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

bool set_nonblocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

// A dying process frees the lock early.  Its registrations of this memory are gone only when it is
// dead (FABRIC-F2).
bool wait_for_end(pid_t pid, std::uint64_t start) noexcept {
  if (pid == 0 || pid == ::getpid()) return true;
  int fd = open_pidfd(pid);
  if (fd < 0 || process_start(pid) != start) {
    close_fd(fd);
    return true;
  }
  pollfd want{fd, POLLIN, 0};
  const bool gone = ::poll(&want, 1, kPredecessorMs) == 1;
  close_fd(fd);
  return gone;
}

}  // namespace

VerbsFabric::VerbsFabric(const VerbsOptions& options, std::unique_ptr<verbs::Bootstrap> bootstrap)
    : options_(options),
      own_dir_(options.directory + "/r" + std::to_string(value(options.self))),
      bootstrap_(std::move(bootstrap)),
      peers_(options.replicas) {}

VerbsFabric::~VerbsFabric() {
  bootstrap_.reset();  // peers notice the end at once
  peers_.clear();      // peers can no longer write; this comes before the lock is freed
  retired_own_.clear();
  retired_.clear();
  if (control_.mapped()) own()->pid.store(0);
  if (credits_ != nullptr) ::munmap(credits_, options_.replicas * sizeof(Credit));
  close_fd(epoll_fd_);
  close_fd(wake_fd_);
  close_fd(lock_fd_);  // now another process may run as this replica
}

VerbsFabric::Peer& VerbsFabric::peer(ReplicaId id) noexcept {
  CRANE_ASSERT(value(id) < peers_.size());
  return peers_[value(id)];
}

const VerbsFabric::Peer& VerbsFabric::peer(ReplicaId id) const noexcept {
  CRANE_ASSERT(value(id) < peers_.size());
  return peers_[value(id)];
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open(
    const VerbsOptions& options, std::unique_ptr<verbs::Bootstrap> bootstrap) {
  if (options.replicas < 1 || options.replicas > kReplicasMax ||
      value(options.self) >= options.replicas || options.log_bytes == 0 ||
      options.log_bytes % 64 != 0 || options.retry.retries > 6 || options.spares == 0 ||
      options.spares > VerbsOptions::kSparesMax || !bootstrap) {
    return Error{Code::kBadArgument, 0, "fabric options"};
  }
  std::unique_ptr<VerbsFabric> out(new VerbsFabric(options, std::move(bootstrap)));
  if (const Outcome opened = out->open_own(); !opened) return opened.error();
  if (const Outcome opened = out->open_device(); !opened) return opened.error();
  if (const Outcome chosen = out->check_fence(); !chosen) return chosen.error();
  return out;
}

// --- files --------------------------------------------------------------------------------------

Outcome VerbsFabric::open_own() {
  if (::mkdir(own_dir_.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error("make the replica's directory");
  }
  if (const Outcome locked = take_lock(); !locked) return locked;
  if (const Outcome reused = reuse_own(); reused.ok()) {
    survived_ = true;
  } else {
    if (const Outcome made = create_own(); !made) return made;
  }
  Control* const c = own();
  if (!wait_for_end(static_cast<pid_t>(c->pid.load()), c->pid_start.load())) {
    return Error{Code::kBusy, 0, "this replica's previous process has not ended"};
  }
  if (const Outcome chosen = choose_pages(); !chosen) return chosen;
  look_at_cells();
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    const Key live{c->live_key[i].load()};
    if (live != kNoKey) peers_[i].grant.emplace(Grant{live, std::nullopt});
  }
  c->pid_start.store(process_start(::getpid()));
  c->pid.store(static_cast<std::uint32_t>(::getpid()));
  void* const credits = ::mmap(nullptr, options_.replicas * sizeof(Credit), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (credits == MAP_FAILED) return system_error("map memory");
  credits_ = credits;
  return Done{};
}

Outcome VerbsFabric::take_lock() {
  lock_fd_ = ::open((own_dir_ + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return system_error("open the replica's lock");
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error{Code::kBusy, errno, "another process runs as this replica"};
  }
  return Done{};
}

Outcome VerbsFabric::reuse_own() {
  auto control = Region::open(own_dir_ + "/control", Region::Access::kReadWrite, sizeof(Control));
  if (!control) return control.error();
  const auto* c = control.value().as<Control>();
  if (c->magic != verbs::kControlMagic || c->version.load() != verbs::kVerbsVersion ||
      c->group != options_.group || c->replicas != options_.replicas ||
      c->log_bytes != options_.log_bytes) {
    return Error{Code::kWrongVersion, 0, "the control segment belongs to another group or version"};
  }
  auto log = Region::open(own_dir_ + "/log", Region::Access::kReadWrite, options_.log_bytes,
                          log_alignment());
  if (!log) return log.error();
  if (log.value().size() != options_.log_bytes) {
    return Error{Code::kDamaged, 0, "the log segment has the wrong size"};
  }
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  return Done{};
}

Outcome VerbsFabric::create_own() {
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(own_dir_, ignored)) {
    if (file.path().filename() != "lock") fs::remove(file.path(), ignored);
  }
  // Registration allocates all of the log or fails: no page is allocated later (ROOM-1).
  struct statvfs space {};
  if (::statvfs(own_dir_.c_str(), &space) == 0 &&
      space.f_bavail * space.f_frsize < options_.log_bytes + kRoomSlack) {
    return Error{Code::kFull, 0, "not enough room for the log memory: choose a smaller ring"};
  }
  auto log =
      Region::create(own_dir_ + "/log", options_.log_bytes, shm::Fill::kSparse, log_alignment());
  if (!log) return log.error();
  const std::string path = own_dir_ + "/control";
  auto control = Region::create(path + ".new", sizeof(Control), shm::Fill::kWhole);
  if (!control) return control.error();
  auto* c = control.value().as<Control>();
  c->magic = verbs::kControlMagic;
  c->replicas = options_.replicas;
  c->group = options_.group;
  c->log_bytes = options_.log_bytes;
  c->memory = verbs::random_word();
  c->next_key.store(verbs::random_word() >> 2);  // FABRIC-F6, also after this directory was lost
  c->version.store(verbs::kVerbsVersion, std::memory_order_release);
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) {
    return system_error("publish the control segment");
  }
  control_ = std::move(control).value();
  log_ = std::move(log).value();
  return Done{};
}

std::size_t VerbsFabric::log_alignment() const noexcept {
  return options_.huge_pages == HugePages::kNever ? 0 : huge_page_bytes();
}

// Called when the previous process has ended and nothing is registered yet: registered pages cannot
// move.
Outcome VerbsFabric::choose_pages() {
  pages_ = pages_text(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  if (options_.huge_pages == HugePages::kNever) return Done{};
  const Outcome moved = move_to_huge_pages(log_);
  if (moved.ok()) {
    pages_ = pages_text(huge_page_bytes());
    return Done{};
  }
  const bool required = options_.huge_pages == HugePages::kRequire;
  Message() << "log memory is not on huge pages: " << own_dir_.c_str()
            << "/log: " << moved.error().what
            << (required ? "; use huge_pages = \"auto\"" : "; small pages are used");
  if (!required) return Done{};
  return Error{Code::kUnsupported, moved.error().detail, "the log memory is not on huge pages"};
}

// --- device -------------------------------------------------------------------------------------

Outcome VerbsFabric::watch(int fd, std::uint32_t events) {
  epoll_event want{};
  want.events = events;
  want.data.fd = fd;
  if (::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &want) != 0) return system_error("epoll_ctl");
  return Done{};
}

Outcome VerbsFabric::open_device() {
  auto device = verbs::Device::open(options_.device, options_.address);
  if (!device) return device.error();
  device_ = std::move(device).value();
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  channel_.reset(ibv_create_comp_channel(device_.context()));
  if (epoll_fd_ < 0 || wake_fd_ < 0 || !channel_) return system_error("completion channel");
  if (!set_nonblocking(channel_->fd) || !set_nonblocking(device_.context()->async_fd)) {
    return system_error("completion channel");
  }
  for (const int fd :
       {wake_fd_, channel_->fd, device_.context()->async_fd, bootstrap_->event_fd()}) {
    if (const Outcome added = watch(fd, EPOLLIN); !added) return added;
  }
  auto domain = device_.domain();
  auto log_cq = device_.queue(verbs::kCompletions, channel_.get());
  auto background_cq = device_.queue(verbs::kCompletions, channel_.get());
  auto mail_cq = device_.queue(verbs::kCompletions, channel_.get());
  if (!domain) return domain.error();
  if (!log_cq) return log_cq.error();
  if (!background_cq) return background_cq.error();
  if (!mail_cq) return mail_cq.error();
  domain_ = std::move(domain).value();
  log_cq_ = std::move(log_cq).value();
  background_cq_ = std::move(background_cq).value();
  mail_cq_ = std::move(mail_cq).value();
  inline_bytes_ = device_.inline_bytes(kInlineWanted);
  log_region_.reset(ibv_reg_mr(domain_.get(), log_.data(), log_.size(), IBV_ACCESS_LOCAL_WRITE));
  if (!log_region_) {
    Message() << "log memory cannot be registered: " << own_dir_.c_str()
              << "/log: raise the limit of locked memory (ulimit -l unlimited)";
    return system_error("register the log memory");
  }
  staging_ = verbs::Buffers(domain_.get());
  return Done{};
}

// Access flags are allowed only on a listed device that passes the self-test.  Otherwise the start
// fails with a message: a silent change of the fence would be noticed too late.
Outcome VerbsFabric::check_fence() {
  if (options_.fence != Fence::kAccessFlags) return Done{};
  const std::string driver = device_.driver();
  const bool on_list = listed(options_.flag_devices, device_.name(), driver);
  FenceReport tested;
  if (on_list) {
    FenceProbe probe;
    probe.fence = Fence::kAccessFlags;
    probe.rounds_max = kSelfTestRounds;
    auto report = probe_fence(device_, probe);
    if (!report) return report.error();
    tested = report.value();
  }
  const Outcome judged = judge_flags(on_list, tested);
  if (judged.ok()) return judged;
  Message why;
  why << "access flags do not fence: " << device_.name() << " (driver " << driver.c_str() << "): ";
  if (on_list) {
    why << "in round " << tested.rounds << " of the self-test a write landed " << tested.late_us_max
        << " us after the revoke";
  } else {
    why << "it is not listed in fence_flags_devices";
  }
  why << "; use fence = \"deregister\"";
  return judged;
}

}  // namespace crane::consensus
