// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of protocol cores on a simulated one-sided fabric, with faults, clients and checkers.
//
// The fabric: every operation travels to the target's memory and back on the virtual clock, in
// order per pair and plane.  A write is checked against the target's live keys when it lands, not
// when it was posted, so late writes of fenced leaders are common.  A write may land in two parts
// at two times. A stopped process keeps its memory, which still takes writes; one that died keeps
// its memory or loses it.
//
// REPLAY  crane-sim --seed N --trace

#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "consensus/core/membership.h"
#include "consensus/core/replica.h"
#include "consensus/sim/application.h"
#include "consensus/sim/checkers.h"
#include "consensus/sim/coverage.h"
#include "consensus/sim/faults.h"
#include "consensus/sim/trace.h"
#include "consensus/sim/world.h"
#include "consensus/store/mem_store.h"

namespace crane::consensus::sim {

inline ReplicaId id_of(unsigned i) { return ReplicaId{static_cast<std::uint8_t>(i)}; }

inline constexpr std::uint64_t kLogId = 0x5eed'10f0'dead'beefU;  // of every simulated group

struct Outcome {
  std::uint64_t seed = 0;
  std::string violation;  // empty: every property held
  std::uint64_t digest = 0;
  std::uint64_t committed = 0;
  std::uint64_t views = 0;
  std::uint64_t events = 0;
  std::uint64_t incidents = 0;
  std::uint64_t changes = 0;  // CONFIG entries committed
  std::uint64_t removals_of_leaders = 0;
  bool given_up = false;      // no majority is left: a voter was removed while another lost its
                              // memory, or (memory mode) the others need a checkpoint
  std::uint64_t fetches = 0;  // times that a store was read for a peer
  std::uint64_t returns = 0;  // votes given back to replicas that had lost their memory
  std::uint64_t views_after_faults = 0;
  std::uint64_t restored = 0;  // servers restored from a checkpoint
  std::uint64_t refusals = 0;  // restores refused because the checkpoint was too old for the ring
  std::uint64_t rescues = 0;   // restarts of replicas that needed a checkpoint to continue
  std::uint64_t drops = 0;     // times that a store dropped covered entries
  std::uint64_t keeps = 0;     // places given to replicas from which a log stays whole
  std::uint64_t outages = 0;   // times that all processes died at once
  std::uint64_t full = 0;      // inputs that waited because a kept log filled the ring
  core::MoveCounts moves;
  ApplicationCounts application{};
  bool ok() const { return violation.empty(); }
};

struct Options {
  core::Mutant mutant = core::Mutant::kNone;
  std::FILE* trace = nullptr;
  bool changes = false;      // worlds of Faults::draw_changes ...
  bool laps = false;         // ... or of draw_laps ...
  bool checkpoints = false;  // ... or of draw_checkpoints ...
  bool analysis = false;     // ... or of draw_analysis ...
  bool slow_disks = false;   // ... or of draw_slow_disks
  // The cores run this application; the mutant removes one of its rules.  Null: no application.
  const ApplicationKind* application = nullptr;
  int application_mutant = 0;
  bool small = false;          // less time, faults closer together (Faults::condense)
  bool all = false;            // trace every operation
  std::string_view without;    // classes of faults to leave out (Faults::without)
  std::uint64_t salt = 0;      // varies the course of the world with the same faults
  std::uint64_t until_ns = 0;  // end the faults at this time; 0: as drawn
};

class Cluster {
 public:
  Cluster(std::uint64_t seed, const Faults& faults, const Options& options);
  // Runs the world to its end, or to the first violation.
  Outcome run();

  // --- for an Application
  World& world() { return world_; }
  unsigned replicas() const { return faults_.replicas; }
  bool faults_over() const { return faults_over_; }
  // The number of a replica's process; the process is up or stopped, or down until the next one.
  std::uint32_t process(unsigned id) const { return nodes_[id].process; }
  bool runs(unsigned id) const { return nodes_[id].life != Life::kDown; }
  bool is_stopped(unsigned id) const { return nodes_[id].life == Life::kPaused; }
  // Half of the worlds: replicas observe whether another one's process is stopped.
  bool on_one_host() const noexcept { return seed_ % 2 == 0; }
  // Does `what` if that process still runs; if it is stopped, as soon as it continues.
  template <typename What>
  void for_process(unsigned id, std::uint32_t process, What&& what) {
    Node& n = nodes_[id];
    if (n.life == Life::kDown || n.process != process) return;
    if (n.life == Life::kPaused) {
      n.deferred.emplace_back(std::forward<What>(what));
    } else {
      what();
    }
  }
  // Does it after this time, if today's process still runs then.
  template <typename What>
  void after(std::uint64_t delay_ns, unsigned id, What&& what) {
    world_.after(delay_ns, [this, id, process = nodes_[id].process,
                            what = std::forward<What>(what)]() mutable {
      for_process(id, process, std::move(what));
    });
  }
  // As core::Replica::propose(); carry_on() must follow the last one.
  Result<Index> propose(unsigned id, const core::Proposal& proposal);
  void carry_on(unsigned id) { pump(id); }
  // Kills or stops its process for a while.
  void end_process(unsigned id, std::uint64_t length_ns);
  void stop_process(unsigned id, std::uint64_t length_ns);
  void violate(const std::string& complaint);
  void note(std::uint64_t a, std::uint64_t b);
  void trace_line(const char* format, ...) __attribute__((format(printf, 2, 3)));

 private:
  enum class Life : std::uint8_t { kUp, kPaused, kDown };

  struct Grant {
    bool live = false;
    std::uint64_t key = 0;
  };
  struct DiskJob {
    View promise{};  // if set: a promise
    core::FetchEntries fetch;
    core::StoreEntries entries;
    std::vector<std::byte> bytes;
    Index drop{};  // if set: drop the entries up to here
  };
  struct Node {
    Life life = Life::kDown;
    bool lost = false;          // it lost its memory since it last ran
    std::uint32_t process = 0;  // number of the process; events of older ones are stale
    std::uint32_t incarnation = core::kFirstIncarnation;  // a new one after each loss of memory
    core::ConfigAt config;                                // of its log when it went down
    std::vector<std::byte> memory;
    std::array<core::Cell, 3> cells{};
    std::vector<Grant> grants;  // by writer
    std::unique_ptr<core::Replica> core;
    std::vector<Task> deferred;       // while paused
    std::vector<Task> stuck;          // second halves of torn copies, while paused
    std::deque<core::Event> answers;  // the fabric's answers, for after the list of actions
    bool pumping = false;
    bool arrival_reported = false;
    std::uint64_t tick_at_ns = 0;
    std::uint64_t app_stalled_until_ns = 0;
    std::uint64_t offset_ns = 0;
    std::int64_t skew_ppm = 0;
    std::vector<std::uint64_t> in_flight;  // proposals of its reign
    bool leads = false;
    core::Cursor server_position;        // position of its server in the log
    unsigned refused = 0;                // checkpoints refused in a row
    std::vector<core::Checkpoint> kept;  // its checkpoints, by index
    bool packing = false;                // another one is about to be published
    std::optional<Index> begins;         // its log begins after it; for on_begun()
    bool discarded_log = false;          // its log is not kept
    std::optional<core::Checkpoint>
        keep_place;  // the last place that it was given to keep its log from
    // Disk mode.
    store::MemDisk disk;
    std::unique_ptr<store::MemStore> store;  // outlives the core until the next start
    std::deque<DiskJob> jobs;                // the first one is under way
    bool no_memory = false;                  // it lost its power
    bool no_disk = false;                    // its machine was replaced
    bool disk_failed = false;                // its process ends for this reason
    std::uint64_t slow_factor = 1;           // of its network card
  };
  struct Flight {  // a write under way
    unsigned from = 0;
    unsigned to = 0;
    std::uint32_t process = 0;
    std::uint32_t connection = 0;
    std::uint64_t key = 0;
    std::uint64_t offset = 0;
    Token token{};
    std::size_t first = 0;  // bytes of the part that lands first
    std::vector<std::byte> bytes;
  };
  // Reuses flights, so that their buffers keep their memory.
  struct FlightRecycler {
    std::vector<std::unique_ptr<Flight>>* idle = nullptr;
    void operator()(Flight* f) const { idle->emplace_back(f); }
  };
  using FlightPtr = std::unique_ptr<Flight, FlightRecycler>;
  struct Link {
    bool cut = false;
    bool refuses = false;          // operations fail at once
    std::uint32_t connection = 0;  // CloseLog makes a new one
    bool broken = false;
    bool torn = false;  // a write has half landed: later ones wait
    std::deque<FlightPtr> waiting;
    std::uint64_t write_at_ns = 0;  // time of the last arrival, per plane
    std::uint64_t done_at_ns = 0;
    std::uint64_t cell_at_ns = 0;
    std::uint64_t message_at_ns = 0;
  };

  // cluster.cc: processes, actions
  void start(unsigned id, core::StartKind kind, std::optional<core::Checkpoint> checkpoint = {});
  void step(unsigned id, const core::Event& event);
  void pump(unsigned id);
  void carry_out(unsigned id, const core::Action& action);
  void deliver(unsigned id);
  void check_delivered(unsigned id, const core::Entry& entry);
  unsigned holders_of(const core::Entry& entry, const core::Members& voters);
  void on_role(unsigned id, const core::RoleChange& change);
  void on_fatal(unsigned id, const core::Fatal& fatal);
  void plan_tick(unsigned id);
  void tick(unsigned id);
  std::uint64_t local_time(unsigned id) const;
  core::Now now_at(unsigned id);
  std::uint64_t world_time(unsigned id, std::uint64_t local_ns) const;
  void trace(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void show_state();

  // network.cc
  std::uint64_t delay();
  std::uint64_t delay(unsigned from, unsigned to);
  Link& link(unsigned from, unsigned to) { return links_[from * faults_.replicas + to]; }
  bool reachable(unsigned from, unsigned to);
  void write_log(unsigned from, const core::WriteLog& w);
  FlightPtr new_flight();
  void arrive(FlightPtr f);
  void finish_torn(FlightPtr f);
  bool land(const Flight& f, std::size_t begin, std::size_t end);
  void finish(const Flight& f, bool ok);
  void read_log(unsigned from, const core::ReadLog& r);
  void read_cell(unsigned from, const core::ReadCell& r);
  void send(unsigned from, const core::SendMessage& s);
  void trace_message(unsigned from, unsigned to, const core::Message& m);
  void message_at(std::uint64_t at, unsigned from, unsigned to, const core::Message& m);
  void complete(unsigned from, unsigned to, Token token, bool ok, bool log_plane,
                std::vector<std::byte> data);
  void report_arrival(unsigned id);
  void permit(unsigned id, unsigned writer);
  void revoke(unsigned id, unsigned writer);
  void answer(unsigned id, const core::Event& event);

  // disk.cc
  void begin_disk(unsigned id, core::Start& start, std::optional<core::Checkpoint>& checkpoint);
  void replay(unsigned id, Index from, Index upto);
  void submit(unsigned id, DiskJob job);
  void run_disk(unsigned id);
  void finish_disk(unsigned id);
  void finish_fetch(unsigned id, const core::FetchEntries& fetch);
  void crash_disk(unsigned id);
  void lose_power(unsigned id);
  bool lose_power_sometimes(std::uint64_t& pick, unsigned id, std::uint64_t length);
  unsigned holders_on_disk(const core::Entry& entry, const core::Members& voters);

  // incidents.cc
  void plan_incident();
  void incident();
  unsigned victim();
  void crash(unsigned id);
  void lose_memory(unsigned id);
  void wipe(Node& n);
  void lose_machine(unsigned id);
  void restart(unsigned id);
  void pause(unsigned id);
  void resume(unsigned id);
  void cut(unsigned a, unsigned b, bool value);
  void cut_both(unsigned a, unsigned b, bool value);
  void heal();
  void propose();
  // members.cc
  void plan_change();
  void change();
  void change_by(unsigned leader);
  void on_removed(unsigned id);
  void revive(unsigned id);
  void on_config(const core::Entry& entry);
  core::ConfigAt newest_config(unsigned id) const;
  core::ConfigAt newest_config() const;
  bool may_lose(unsigned id) const;
  bool outlives_loss(const core::Members& members, unsigned id) const;
  void check_member_at_end(unsigned id);
  bool some_catch_up() const;
  bool some_majority_needs_none() const;
  std::vector<std::byte> payload(const Node& leader, std::uint64_t number);
  void check_end();

  // checkpoints.cc
  bool checkpoints_on() const noexcept { return faults_.checkpoint_every_ns != 0; }
  void plan_checkpoint();
  void take_checkpoint(unsigned id);
  void checkpoint_if_due(unsigned id);
  std::optional<core::Checkpoint> checkpoint_for(unsigned id);
  std::optional<core::Checkpoint> choose_checkpoint(unsigned id);
  void keep(unsigned id, const core::Checkpoint& one);
  std::optional<core::Checkpoint> checkpoint_reaching(unsigned id);
  std::vector<core::Checkpoint> kept_by_all() const;
  void publish_checkpoint(unsigned id, const core::Checkpoint& made);
  void report_held(unsigned id);
  void on_refused(unsigned id);
  void rescue();

  // keeping.cc
  bool keeps_log() const noexcept { return faults_.keeps_log && !faults_.disk; }
  void plan_keep();
  void keep_round();
  void keep_log(unsigned id, const std::optional<core::Checkpoint>& from, std::uint64_t late_ns);
  void plan_outage();
  void outage();
  std::optional<core::Checkpoint> checkpoint_to_keep_from(unsigned id);
  void note_begun(unsigned id);

  // scenes.cc
  void more_incident(std::uint64_t pick, unsigned id, std::uint64_t length);
  void mute(unsigned id, std::uint64_t length);
  void refuse(unsigned id, std::uint64_t length);
  void race(std::uint64_t length);
  void flap(unsigned id, std::uint64_t times);
  void jump(unsigned id);
  void slow_nic(unsigned id, std::uint64_t length);
  void bad_disk(unsigned id, std::uint64_t length);
  void faults_end();
  void hand_over();
  void begin_scene();
  void keep_all_unfit();
  void fall_behind(unsigned id, std::uint64_t unfit_until_ns);
  void wipe_majority();
  void forge(const Node& leader, std::vector<std::byte>& payload) const;
  unsigned leader() const;
  void check_calm();

  const std::uint64_t seed_;
  const Faults faults_;
  const Options options_;
  std::vector<std::unique_ptr<Flight>> idle_flights_;  // outlives the flights under way
  World world_;
  Random keep_random_;  // of keeping.cc
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::uint64_t next_key_ = 1;
  std::uint64_t next_proposal_ = 1;
  Index last_input_{};  // of clients, delivered
  std::uint64_t lost_count_ = 0;
  core::ConfigAt committed_config_;
  bool faults_over_ = false;
  bool given_up_in_vain_ = false;  // a log was given up, and no checkpoint reaches the rest
  bool keeps_on_ = false;          // all replicas get places again, after the last fault
  bool ended_ = false;
  unsigned more_time_ = 0;
  std::uint64_t delivered_at_check_ = 0;  // by all replicas
  std::uint64_t committed_at_heal_ = 0;
  std::uint64_t faults_end_ns_;  // when the faults end
  unsigned hand_overs_ = 0;
  std::uint64_t lag_ns_ = 0;              // of applications that fall behind
  bool beyond_ = false;                   // more was lost than the protocol promises to survive
  bool fatal_seen_ = false;               // ... and a replica noticed
  std::vector<std::uint64_t> again_;      // proposals a mutant repeats
  std::vector<std::uint8_t> committers_;  // by index: first replica to know the commit
  core::ActionList actions_;

  AgreementChecker agreement_;
  NoGapChecker no_gap_;
  SingleWriterChecker single_writer_;
  MajorityChecker majority_;
  OwnViewChecker own_view_;
  AtMostOnceChecker at_most_once_;
  UniqueViewChecker unique_views_;
  LivenessChecker liveness_;
  StableChecker stable_;
  NoticedChecker noticed_;
  TruncationChecker covered_;
  AnalysisChecker analysis_;
  InSightChecker in_sight_;
  KeptLogChecker kept_log_;
  Trace trace_;
  Outcome outcome_;
  std::unique_ptr<Application> application_;  // null: the client of propose()
};

// The faults of a seed's world of that kind.
Faults draw(std::uint64_t seed, const Options& options);
// Draws the faults from the seed and runs the world.
Outcome run_seed(std::uint64_t seed, const Options& options = {});
// The seed in the environment (CRANE_SEED), else `fallback`.
std::uint64_t first_seed(std::uint64_t fallback);
const char* name(core::Mutant mutant);

}  // namespace crane::consensus::sim
