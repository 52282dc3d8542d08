// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/segment.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/descriptor.h"
#include "checkpoint/manifest.h"
#include "checkpoint/tree.h"
#include "dmt/base/branch_event.h"
#include "dmt/processes.h"
#include "dmt/quiescence.h"
#include "dmt/scheduler.h"
#include "dmt/segment.h"
#include "dmt/sequence/output.h"
#include "dmt/socket_directories.h"

namespace crane::node {
namespace {

namespace ipc = boost::interprocess;

// Servers drop privileges and still check in and map after exec; the parent directory is 0700.
constexpr mode_t kShared = 0666;
constexpr mode_t kSharedDirectory = 0755;
constexpr int kCheckinBacklog = 256;
constexpr std::uint32_t kPerturbMaxUs = 5000;
constexpr std::uint32_t kSpin = 2000;

// With --spins long computations are not looked for, because waiting in loops looks the same.
dmt::StallRule stall_rule_of(const Config& config) {
  if (config.spins) return dmt::StallRule::kSpins;
  const auto computations = dmt::kDetachComputation | dmt::kDetachAnyComputation;
  return (config.detached_calls() & computations) != 0 ? dmt::StallRule::kComputations
                                                       : dmt::StallRule::kOff;
}

dmt::Configuration configuration_of(const Config& config) {
  dmt::Configuration c{};
  c.mode = config.mode;
  c.admission = config.admission;
  c.quantum = config.quantum != 0                 ? config.quantum
              : config.mode == dmt::Mode::kSerial ? dmt::kQuantumSerial
                                                  : dmt::kQuantumParallel;
  c.replica = config.replica;
  c.send_buffer = config.send_buffer != 0 ? config.send_buffer : dmt::kSendBufferDefault;
  c.perturb_seed = config.perturb;
  c.perturb_max_us = kPerturbMaxUs;
  c.trace = config.trace && (config.replays || !config.record.empty()) ? 1 : 0;
  // Spinning for the turn pays only when the other party runs on another core (D10).
  c.spin = config.cpu >= 0 || config.mode == dmt::Mode::kSerial ? 0 : kSpin;
  c.stall_rule = stall_rule_of(config);
  c.processors = config.cpu >= 0 ? config.processors : 0;
  c.detached_calls = config.detached_calls();
  // In parallel mode threads run in parallel between turns, so they need no slices.
  const bool sliced =
      config.mode == dmt::Mode::kSerial && config.admission == dmt::Admission::kGrant;
  c.slice_ps = sliced ? std::uint64_t{config.slice_us} * 1'000'000 : 0;
  c.branch_event = sliced && config.branch_counter ? branch_event().code : 0;
  c.waits_for_room = config.replays ? 0 : 1;
  std::strncpy(c.host_name, config.group.c_str(), sizeof c.host_name - 1);
  return c;
}

void name_soft_barrier_points(const Config& config, dmt::Layout& layout) {
  for (std::size_t i = 0; i < config.soft_barriers.size(); ++i) {
    const setup::SoftBarrier& l = config.soft_barriers[i];
    dmt::SoftBarrierPoint& point = layout.soft_barrier_points[i];
    std::strncpy(point.function, l.function.c_str(), sizeof point.function - 1);
    point.soft_barrier.count = l.count;
    point.soft_barrier.timeout_us = l.timeout_us;
  }
}

void name_socket_directories(const Config& config, dmt::Layout& layout) {
  for (const setup::Bind& bind : config.binds) {
    if (bind.target.size() >= kSocketPathBytes) continue;  // too long for a socket's path
    if (dmt::add_socket_directory(layout, bind.target)) continue;
    spdlog::warn("{}: too many directories are bound: unix sockets in this one are refused",
                 bind.target);
  }
}

}  // namespace

Result<std::unique_ptr<Segment>> Segment::create(const Config& config) {
  std::unique_ptr<Segment> segment(new Segment(config.replica_shm_dir()));
  Outcome done = segment->make_directory();
  if (done.ok()) done = segment->create_file(config);
  if (done.ok()) done = segment->open_doorbell();
  if (done.ok()) done = segment->open_checkin();
  if (done.ok()) done = segment->copy_library(config.libcrane);
  if (!done.ok()) return done.error();
  return segment;
}

Result<std::unique_ptr<Segment>> Segment::adopt(const Config& config,
                                                const std::string& checkpoint) {
  std::unique_ptr<Segment> segment(new Segment(config.replica_shm_dir()));
  Outcome done = segment->make_directory();
  if (done.ok()) done = segment->adopt_file(config, checkpoint + "/segment");
  if (done.ok()) done = segment->open_doorbell();
  if (done.ok()) done = segment->open_checkin();
  if (done.ok()) done = segment->copy_library(checkpoint + "/" + kSharedLibrary);
  if (done.ok()) done = segment->copy_library(config.libcrane, kOwnLibrary);
  if (done.ok()) done = segment->adopt_log(checkpoint + "/runtime.log");
  if (!done.ok()) return done.error();
  return segment;
}

Segment::~Segment() {
  if (doorbell_ >= 0) ::close(doorbell_);
  if (checkin_ >= 0) ::close(checkin_);
  std::error_code ignored;
  for (const char* name : {"segment", "doorbell", "checkin.sock", kSharedLibrary, kOwnLibrary}) {
    std::filesystem::remove(directory_ + "/" + name, ignored);
  }
}

Outcome Segment::make_directory() {
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  if (failed) return Error{Code::kSystem, failed.value(), "make the replica's shared directory"};
  if (::chmod(directory_.c_str(), kSharedDirectory) != 0) return system_error("chmod");
  return Done{};
}

Outcome Segment::map() {
  try {
    const ipc::file_mapping file((directory_ + "/segment").c_str(), ipc::read_write);
    region_ = ipc::mapped_region(file, ipc::read_write, 0, sizeof(dmt::Layout));
  } catch (const ipc::interprocess_exception& e) {
    return Error{Code::kSystem, e.get_native_error(), "map the segment"};
  }
  const int fd = ::open((directory_ + "/segment").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return system_error("open the segment");
  file_ = consensus::shm::SparseFile(fd, sizeof(dmt::Layout));
  return Done{};
}

// --- memory (ROOM-1, ROOM-3) --------------------------------------------------------------------

bool Segment::back(const void* from, std::size_t bytes) noexcept {
  const auto* const base = static_cast<const std::byte*>(region_.get_address());
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(from) - base);
  return file_.back(offset, std::min(bytes, sizeof(dmt::Layout) - offset));
}

// Allocates the next `bytes` bytes after the write position, also across the ring's end.
bool Segment::back_ring(const RingLayout& ring, std::size_t bytes) noexcept {
  const std::uint64_t at = ring.write_position.load(std::memory_order_relaxed) % ring.capacity;
  const auto* const data = static_cast<const std::byte*>(region_.get_address()) + ring.data_offset;
  const std::size_t first = std::min<std::size_t>(bytes, ring.capacity - at);
  return back(data + at, first) && back(data, std::min<std::size_t>(bytes - first, at));
}

// Allocates small tables as a whole and the heads of the others, before any access.
Outcome Segment::back_start() {
  const auto* const w = static_cast<const dmt::Layout*>(region_.get_address());
  const auto between = [](const void* from, const void* to) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(to) -
                                    static_cast<const std::byte*>(from));
  };
  if (back(w, between(w, w->files)) && back(&w->signals, between(&w->signals, w->inodes.records)) &&
      back(w->turns, between(w->turns, w + 1))) {
    return Done{};
  }
  return Error{Code::kFull, ENOSPC, "allocate the segment"};
}

// The marks are hints: a thread that has the turn may raise them at the same time.
bool Segment::look_ahead() noexcept {
  constexpr std::uint64_t kProcesses = kSegmentAhead / (dmt::kFdsMax * sizeof(std::uint32_t));
  const auto read = [](const auto& mark) {
    return std::uint64_t{__atomic_load_n(&mark, __ATOMIC_RELAXED)};
  };
  const dmt::Layout& w = *layout_;
  const dmt::SchedulerState& s = w.scheduler;
  // Allocates the used bytes of a table and kSegmentAhead bytes more.
  const auto table = [this](const auto& records, std::uint64_t used) {
    return back(records, std::min<std::uint64_t>(used + kSegmentAhead, sizeof records));
  };
  short_ = !(back_ring(w.header.output, 4 * kSegmentAhead) &&
             back_ring(w.header.sequence, kSegmentAhead) &&
             table(w.blocks, read(s.blocks_used) * dmt::kBlockBytes) &&
             table(w.files, read(s.files_used) * sizeof(dmt::FileRecord)) &&
             table(w.watches, read(s.watches_used) * sizeof(dmt::WatchRecord)) &&
             table(w.descriptors,
                   std::min<std::uint64_t>(read(s.slots_used), dmt::kProcessesMax - kProcesses) *
                       dmt::kFdsMax * sizeof(std::uint32_t)) &&
             table(w.inodes.records, read(w.inodes.last_number) * sizeof(dmt::InodeRecord)) &&
             table(w.inodes.paths, read(w.inodes.paths_end)));
  return !short_;
}

bool Segment::make_room(std::size_t entry_bytes) noexcept {
  const dmt::Layout& w = *layout_;
  const RingLayout& ring = w.header.sequence;
  const bool empty = ring.read_position.load() == ring.write_position.load();
  const std::uint64_t blocks = (empty ? 0 : entry_blocks_) + entry_bytes / dmt::kBlockBytes + 2;
  const std::uint64_t used = __atomic_load_n(&w.scheduler.blocks_used, __ATOMIC_RELAXED);
  const std::uint64_t end = std::min<std::uint64_t>(used + blocks + 1, dmt::kBlocksMax);
  // A record that does not fit before the ring's end starts after the gap.
  if (!back_ring(ring, 2 * entry_bytes + (64U << 10)) || !back(w.blocks, end * dmt::kBlockBytes)) {
    return false;
  }
  entry_blocks_ = blocks;
  return true;
}

// Resets this replica's own fields; the other fields are agreed, as of the checkpoint's entry.
Outcome Segment::adopt_file(const Config& config, const std::string& from) {
  const std::string path = directory_ + "/segment";
  ::unlink(path.c_str());
  if (const Outcome copied = checkpoint::copy_tree(from, path); !copied.ok()) return copied;
  if (::chmod(path.c_str(), kShared) != 0) return system_error("chmod the segment");
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) != sizeof(dmt::Layout) || failed) {
    return Error{Code::kWrongVersion, 0, "the checkpoint's segment has another size"};
  }
  if (const Outcome mapped = map(); !mapped.ok()) return mapped;
  if (const Outcome backed = back_start(); !backed.ok()) return backed;
  auto* w = static_cast<dmt::Layout*>(region_.get_address());
  if (w->header.magic != dmt::kSegmentMagic || w->header.version.load() != dmt::kLayoutVersion) {
    return Error{Code::kWrongVersion, 0, "the checkpoint's segment has another version"};
  }
  layout_ = w;
  w->header.configuration = configuration_of(config);
  if (!look_ahead()) return Error{Code::kFull, ENOSPC, "allocate the segment"};
  dmt::SchedulerState& s = w->scheduler;
  if (s.holder.load() != value(dmt::kNodeSlot) || !dmt::is_quiescent(*w)) {
    return Error{Code::kDamaged, 0, "the checkpoint's server was not quiescent"};
  }
  s.node_asleep.store(0);
  s.leading.store(0);
  s.fenced.store(0);
  s.node_timer.store(INT64_MAX);
  s.leader_clock_limit.store(UINT64_MAX);
  // Preemption requests that were not obeyed yet are in the log after the checkpoint.
  s.preempt_clock.store(UINT64_MAX);
  s.preempt_requests_sent.store(s.preempt_requests_obeyed.load());
  dmt::announce_restore(*w);
  return Done{};
}

// The server has the file open, and CRIU requires its size at the checkpoint.
Outcome Segment::adopt_log(const std::string& from) {
  const std::string to = directory_ + "/runtime.log";
  ::unlink(to.c_str());
  if (!std::filesystem::exists(from)) return Done{};
  return checkpoint::copy_tree(from, to);
}

Outcome Segment::create_file(const Config& config) {
  const std::string path = directory_ + "/segment";
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kShared);
  if (fd < 0) return system_error("create the segment");
  const bool sized =
      ::fchmod(fd, kShared) == 0 && ::ftruncate(fd, static_cast<off_t>(sizeof(dmt::Layout))) == 0;
  const Error failed = sized ? Error{} : system_error("size the segment");
  ::close(fd);
  if (!sized) return failed;
  if (const Outcome mapped = map(); !mapped.ok()) return mapped;
  return initialise(config);
}

Outcome Segment::initialise(const Config& config) {
  if (const Outcome backed = back_start(); !backed.ok()) return backed;
  layout_ = &dmt::initialise_segment(region_.get_address(), configuration_of(config));
  layout_->unhooked.strict = config.strict ? 1 : 0;
  name_soft_barrier_points(config, *layout_);
  name_socket_directories(config, *layout_);
  if (!look_ahead()) return Error{Code::kFull, ENOSPC, "allocate the segment"};
  dmt::create_main_process(*layout_);
  return Done{};
}

Outcome Segment::renew(const Config& config, bool library) {
  const checkpoint::Descriptor fd(::open((directory_ + "/segment").c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return system_error("open the segment");
  constexpr auto kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;  // then reads as zeros
  if (::fallocate(fd.get(), kHole, 0, static_cast<off_t>(sizeof(dmt::Layout))) != 0) {
    return system_error("clear the segment");
  }
  file_.forget();
  if (const Outcome made = initialise(config); !made.ok()) return made;
  return library ? take_own_library() : Outcome{Done{}};
}

// If the server came from a checkpoint of another build, the next server uses this build's library.
Outcome Segment::take_own_library() {
  const std::string own = directory_ + "/" + kOwnLibrary, used = directory_ + "/" + kSharedLibrary;
  if (::rename(own.c_str(), used.c_str()) == 0) {
    library_digest_ = checkpoint::digest_of_file(used);
  } else if (errno != ENOENT) {
    return system_error("exchange libcrane.so");
  }
  return Done{};
}

Outcome Segment::open_doorbell() {
  const std::string path = directory_ + "/doorbell";
  ::unlink(path.c_str());
  if (::mkfifo(path.c_str(), kShared) != 0) return system_error("make the doorbell");
  ::chmod(path.c_str(), kShared);
  // Open for reading and writing, so that it never reaches its end without server processes.
  doorbell_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (doorbell_ < 0) return system_error("open the doorbell");
  return Done{};
}

Outcome Segment::open_checkin() {
  const std::string path = directory_ + "/checkin.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{Code::kBadArgument, 0, "shm_dir is too long for a socket's path"};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  checkin_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (checkin_ < 0) return system_error("make the check-in socket");
  if (::bind(checkin_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), kShared) != 0 || ::listen(checkin_, kCheckinBacklog) != 0) {
    return system_error("bind the check-in socket");
  }
  return Done{};
}

Outcome Segment::copy_library(const std::string& from, const char* name) {
  const std::string to = directory_ + "/" + name;
  std::error_code failed;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, failed);
  if (failed) return Error{Code::kSystem, failed.value(), "copy libcrane.so"};
  ::chmod(to.c_str(), 0755);
  if (name == kSharedLibrary) library_digest_ = checkpoint::digest_of_file(to);
  return Done{};
}

}  // namespace crane::node
