// SPDX-License-Identifier: Apache-2.0
#pragma once
// The replicated log as the proxy uses it: propose inputs, receive committed entries and role
// changes.
//
// One thread, no blocking call.  The owner's event loop watches event_fd() for reading, arms a
// timer for the deadline that poll() returned, and calls poll() on either event and after each
// proposal. At the end of EVERY iteration, before it waits, it calls flush_doorbells() once.  Each
// follower then gets one wake-up, however many entries the iteration proposed (S3).
//
//   propose() x n  ->  poll()  ->  on_committed() x n  ->  answer clients  ->  flush_doorbells()
//
// With fabric/shm the writes to all followers are complete when propose() returns, and the next
// poll() commits the entry: no follower's processor, wake-up or reply is on that path.
//
// GUARANTEES
// CONTRACT LOG-K1  on_committed gets every committed entry of the group's log from index 1 on (or
//     after Options::checkpoint), in index order, without a gap, exactly once per object; the same
//     bytes on every replica.  The core's own entries (START, CONFIG, ...) are among them.  With
//     Durability::kMemory and no checkpoint, a restarted replica begins where it was, or where its
//     log begins.
// CONTRACT LOG-K2  An entry proposed here is committed at most once, with the Index that propose()
//     returned and in the view of that moment.  If this replica loses leadership first, the entry
//     may or may not be committed (C8): the caller must not propose it again in another view.
// CONTRACT LOG-K3  on_role(leader) comes after START of the new view is committed, hence after
//     on_committed() got all that earlier views committed; propose() is allowed from then until
//     on_role(follower).
// CONTRACT LOG-K4  Callbacks come only from inside poll() and abdicate(), never from propose() or
//     flush_doorbells().  They may call only propose(), status() and group_facts() of this class.
//
// MEMBERS.  A group has Options::replicas slots and some members (core/membership.h): voters, which
// count in majorities, and learners, which only receive the log.  The first members are
// Options::members voters; later changes go through the log, one at a time (change_members).  To
// replace a living replica: add the new one, promote it when it has caught up, remove the old one.
// A replica that lost its memory recovers without an operator: the leader removes its old vote, it
// is a learner (kReturning) until it has caught up, then it votes again.
//
// A replica's memory is in `directory`: a process that is killed and restarted on it continues
// where it was (a pause).  With the log in memory only, a replica that loses its memory recovers
// under a new incarnation (C5).  With Durability::kDisk it continues with what its store holds, and
// the store hands out entries that left the ring (LOG-K1).  If the store is damaged, or shorter
// than the replica once reported, the replica sets it aside and also recovers under a new
// incarnation.
//
// Threads: all members from one thread.  Errors: Result.  on_fatal ends this replica's membership
// (removed from the group, log damaged): the owner logs the reason and exits.

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

// A starting replica is named a follower, a failed or removed one a learner.
const char* name(Role role) noexcept;
const char* name(MemberRole role) noexcept;
const char* name(ElectionCause cause) noexcept;

struct MemberChange {
  enum class Kind : std::uint8_t {
    kAdd,          // a slot that is no member becomes a learner; its process may be started later
    kPromote,      // a learner that has caught up becomes a voter
    kRemove,       // any member; a removed leader hands over after the commit, then leaves
    kAddAnalysis,  // as kAdd, but never promoted; its process has Options::analysis
  };
  Kind kind{};
  ReplicaId id{};
};

struct MemberStatus {
  ReplicaId id{};
  MemberRole role{};
  std::uint32_t incarnation = 0;  // 0: invited, not heard from yet
  bool connected = false;         // its process is running
  // As the leader knows it; on other replicas 0 and false, except for their own line.
  bool streaming = false;         // the leader writes to its log
  bool needs_checkpoint = false;  // it lacks entries that left the leader's ring and the stores
  Index last{};                   // it certainly holds all entries up to this one
  Index durable{};                // kDisk: stored up to here, as reported in this view
  Index applied{};                // last entry that its application got, as last reported
};

// A place in the log, between two entries: right after entry `at`, whose bytes end at `pos`.  Index
// 0 is the log's beginning.
struct LogPlace {
  Viewstamp at{};
  std::uint64_t pos = 0;
  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

// The place that a restored server has reached, and what its replica cannot learn from the log
// after that place.  A replica may use the checkpoint of any other replica of its group.
struct Checkpoint {
  LogPlace place;  // the server holds the effects of all entries before it; index 0: a new one
  // The result of group_facts() in on_committed() of the entry at that place, or later; empty at
  // index 0.
  std::vector<std::byte> facts;
};

// One committed entry; `payload` is valid only during the callback.
struct EntryView {
  Viewstamp at;
  std::uint8_t type = 0;
  std::uint64_t stamp_ns = 0;  // the leader's time stamp, as proposed
  std::uint32_t grant = 0;     // turns, as proposed (DESIGN D3)
  std::span<const std::byte> payload;
  std::uint64_t end_pos = 0;  // where the entry ends in the log
  LogPlace place() const noexcept { return {at, end_pos}; }
};

// A copy of the log as a file (log_tail.h).
struct LogCopyRequest {
  LogPlace behind;   // the place of a checkpoint
  Index through{};   // the copy contains at least this entry
  std::string path;  // an existing file
  friend bool operator==(const LogCopyRequest&, const LogCopyRequest&) = default;
};
struct LogCopy {
  bool done = false;
  Index last{};  // last entry copied so far
};

inline constexpr std::size_t kOutOfBandBytesMax = 232;

struct Callbacks {
  std::function<void(const EntryView&)> on_committed;
  // `leader` is valid unless role is kCandidate or kLearner.
  std::function<void(Role role, View view, ReplicaId leader)> on_role;
  std::function<void(const char* reason)> on_fatal;
  // A change of members was committed; members() returns the result.  Optional.
  std::function<void()> on_members;
  // A peer's send_message() arrived.  Optional.
  std::function<void(ReplicaId from, std::span<const std::byte> note)> on_message;
  // kTcp, kVerbs: a replica, or an operator (kOperator), opened a link for another purpose than the
  // log (fabric/secure_link.h, is_visit()).  Optional.
  std::function<void(ReplicaId from, std::unique_ptr<SecureLink> link)> on_visitor;
};

// How the replicas reach each other's memory.
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
  kDisk,    // a majority holds it in its stores: it survives the loss of all processes and of power
};

struct Options {
  std::string directory;  // on tmpfs; the same for all replicas of the group on this host
  // On a disk, if the host has one: records that this replica was started before.  A reboot clears
  // tmpfs; without this record a member would then look new and vote without knowing what it
  // promised and held (U2).  Empty: `directory`, which is safe only if all hosts of the group
  // reboot together.
  std::string lasting_directory;
  FabricKind fabric = FabricKind::kShm;
  std::vector<Endpoint> endpoints;     // kTcp, kVerbs: one per replica
  std::array<std::byte, 32> secret{};  // kTcp, kVerbs: not all zeros; same on all replicas
  std::string device;                  // kVerbs: the RDMA device; empty: the first
  Fence fence = Fence::kDeregister;    // kVerbs
  // kVerbs: devices, by name or driver ("mlx5": mlx5_0, mlx5_core), whose access flags are a fence.
  std::vector<std::string> fence_flags_devices;
  HugePages huge_pages = HugePages::kAuto;  // kVerbs: the log memory's
  ReplicaId self{};
  std::uint8_t replicas = 3;  // slots of the group, 1..kReplicasMax: most members at once
  std::uint8_t members = 0;   // replicas 0 .. members-1 are the first voters; 0: all
  // Per replica, sparse, a power of two; the same on all replicas.
  std::uint64_t ring_bytes = 128ULL << 20;
  std::uint64_t log_id = 0;  // secret random id of the group (C3), not 0; from the launcher
  std::uint64_t seed = 0;    // back-off randomness; 0: from the kernel
  // Followers are woken at most this often; the first entry after a pause wakes them at once.  A
  // commit does not need their processors, and a wake-up costs the leader's machine more than an
  // entry does.
  std::uint64_t bell_spacing_ns = 300'000;
  // kTcp: how long a new commit index waits for an entry that carries it to the followers, before
  // the leader sends it in a separate write (driver/bell_clock.h).
  std::uint64_t commit_hold_ns = 1'000'000;
  // With CAP_SYS_NICE, the thread that calls open() and poll() gets a real-time priority for a
  // moment when a peer dies (kShm) and when the thread starves (fabric/urgency.h).
  bool urgent = false;
  Durability durability = Durability::kMemory;
  // kDisk: a directory on a disk; the store of replica k is in its subdirectory r<k>.  Created if
  // missing.
  std::string store_directory;
  // The state that the server has reached (store/README.md, Checkpoints).  None: in disk mode the
  // server is new; in memory mode it outlived its node, or the owner finds what it missed from the
  // first entry's index.
  std::optional<Checkpoint> checkpoint;
  // It never votes or leads, and is a member only as MemberRole::kAnalysis.
  bool analysis = false;
  // The owner has no server that `checkpoint` and the log could bring up to date.  This replica
  // still votes and holds the log, but hands out nothing before its low-water mark.  If the store
  // does not contain the members, they come from `checkpoint`.
  bool acceptor_only = false;
  // kMemory: the replica keeps the log whole from its beginning, or from where this replica begins,
  // until keep_log().
  bool keeps_log = false;
  // The replica discards its memory and store, and recovers as one that lost its memory.
  bool forget = false;
  // How long a removed leader keeps leading after the removal is committed, before it hands over.
  std::uint64_t removed_leader_ns = 0;
  Callbacks callbacks;
};

// Current state of a follower's failure detection by pull-score (C6) of its leader.
struct DetectionStatus {
  int score = 0;       // falls with each heartbeat missed
  int suspect_at = 0;  // suspected at or below this score
  int trust_at = 0;    // trusted again at or above this score
  int full = 0;
  int misses_needed = 0;        // in a row from full score to suspicion; grows with the noise
  std::uint64_t period_ns = 0;  // between heartbeats
};

struct GroupStatus {
  Role role = Role::kFollower;
  View view{};
  ReplicaId leader{};
  Index last{};  // in this replica's log
  Index committed{};
  Index durable{};                // kDisk: stored by this replica
  Index applied{};                // handed to on_committed
  Index first{};                  // kDisk: oldest entry in this replica's store
  Index covered{};                // kDisk: stores may drop entries up to this one
  LatencyHistogram synced;        // kDisk: how long this store took to write entries to disk
  std::uint8_t connected = 0;     // peers with a running process
  bool failed = false;            // after on_fatal
  bool removed = false;           // failed, because the group removed this replica
  bool needs_checkpoint = false;  // it lacks entries that left the leader's ring and the stores
  bool fetching = false;          // it fetches them from peers' stores (kDisk)
  bool changing = false;          // a change of members is not committed yet
  // The memory or disk that cannot grow, so that inputs wait: its path, and how much is missing.
  // Empty: there is room.
  std::string no_room;
  std::vector<MemberStatus> members;
  ElectionStatus election;
  DetectionStatus detection;
  FabricStatus fabric;
};

// Cheap to read at any time.
struct QuorumStatus {
  unsigned voters = 0;     // of the members in force
  unsigned answering = 0;  // of these, those with a running process, self included
  bool led = false;        // this replica leads or follows a leader
};

class Consensus {
 public:
  // kGone: the checkpoint is older than what ring or store still hold; a newer one may help, and
  // `acceptor_only` works until then.  kDamaged: its facts are invalid.  kBadArgument: it belongs
  // to another group.  kUnsupported: the chosen fence does not work on this device, or huge pages
  // are required and unavailable.  kBusy, kFull, kNotFound (no device), kBadArgument, kSystem, ...:
  // `what` names the step that failed.
  static Result<std::unique_ptr<Consensus>> open(Options options);
  virtual ~Consensus() = default;

  // Appends an input.  kNotLeader: this replica is not the leader (yet, or any more).  kBusy: too
  // much is uncommitted, or a follower that is needed for a majority lags; call poll() and try
  // again.  kBadArgument: the payload is too long or the type is one of the core's own (>= 0xf0).
  virtual Result<Index> propose(std::uint8_t type, std::uint64_t stamp_ns, std::uint32_t grant,
                                std::span<const std::byte> payload) = 0;
  // Works until nothing is left to do.  Returns the absolute time of the next call that is needed
  // if event_fd() stays silent.  `now_ns`: CLOCK_MONOTONIC.
  virtual std::uint64_t poll(std::uint64_t now_ns) = 0;
  virtual int event_fd() const noexcept = 0;
  virtual void flush_doorbells() = 0;
  // This replica's server died or hangs (C6): hands leadership over, and does not seek it until
  // fit().  `successor`: the replica whose server is best; if it cannot lead now, or is nullopt,
  // the one whose log is.
  virtual void abdicate(const char* reason, std::optional<ReplicaId> successor = {}) = 0;
  virtual void fit() = 0;
  // This replica's server is `ns` behind the log (0: near its end) and has run entries up to `ran`.
  // When a leader is lost, replicas whose servers have run more campaign first (DESIGN C6).
  virtual void lags(std::uint64_t ns, Index ran) = 0;
  // Reports that this replica holds the server's state at entry `at` in files, whole and
  // verified, and keeps it until it reports a newer one; also called at a start for the newest
  // checkpoint.  In disk mode, once a majority of the voters have a checkpoint at an entry or after
  // it, all stores drop the entries up to that one (store/README.md, Truncation).  An earlier
  // entry than before has no effect.
  virtual void checkpointed(Index at) = 0;
  // Memory mode, with Options::keeps_log: a server may have to begin after this place, which
  // on_committed() gave or will give.  The log from the place on stays whole, and inputs wait for
  // room (kBusy) instead of overwriting it.  An earlier place than before has no effect.  nullptr:
  // the log is no longer kept; entries that were given up stay so when it is kept again.
  virtual void keep_log(const LogPlace* from) = 0;
  // kDisk: writes the entries after a place into a file, up to the last one that is committed and
  // in the store, once that reaches `through`.  The store's thread writes a piece at a time.
  // The caller repeats the same request until the copy is done or failed.  kBusy: another copy is
  // under way.  kGone: the store does not reach back to the place.  kBadArgument: the log has
  // another entry at the place.  kUnsupported: there is no store.  kFull, kSystem: writing the file
  // failed.
  virtual Result<LogCopy> copy_log(const LogCopyRequest&) {
    return Error{Code::kUnsupported, 0, "the log is in memory only"};
  }
  // Appends a change of members, which takes effect at once and is final when committed
  // (on_members). kNotLeader: status().leader may know the leader.  kBusy: a change or transfer is
  // under way, the learner lags, or too few of the remaining voters are in touch; try again.
  // kBadArgument: the change is invalid (adds a voter, removes the last one); `what` gives the
  // reason.
  virtual Result<Index> change_members(const MemberChange& change) = 0;
  // Hands leadership to a voter that follows closely.  propose() returns kBusy until that voter has
  // everything and takes over; if it does not within tens of milliseconds, this replica continues
  // to lead.  kNotLeader, kBusy, kBadArgument (not another voter).
  virtual Outcome transfer(ReplicaId to) = 0;
  // This replica leads and will continue to: no transfer has begun, and it is not being removed.
  virtual bool keeps_leading() const noexcept = 0;
  // The members in force, by id.
  virtual std::vector<MemberStatus> members() const = 0;
  // Sends a peer a small message outside of the log.  It may be lost; messages of one peer arrive
  // in order.  Returns false if it was not sent.  REQUIRES: bytes.size() <= kOutOfBandBytesMax.
  virtual bool send_message(ReplicaId to, std::span<const std::byte> bytes) = 0;
  // The last entry that `peer` handed to its application, as last reported; 0 if not the leader.
  virtual Index peer_applied(ReplicaId peer) const = 0;
  virtual GroupStatus status() const = 0;
  virtual QuorumStatus quorum() const = 0;
  // kDisk: the store's disk will be full soon; the log should be cut below a checkpoint.
  virtual bool low_on_room() const noexcept { return false; }
  // status().no_room contains the place.
  virtual bool out_of_room() const noexcept { return false; }
  // Returns the facts that a replica needs, besides its place, to begin after the last entry handed
  // out: the members, and the view in which they are known.  Opaque; also valid inside
  // on_committed().
  virtual std::vector<std::byte> group_facts() const = 0;
  // Entries proposed here and not yet committed.
  virtual std::uint64_t backlog() const = 0;
  // The largest payload that propose() accepts.
  virtual std::size_t payload_bytes_max() const noexcept = 0;
};

}  // namespace crane::consensus
