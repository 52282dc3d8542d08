// SPDX-License-Identifier: Apache-2.0
// VerbsFabric: opens and closes its files and its device.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consensus/fabric/huge_pages.h"
#include "consensus/fabric/process.h"
#include "consensus/fabric/verbs.h"
#include "consensus/fabric/verbs_fence.h"
#include "consensus/fabric/verbs_wire.h"
#include "dmt/base/log.h"

namespace crane::consensus {

using verbs::Control;
using verbs::Credit;

namespace {

constexpr std::uint64_t kRoomSlack = 16ULL << 20;
constexpr std::uint32_t kInlineWanted = 512;
constexpr int kPredecessorMs = 10'000;
constexpr unsigned kSelfTestRounds = 50;

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
  const bool has_ended = ::poll(&want, 1, kPredecessorMs) == 1;
  close_fd(fd);
  return has_ended;
}

}  // namespace

VerbsFabric::VerbsFabric(const VerbsOptions& options, std::unique_ptr<verbs::Bootstrap> bootstrap)
    : options_(options), bootstrap_(std::move(bootstrap)), peers_(options.replicas) {}

VerbsFabric::~VerbsFabric() {
  bootstrap_.reset();  // peers notice the end at once
  peers_.clear();      // peers can no longer write; this comes before the lock is freed
  retired_own_.clear();
  retired_.clear();
  if (control_.mapped()) own()->pid.store(0);
  if (credits_ != nullptr) ::munmap(credits_, options_.replicas * sizeof(Credit));
  close_fd(wake_fd_);
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::open(
    const VerbsOptions& options, std::unique_ptr<verbs::Bootstrap> bootstrap) {
  if (!options.valid() || options.retry.retries > 6 || options.spares == 0 ||
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
  const std::size_t align = options_.huge_pages == HugePages::kNever ? 0 : huge_page_bytes();
  // Registration allocates all of the log or fails: no page is allocated later (ROOM-1).
  const FileFormat format{verbs::kControlMagic, verbs::kVerbsVersion, sizeof(Control), kRoomSlack,
                          align};
  if (const Outcome opened = open_files(options_, format); !opened) return opened;
  Control* const c = own();
  if (!survived_) {
    c->memory = random_word();
    c->next_key.store(first_key());
    if (const Outcome published = publish(format); !published) return published;
  }
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

Outcome VerbsFabric::open_device() {
  auto device = verbs::Device::open(options_.device, options_.address);
  if (!device) return device.error();
  device_ = std::move(device).value();
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  channel_.reset(ibv_create_comp_channel(device_.context()));
  if (wake_fd_ < 0 || !channel_) return system_error("completion channel");
  if (!set_nonblocking(channel_->fd) || !set_nonblocking(device_.context()->async_fd)) {
    return system_error("completion channel");
  }
  for (const int fd :
       {wake_fd_, channel_->fd, device_.context()->async_fd, bootstrap_->event_fd()}) {
    if (const Outcome added = watch(fd, {.fd = fd}); !added) return added;
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
  const Outcome checked = check_fence_flags(on_list, tested);
  if (checked.ok()) return checked;
  Message why;
  why << "access flags do not fence: " << device_.name() << " (driver " << driver.c_str() << "): ";
  if (on_list) {
    why << "in round " << tested.rounds << " of the self-test a write landed " << tested.late_us_max
        << " us after the revoke";
  } else {
    why << "it is not listed in fence_flags_devices";
  }
  why << "; use fence = \"deregister\"";
  return checked;
}

}  // namespace crane::consensus
