// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the proxy uses of the replicated log: propose inputs, get committed entries, hear of roles.
//
// One thread, no blocking call.  The owner's event loop watches event_fd() for reading, arms a
// timer for the deadline that poll() returned, calls poll() on either, and again after it has
// proposed; and calls flush_doorbells() once at the end of EVERY iteration, before it waits: one
// wake-up per follower however many entries were proposed in it (S3).
//
//   propose() x n  ->  poll()  ->  on_committed() x n  ->  answer clients  ->  flush_doorbells()
//
// With fabric/shm the writes to all followers are done when propose() returns, and the poll() after
// it commits: no follower's processor, wake-up or reply is on that path.
//
// GUARANTEES
// CONTRACT LOG-K1  on_committed gets every committed entry of the group's log from index 1 on (or
//     from behind Options::checkpoint), in index order, without a gap, exactly once per object; the
//     same bytes on every replica.  START, CONFIG and other entries of the core's own are among
//     them.  With Durability::kMemory and no checkpoint given, a replica that was started again
//     begins where it stood, or where its log does.
// CONTRACT LOG-K2  An entry proposed here is committed at most once, with the Index propose()
//     returned and in the view of that moment; if leadership is lost first it may or may not be
//     (C8): the caller must not propose it again in another view.
// CONTRACT LOG-K3  on_role(leader) comes after START of the own view is committed, hence after
//     everything earlier views committed was handed out; propose() is allowed from then until
//     on_role(follower).
// CONTRACT LOG-K4  Callbacks come only from inside poll() and abdicate(), never from propose() or
//     flush_doorbells(); they may call propose(), status() and group_facts(), nothing else here.
//
// MEMBERS.  A group has Options::replicas slots and some members (core/membership.h): voters, which
// are counted, and learners, which only get the log.  The first members are Options::members
// voters; from then on changes go through the log, one at a time (change_members).  To replace a
// living replica: add the new one, promote it when it has caught up, remove the old one.  One that
// lost its memory recovers by itself: its old vote is taken out, it is a learner (kReturning)
// until it has caught up, then it votes again.
//
// A replica's memory lives in `directory`: a process that is killed and started again on it goes on
// where it stood (a pause).  A replica that loses its memory recovers under a new incarnation (C5)
// if the log is in memory only.  With Durability::kDisk it goes on with what its store holds, and
// the store hands out entries that left the ring (LOG-K1).  A replica whose store is damaged, or
// ends before what it once said to hold, sets it aside and recovers under a new incarnation, too.
//
// Threads: all members from one thread.  Errors: Result; on_fatal is the end of this replica's
// membership (removed from the group, log damaged): the owner logs the reason and leaves.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consensus/core/roles.h"
#include "consensus/fabric/choices.h"
#include "dmt/base/ids.h"
#include "dmt/base/latency_histogram.h"
#include "dmt/base/result.h"

namespace crane::consensus {

class SecureLink;  // fabric/secure_link.h

// One that starts is called a follower, one that is over a learner.
const char* name(Role role) noexcept;
const char* name(MemberRole role) noexcept;
const char* name(ElectionCause cause) noexcept;

struct MemberChange {
  enum class Kind : std::uint8_t {
    kAdd,      // a slot that is no member becomes a learner; its process may be started later
    kPromote,  // a learner that has caught up becomes a voter
    kRemove,   // of any member, the leader too: it hands over once that is committed, and leaves
    kAddAnalysis,  // as kAdd, and it is never promoted; its process has Options::analysis
  };
  Kind kind{};
  ReplicaId id{};
};

struct MemberStatus {
  ReplicaId id{};
  MemberRole role{};
  std::uint32_t incarnation = 0;  // 0: invited, has not been heard of
  bool connected = false;         // its process is there
  // As the leader knows it; on others 0 and false, but for themselves.
  bool streaming = false;         // its log is written to
  bool needs_checkpoint = false;  // it lacks entries which left the leader's ring and the stores
  Index last{};                   // it certainly holds all up to here
  Index durable{};                // kDisk: and has told, in this view, to have stored up to here
  Index applied{};                // handed to its application, as it last said
};

// A place in the log, between two entries: behind entry `at`, whose bytes end at `pos`.  Index 0 is
// the log's beginning.
struct LogPlace {
  Viewstamp at{};
  std::uint64_t pos = 0;
  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

// Where a server stands that was brought back, and what its replica cannot learn from the log
// behind that place.  A replica may be given one of any other replica of its group.
struct Checkpoint {
  LogPlace place;  // the server holds the effects of all up to here; index 0: it is a new one
  // What group_facts() gave in on_committed() of the entry at that place, or later; none at index
  // 0.
  std::vector<std::byte> facts;
};

// One committed entry; `payload` is valid during the callback only.
struct EntryView {
  Viewstamp at;
  std::uint8_t type = 0;
  std::uint64_t stamp_ns = 0;  // the leader's time stamp, as proposed
  std::uint32_t grant = 0;     // turns, as proposed (DESIGN D3)
  std::span<const std::byte> payload;
  std::uint64_t end_pos = 0;  // where it ends in the log
  LogPlace place() const noexcept { return {at, end_pos}; }
};

// A copy of the log as a file (log_tail.h).
struct LogCopyRequest {
  LogPlace behind;   // a checkpoint's
  Index through{};   // at least so much
  std::string path;  // a file that is there
  friend bool operator==(const LogCopyRequest&, const LogCopyRequest&) = default;
};
struct LogCopy {
  bool done = false;
  Index last{};  // in it so far
};

inline constexpr std::size_t kOutOfBandBytesMax = 232;

struct Callbacks {
  std::function<void(const EntryView&)> on_committed;
  // `leader` is meaningful unless role is kCandidate or kLearner.
  std::function<void(Role role, View view, ReplicaId leader)> on_role;
  std::function<void(const char* reason)> on_fatal;
  // A change of members was committed: members() tells.  Optional.
  std::function<void()> on_members;
  // A peer's send_message().  Optional.
  std::function<void(ReplicaId from, std::span<const std::byte> note)> on_message;
  // kTcp, kVerbs: a replica came for something else than the log (fabric/secure_link.h,
  // kVisitPlane), over an open link.  Optional.
  std::function<void(ReplicaId from, std::unique_ptr<SecureLink> link)> on_visitor;
};

// What the replicas reach each other's memory with.
enum class FabricKind : std::uint8_t {
  kShm,    // all on one host
  kTcp,    // any hosts: TLS with the group's secret; the owner's process takes part in each write
  kVerbs,  // hosts with RDMA devices
};

// Where a replica listens for the others; a host name is resolved once, when the group is opened.
struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
};

// When an entry is committed.
enum class Durability : std::uint8_t {
  kMemory,  // a majority holds it in memory
  kDisk,    // a majority holds it in its stores: it outlives the loss of all processes and of power
};

struct Options {
  std::string directory;  // on tmpfs, the same for all replicas of the group on this host
  // On a disk, where there is one: remembers that this replica was started before.  Without it a
  // reboot, which takes tmpfs with it, makes a member look new, and it would vote without knowing
  // what it promised and held (U2).  Empty: `directory`, good for a group whose hosts all reboot.
  std::string lasting_directory;
  FabricKind fabric = FabricKind::kShm;
  std::vector<Endpoint> endpoints;     // kTcp, kVerbs: one per replica
  std::array<std::byte, 32> secret{};  // kTcp, kVerbs: the group's, not all zeros; same everywhere
  std::string device;                  // kVerbs: the RDMA device; empty: the first
  Fence fence = Fence::kDeregister;    // kVerbs
  // kVerbs: devices, by name or driver ("mlx5": mlx5_0, mlx5_core), whose access flags are a fence.
  std::vector<std::string> fence_flags_devices;
  HugePages huge_pages = HugePages::kAuto;  // kVerbs: the log memory's
  ReplicaId self{};
  std::uint8_t replicas = 3;  // slots of the group, 1..kReplicasMax: as many as it may ever have
  std::uint8_t members = 0;   // of these, 0 .. members-1 are its first voters; 0: all of them
  // Per replica, sparse, a power of two, equal on all replicas.
  std::uint64_t ring_bytes = 128ULL << 20;
  std::uint64_t log_id = 0;  // secret random id of the group (C3), not 0, from the launcher
  std::uint64_t seed = 0;    // back-off randomness; 0: from the kernel
  // Followers are woken at most this often (their processors are not needed to commit, and a
  // wake-up costs the leader's machine more than an entry does); the first entry after a pause
  // wakes at once.
  std::uint64_t bell_spacing_ns = 300'000;
  // kTcp: what is committed waits so long for an entry that carries it to the followers, before a
  // write of its own tells them (driver/bell_clock.h).
  std::uint64_t commit_hold_ns = 1'000'000;
  // Where the privilege is there (CAP_SYS_NICE), the thread that calls open() and poll() gets a
  // real-time priority for a moment when a peer dies (kShm) and when it starves (fabric/urgency.h).
  bool urgent = false;
  Durability durability = Durability::kMemory;
  // kDisk: a directory on a disk; the store of replica k is in its subdirectory r<k>.  Made if it
  // is not there.
  std::string store_directory;
  // Where the server stands (README.md, Checkpoints).  Nothing: it is a new one in disk mode; in
  // memory mode it outlived its node, or the owner sees by the first entry's index what it missed.
  std::optional<Checkpoint> checkpoint;
  // It never votes or leads, and is a member as MemberRole::kAnalysis only.
  bool analysis = false;
  // The owner has no server that `checkpoint` and the own log could bring to where the group is:
  // this replica votes and holds the log all the same, and nothing is handed out before its
  // low-water mark.  `checkpoint` tells the members where the store does not.
  bool acceptor_only = false;
  // kMemory: the log is kept whole from its beginning, or where this replica begins, until
  // keep_log().
  bool keeps_log = false;
  // What memory and store hold is given up: this replica recovers as one that lost its memory.
  bool forget = false;
  // A leader that is removed goes on for so long when that is committed, before it hands over.
  std::uint64_t let_in_ns = 0;
  Callbacks callbacks;
};

// Failure detection by pull-score (C6), as it stands now: of followers, about their leader.
struct DetectionStatus {
  int score = 0;       // falls with each heartbeat missed
  int suspect_at = 0;  // suspected at or below
  int trust_at = 0;    // trusted again at or above
  int full = 0;
  int misses_needed = 0;        // in a row from full score to suspicion; grows with the noise
  std::uint64_t period_ns = 0;  // between heartbeats
};

struct GroupStatus {
  Role role = Role::kFollower;
  View view{};
  ReplicaId leader{};
  Index last{};  // of the own log
  Index committed{};
  Index durable{};                // kDisk: of the own log, in the own store
  Index applied{};                // handed to on_committed
  Index first{};                  // kDisk: the oldest entry in the own store
  Index covered{};                // kDisk: stores may lose what is up to here
  LatencyHistogram synced;        // kDisk: how long the own store took to have entries on disk
  std::uint8_t connected = 0;     // peers whose process is there
  bool failed = false;            // after on_fatal
  bool removed = false;           // failed, because the group removed this replica
  bool needs_checkpoint = false;  // it lacks entries which left the leader's ring and the stores
  bool fetching = false;          // it takes them from peers' stores (kDisk)
  bool changing = false;          // a change of members is not committed yet
  // What has no room to grow, so that inputs wait, where it lies, and how much it lacks; empty:
  // nothing.
  std::string no_room;
  std::vector<MemberStatus> members;
  ElectionStatus election;
  DetectionStatus detection;
  FabricStatus fabric;
};

// Cheap to ask for at any time.
struct QuorumStatus {
  unsigned voters = 0;     // of the members in force
  unsigned answering = 0;  // of these, those whose process is there, self included
  bool led = false;        // this replica leads, or follows a leader
};

class Consensus {
 public:
  // kGone: the checkpoint is older than what ring or store still hold; another one may help, and
  // until then `acceptor_only`.  kDamaged: its facts are none; kBadArgument: it is of another
  // group. kUnsupported: the fence that was chosen is none on this device, or huge pages are
  // required and cannot be had; kBusy, kFull, kNotFound (no device), kBadArgument, kSystem, ...:
  // `what` says which step failed.
  static Result<std::unique_ptr<Consensus>> open(Options options);
  virtual ~Consensus() = default;

  // Appends an input.  kNotLeader: not (yet, any more) the leader; kBusy: too much is uncommitted,
  // or a follower that is needed for a majority lags: poll() and try again; kBadArgument: the
  // payload is too long or the type is one of the core's own (>= 0xf0).
  virtual Result<Index> propose(std::uint8_t type, std::uint64_t stamp_ns, std::uint32_t grant,
                                std::span<const std::byte> payload) = 0;
  // Pumps until nothing is left to do; returns the absolute time at which it wants to be called
  // again if event_fd() stays silent.  `now_ns`: CLOCK_MONOTONIC.
  virtual std::uint64_t poll(std::uint64_t now_ns) = 0;
  virtual int event_fd() const noexcept = 0;
  virtual void flush_doorbells() = 0;
  // The own server died or is stuck (C6): hands leadership over, and does not seek it until fit().
  virtual void abdicate(const char* reason) = 0;
  virtual void fit() = 0;
  // The own server is so far behind the log, 0: near its end, and has run entries up to `ran`: when
  // a leader is lost those whose servers are further go first (DESIGN C6).
  virtual void lags(std::uint64_t ns, Index ran) = 0;
  // The own server's state at entry `at` is kept in files of this replica, whole and verified, and
  // stays until a newer one was told; also at a start, of the newest one there is.  In disk mode,
  // once a majority of the voters have such a checkpoint at an entry or behind it, all stores lose
  // what is up to that entry (README.md, What stores may lose).  The earlier one again: nothing.
  virtual void checkpointed(Index at) = 0;
  // Memory mode, with Options::keeps_log: a server may have to begin behind this place, which
  // on_committed() gave or will give, so the log from there on stays whole, and inputs wait for
  // room (kBusy) instead of taking it. An earlier place than before: nothing.  nullptr: the log is
  // not kept any more; what was given up by then stays so when it is kept again.
  virtual void keep_log(const LogPlace* from) = 0;
  // kDisk: writes the entries behind a place into a file, up to the last one that is committed and
  // in the own store when that reaches as far as is wanted; the store's thread does it, a piece at
  // a time.  To be asked again, the same, until it is done or failed.  kBusy: another copy is under
  // way; kGone: the store does not reach back to the place; kBadArgument: another entry stands
  // there; kUnsupported: there is no store; kFull, kSystem: the file.
  virtual Result<LogCopy> copy_log(const LogCopyRequest&) {
    return Error{Code::kUnsupported, 0, "the log is in memory only"};
  }
  // Appends a change of members, which counts at once and is final when committed (on_members).
  // kNotLeader: status().leader may know; kBusy: a change or transfer is under way, the learner
  // lags, or too few of the remaining voters are in touch: try again; kBadArgument: it makes no
  // sense (a voter added, the last one removed); `what` says which.
  virtual Result<Index> change_members(const MemberChange& change) = 0;
  // Hands leadership to a voter that follows closely: propose() says kBusy until it has everything,
  // then it takes over; if it does not within tens of milliseconds this one goes on leading.
  // kNotLeader, kBusy, kBadArgument (not another voter).
  virtual Outcome transfer(ReplicaId to) = 0;
  // This replica leads, and will: no transfer has begun, and it is not removed.
  virtual bool leads_on() const noexcept = 0;
  // The members in force, by id.
  virtual std::vector<MemberStatus> members() const = 0;
  // Tells a peer something small outside of the log.  It may be lost; notes of one peer come in
  // order.  False: not sent.  REQUIRES: bytes.size() <= kOutOfBandBytesMax.
  virtual bool send_message(ReplicaId to, std::span<const std::byte> bytes) = 0;
  // The last entry that `peer` handed to its application, as it last said; leader only, else 0.
  virtual Index peer_applied(ReplicaId peer) const = 0;
  virtual GroupStatus status() const = 0;
  virtual QuorumStatus quorum() const = 0;
  // kDisk: the disk of the own store will not have room for long; the log is to be cut below a
  // checkpoint.
  virtual bool low_on_room() const noexcept { return false; }
  // status().no_room says where.
  virtual bool short_of_room() const noexcept { return false; }
  // What a replica that begins behind the entry handed out last must know beside its place: the
  // members, and the view in which all that is known.  Opaque; also inside on_committed().
  virtual std::vector<std::byte> group_facts() const = 0;
  // Entries proposed here and not yet committed.
  virtual std::uint64_t backlog() const = 0;
  // The largest payload propose() takes.
  virtual std::size_t payload_bytes_max() const noexcept = 0;
};

}  // namespace crane::consensus
