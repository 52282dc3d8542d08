// SPDX-License-Identifier: Apache-2.0
// The tables of the documents of Crane's programs (answers.h).
#include "runtime/control/answers.h"

namespace crane::control {
namespace {

using F = AnswerField;
constexpr auto kAlways = Presence::kAlways;
constexpr auto kOrNull = Presence::kOrNull;
constexpr auto kSometimes = Presence::kSometimes;

constexpr F kVersionField{"version", Holds::kNumber, kAlways, "of this schema"};

// --- the state of a replica and of the group

constexpr F kProgress[] = {
    {"done", Holds::kNumber, kAlways, "entries of what it missed that its server has run"},
    {"of", Holds::kNumber, kAlways, "entries that it missed"},
    {"per_s", Holds::kNumber, kAlways, "entries that it runs in a second"},
    {"left_ms", Holds::kNumber, kOrNull, "until none is left; null: not known"},
};
constexpr F kReadiness[] = {
    {"runs", Holds::kFlag, kAlways, "its server does"},
    {"starts", Holds::kFlag, kAlways, "its server has not begun, or never listened on a port"},
    {"takes_clients", Holds::kFlag, kAlways, "it leads, and its server knows that"},
    {"recovers", Holds::kFlag, kAlways, "it runs what it missed"},
    {"needs_checkpoint", Holds::kFlag, kAlways, "it lacks entries that left the log"},
    {"acceptor_only", Holds::kFlag, kAlways,
     "it votes, and has no server: it waits for a checkpoint"},
    {"paced", Holds::kFlag, kAlways, "its clients wait for followers' servers, or a checkpoint"},
    {"no_room", Holds::kFlag, kAlways, "a disk or memory is full: its log cannot grow"},
    {"late", Holds::kFlag, kAlways, "its server could not serve within 200 ms if it led"},
    {"lag_ms", Holds::kNumber, kAlways, "age of the oldest entry that its server has not taken"},
    {"progress", Holds::kObject, kOrNull, "null: it does not recover, and has a server", kProgress},
    {"why_not", Holds::kText, kOrNull, "why its server serves no client; null: it does"},
};
constexpr F kVerdict[] = {
    {"health", Holds::kText, kAlways, "well, degraded, drained, starting, not serving, no leader"},
    {"serving", Holds::kFlag, kAlways, "a client that connects now is answered"},
    {"text", Holds::kText, kAlways, "one line, for people"},
    {"notes", Holds::kTexts, kAlways,
     "what is wrong with which replica; why no checkpoints are taken"},
};

// --- a member, in the view of a node

constexpr F kHost[] = {
    {"commit", Holds::kText, kAlways, "of its build"},
    {"begun_unix_s", Holds::kNumber, kAlways, "when its node began"},
    {"disk_bytes", Holds::kNumber, kAlways,
     "size of the file system of its group's directory; 0: not known"},
    {"disk_free_bytes", Holds::kNumber, kAlways, "free there"},
};
constexpr F kMemberFields[] = {
    {"replica", Holds::kNumber, kAlways, "its number"},
    {"member", Holds::kText, kAlways, "voter, learner or analysis"},
    {"incarnation", Holds::kNumber, kAlways, "how often it began as a new member"},
    {"connected", Holds::kFlag, kAlways, "its process is connected"},
    {"needs_checkpoint", Holds::kFlag, kAlways, "it lacks entries that left the log"},
    {"streaming", Holds::kFlag, kSometimes, "the leader writes to its log"},
    {"silent", Holds::kFlag, kSometimes, "it was asked how it is, and does not answer"},
    {"was_there", Holds::kFlag, kSometimes, "since the node that tells this began"},
    {"drained", Holds::kFlag, kSometimes,
     "of one that is not connected: an operator drained it, or it is lost; absent: not known"},
    {"readiness", Holds::kObject, kSometimes, "as it has told", kReadiness},
    {"host", Holds::kObject, kSometimes, "its node and machine, as it has told", kHost},
    {"last", Holds::kNumber, kSometimes, "log index up to which it holds the log"},
    {"applied", Holds::kNumber, kSometimes, "log index up to which its server took the log"},
    {"lag_entries", Holds::kNumber, kSometimes,
     "that the leader's server took and its own did not"},
    {"lag_ms", Holds::kNumber, kSometimes, "age of the oldest of these; 0: less than 20"},
};

// --- parts of a node's status

constexpr F kElection[] = {
    {"view", Holds::kNumber, kAlways, "that it began"},
    {"cause", Holds::kText, kAlways, "why it was held"},
    {"took_us", Holds::kNumber, kAlways, "from the loss of the leader until there was one"},
    {"age_ms", Holds::kNumber, kAlways, "since then"},
};
constexpr F kDetection[] = {
    {"score", Holds::kNumber, kAlways, "falls with each heartbeat missed"},
    {"suspect_at", Holds::kNumber, kAlways, "the leader is suspected at or below"},
    {"trust_at", Holds::kNumber, kAlways, "and trusted again at or above"},
    {"full", Holds::kNumber, kAlways, "the highest score"},
    {"misses_needed", Holds::kNumber, kAlways, "in a row, from full to suspicion"},
    {"period_us", Holds::kNumber, kAlways, "between heartbeats"},
};
constexpr F kVerified[] = {
    {"index", Holds::kNumber, kAlways, "log index up to which a majority's outputs were equal"},
    {"verdict", Holds::kText, kAlways, "of the last comparison: equal, different, unknown"},
    {"entries_since", Holds::kNumber, kAlways, "entries that the server took since `index`"},
    {"age_ms", Holds::kNumber, kOrNull, "since that comparison; null: there was none"},
    {"alarm", Holds::kText, kAlways, "which replica differed where; empty: none"},
    {"differ", Holds::kFlag, kAlways, "they differ still; false: all voters are equal again"},
};
constexpr F kUnhooked[] = {
    {"call", Holds::kText, kAlways, "the system call"},
    {"object", Holds::kText, kAlways, "the file whose code made it"},
    {"offset", Holds::kText, kAlways, "the place in that file, hexadecimal"},
    {"outcome", Holds::kText, kAlways, "scheduled, refused or passed"},
    {"count", Holds::kNumber, kAlways, "how often"},
};
constexpr F kOutbound[] = {
    {"address", Holds::kText, kAlways, "with the port; others: those beyond the first 256"},
    {"connections", Holds::kNumber, kAlways, "that the server asked for"},
    {"allowed", Holds::kFlag, kAlways, "by --outbound"},
};
constexpr F kUnsupported[] = {
    {"datagrams", Holds::kNumber, kAlways, "to others, dropped"},
    {"udp_ports", Holds::kNumber, kAlways, "opened, and no client reaches them"},
    {"sandboxes", Holds::kNumber, kAlways, "seccomp's, not applied"},
};
constexpr F kStanding[] = {
    {"slot", Holds::kNumber, kAlways, "the thread that has the turn and takes no operation"},
    {"clock", Holds::kNumber, kAlways, "the turn"},
    {"for_ms", Holds::kNumber, kAlways, "for so long"},
};
constexpr F kUnsliced[] = {
    {"where", Holds::kText, kAlways, "its object, and the address there; or why it is not known"},
    {"for_ms", Holds::kNumber, kAlways, "so long, when it was looked at"},
};
constexpr F kSoftBarriers[] = {
    {"function", Holds::kText, kAlways, "whose callers wait for each other"},
    {"origin", Holds::kText, kAlways, "where it was asked for"},
    {"state", Holds::kText, kAlways, "whether it was found and is in force"},
    {"count", Holds::kNumber, kAlways, "threads that are waited for"},
    {"timeout_us", Holds::kNumber, kAlways, "and for how long"},
    {"arrivals", Holds::kNumber, kAlways, "threads that came"},
    {"rounds", Holds::kNumber, kAlways, "how often all went on"},
};
constexpr F kLatency[] = {
    {"count", Holds::kNumber, kAlways, "how often it was measured"},
    {"mean_us", Holds::kNumber, kAlways, "of all of them"},
    {"p50_us", Holds::kNumber, kAlways, "half took no longer; the bound of a bucket"},
    {"p99_us", Holds::kNumber, kAlways, "99 of 100 took no longer; the bound of a bucket"},
};
constexpr F kCheckpoint[] = {
    {"taken", Holds::kNumber, kAlways, "checkpoints that this replica published"},
    {"failed", Holds::kNumber, kAlways, "and that it gave up"},
    {"last", Holds::kNumber, kAlways, "log index of the newest published one; 0: none"},
    {"under_way", Holds::kNumber, kAlways, "log index of the one that is taken now; 0: none"},
    {"gave_up", Holds::kNumber, kAlways, "log index of the newest one given up; 0: none"},
    {"why_not", Holds::kText, kAlways, "why that was given up"},
    {"busy", Holds::kFlag, kAlways, "since the one before was not finished: ask again"},
    {"rest_us", Holds::kNumber, kAlways, "of the newest: until the server was quiescent"},
    {"held_us", Holds::kNumber, kAlways, "how long its server was held"},
    {"pack_us", Holds::kNumber, kAlways, "how long packing took, beside the server"},
    {"prepare_us", Holds::kNumber, kAlways, "how long the preparation took"},
    {"phases_us", Holds::kCounts, kAlways, "microseconds of each phase"},
    {"restored_at", Holds::kNumber, kAlways,
     "log index where this replica recovered; 0: it did not"},
    {"none_because", Holds::kText, kAlways, "why none are taken; empty: they are"},
    {"log_first", Holds::kNumber, kAlways, "log index of the oldest entry on disk; 0: none"},
    {"log_covered", Holds::kNumber, kAlways, "log index up to which checkpoints replace the log"},
    {"return_us", Holds::kCounts, kAlways, "microseconds of each phase of recovering"},
};
constexpr F kRecovery[] = {
    {"tier", Holds::kText, kAlways,
     "what a lost replica would recover by: criu, restart, replay, none"},
    {"entry", Holds::kNumber, kAlways, "log index of that checkpoint; 0: of none"},
    {"why", Holds::kText, kAlways, "why it is not criu; empty: it is"},
    {"refused", Holds::kText, kAlways, "what CRIU has against the server; empty: nothing known"},
    {"came_back_by", Holds::kText, kAlways, "as tier; empty: it began with the group"},
    {"catches_up", Holds::kFlag, kAlways,
     "with what the others did meanwhile: it does not seek the lead"},
    {"progress", Holds::kObject, kOrNull, "of running what it missed; null: it has", kProgress},
};
constexpr F kOperation[] = {
    {"operation", Holds::kText, kAlways,
     "checkpoint (packs or verifies its own), fetch (from another replica), give (to one), unpack "
     "(a checkpoint to begin at)"},
    {"replica", Holds::kNumber, kAlways, "the replica that carries it out"},
    {"step", Holds::kText, kAlways, "the present step, for people"},
    {"unit", Holds::kText, kAlways, "of the numbers: bytes or entries"},
    {"done", Holds::kNumber, kAlways, "how much of this step is done"},
    {"of", Holds::kNumber, kAlways, "the whole of this step; 0: not known"},
    {"per_s", Holds::kNumber, kAlways, "how much is done in a second"},
    {"left_ms", Holds::kNumber, kOrNull, "until the step ends; null: not known"},
};
constexpr F kUpgrade[] = {
    {"state", Holds::kText, kAlways, "none, asked, trial, kept, failed, rolled back"},
    {"entry", Holds::kNumber, kAlways, "log index of the entry that ended the server; 0: none"},
    {"why", Holds::kText, kAlways, "why it was rolled back; empty: it was not"},
    {"command", Holds::kText, kAlways, "the server's command line now, a JSON list"},
    {"files", Holds::kNumber, kAlways, "generation of the machine's files that it reads"},
};
constexpr F kBuild[] = {
    {"commit", Holds::kText, kAlways, "of its crane-node"},
    {"versions", Holds::kText, kAlways, "those that must be equal on all replicas"},
    {"segment", Holds::kNumber, kAlways, "the version that it shares with libcrane.so"},
    {"libcrane", Holds::kText, kOrNull,
     "digest of the libcrane.so that its server loads; may differ; null: there is no server yet"},
};
constexpr F kDiffers[] = {
    {"index", Holds::kNumber, kAlways, "log index of the first difference"},
    {"text", Holds::kText, kAlways, "what differs"},
};
constexpr F kAnalysis[] = {
    {"tool", Holds::kText, kAlways, "of valgrind"},
    {"entry", Holds::kNumber, kAlways, "log index up to which the server took the log"},
    {"got", Holds::kNumber, kAlways, "log index up to which the log is here"},
    {"behind", Holds::kNumber, kAlways, "entries between these"},
    {"spooled_bytes", Holds::kNumber, kAlways, "of the log on disk"},
    {"findings", Holds::kNumber, kAlways, "different ones"},
    {"reports", Holds::kNumber, kAlways, "files of findings"},
    {"first_findings", Holds::kTexts, kAlways, "the first few"},
    {"report", Holds::kText, kAlways, "the file with all"},
    {"digests_equal", Holds::kNumber, kAlways, "comparisons with the group that were equal"},
    {"equal_to", Holds::kNumber, kAlways, "log index of the last one"},
    {"differs", Holds::kObject, kOrNull, "where it left the group's schedule", kDiffers},
    {"ended", Holds::kText, kAlways, "why it goes no further; empty: it does"},
};

// --- a node

constexpr F kNode[] = {
    kVersionField,
    {"t", Holds::kText, kAlways, "status"},
    {"group", Holds::kText, kAlways, "the group's name"},
    {"replica", Holds::kNumber, kAlways, "its number"},
    {"replicas", Holds::kNumber, kAlways, "places in the group"},
    {"fabric", Holds::kText, kAlways, "shm, tcp or verbs"},
    {"durability", Holds::kText, kAlways, "memory or disk"},
    {"pid", Holds::kNumber, kAlways, "of the node"},
    {"server_pid", Holds::kNumber, kOrNull, "of the server's first process; null: it does not run"},
    {"server_exit", Holds::kNumber, kOrNull, "its exit status, by the log; null: it did not end"},
    {"server_end", Holds::kText, kOrNull, "then: exited, signal or background (others went on)"},
    {"server_refused", Holds::kText, kOrNull, "then: what libcrane.so refused it last, and why"},
    {"role", Holds::kText, kAlways, "leader, follower, candidate, ..; analysis"},
    {"view", Holds::kNumber, kAlways, "this replica's; each leader has one of its own"},
    {"leader", Holds::kNumber, kOrNull, "the leader of that view; null: none is known"},
    {"members", Holds::kObjects, kAlways, "of the group", kMemberFields},
    {"peers", Holds::kObjects, kAlways, "the others, as they have told, and as a leader knows them",
     kMemberFields},
    {"peers_connected", Holds::kNumber, kAlways, "peers whose process is connected"},
    {"changing_members", Holds::kFlag, kAlways, "a change of members is not committed yet"},
    {"needs_checkpoint", Holds::kFlag, kAlways, "it lacks entries that left the log"},
    {"catching_up", Holds::kFlag, kAlways, "it takes entries from the others' disks"},
    {"last_election", Holds::kObject, kOrNull, "null: it has seen none", kElection},
    {"detection", Holds::kObject, kOrNull, "of the leader's failure; null: there are no heartbeats",
     kDetection},
    {"last", Holds::kNumber, kAlways, "log index of the last entry of its log; 0: none"},
    {"commit", Holds::kNumber, kAlways, "log index of the last committed entry it knows; 0: none"},
    {"durable", Holds::kNumber, kOrNull, "log index up to which its disk holds the log"},
    {"applied", Holds::kNumber, kAlways, "log index of the last entry its server took; 0: none"},
    {"clock", Holds::kNumber, kAlways, "turns that the server took"},
    {"schedule_hash", Holds::kText, kAlways, "of them, hexadecimal; to be compared when `settled`"},
    {"settled", Holds::kFlag, kAlways, "no thread had the turn while clock and hash were read"},
    {"verified", Holds::kObject, kSometimes, "live checking", kVerified},
    {"no_quorum", Holds::kText, kOrNull,
     "why clients are not served, and what becomes of them; null: they are served"},
    {"no_room", Holds::kText, kOrNull,
     "disk or shared memory that is full, so that its log cannot grow; null: it can"},
    {"not_serving", Holds::kText, kOrNull, "why its server serves no client; null: it does"},
    {"supervised", Holds::kFlag, kAlways,
     "a program starts lost replicas; false: no crane-run does, or it is stopped"},
    {"outputs_bytes", Holds::kNumber, kAlways, "that the server wrote to its clients"},
    {"outputs_digest", Holds::kText, kAlways, "of them, hexadecimal"},
    {"entries", Holds::kCounts, kAlways, "committed entries, by type"},
    {"entries_total", Holds::kNumber, kAlways, "all of them"},
    {"inputs", Holds::kNumber, kAlways, "those that clients and signals caused"},
    {"ports", Holds::kPairs, kAlways, "of a node by itself: the server's and the host's"},
    {"device", Holds::kText, kOrNull, "RDMA device; null: none"},
    {"fence", Holds::kText, kOrNull, "how a leader's right to write is taken back"},
    {"log_pages", Holds::kText, kOrNull, "pages of the log's memory"},
    {"links_lost", Holds::kNumber, kAlways, "connections to peers that were lost"},
    {"probes", Holds::kNumber, kAlways, "questions to peers whether they live"},
    {"cpus", Holds::kText, kOrNull, "processors that it is bound to"},
    {"placement", Holds::kText, kOrNull,
     "of its node: shares its server's processor or roams, as it found best; null: no choice"},
    {"numa_node", Holds::kNumber, kOrNull, "whose memory it prefers"},
    {"unhooked_calls", Holds::kNumber, kSometimes,
     "system calls that bypassed libcrane.so; null: the kernel cannot tell"},
    {"unhooked", Holds::kObjects, kSometimes, "the first few different ones", kUnhooked},
    {"unsupported", Holds::kObject, kSometimes, "requested by the server, not supported by Crane",
     kUnsupported},
    {"spins", Holds::kFlag, kAlways, "threads that spin are preempted"},
    {"preempted", Holds::kNumber, kAlways, "how often"},
    {"standing_still", Holds::kObject, kOrNull, "null: no thread does", kStanding},
    {"slices", Holds::kNumber, kAlways, "time slices of computations that ended"},
    {"tick_points", Holds::kNumber, kAlways, "places in programs at which slices end"},
    {"unsliced", Holds::kObject, kOrNull,
     "a leader's: the last computation that had no such place; null: none", kUnsliced},
    {"soft_barriers", Holds::kObjects, kSometimes, "points where threads wait for each other",
     kSoftBarriers},
    {"connections", Holds::kNumber, kAlways, "clients now, and others that the server talks to"},
    {"outbound", Holds::kObjects, kAlways, "whom the server has connected to", kOutbound},
    {"accepted", Holds::kNumber, kAlways, "clients since it began"},
    {"refused", Holds::kNumber, kAlways, "those that the server did not take"},
    {"reset_slow", Holds::kNumber, kAlways, "those that read too slowly"},
    {"reset_leader", Holds::kNumber, kAlways, "those that lost their leader"},
    {"takes_clients", Holds::kFlag, kAlways, "it leads, and its server knows that"},
    {"keeps_connections", Holds::kFlag, kAlways, "connections outlive the leader"},
    {"adopted", Holds::kNumber, kAlways,
     "connections that this replica went on with as a new leader"},
    {"last_adopted", Holds::kNumber, kAlways, "of these, when it last became the leader"},
    {"last_reset", Holds::kNumber, kAlways, "connections that it could not go on with then"},
    {"bytes_in", Holds::kNumber, kAlways, "from clients"},
    {"bytes_out", Holds::kNumber, kAlways, "to clients"},
    {"forwarded", Holds::kNumber, kAlways, "clients that are passed on to the leader's host"},
    {"waited_ms", Holds::kNumber, kAlways, "clients waited for slow followers"},
    {"leader_changes", Holds::kNumber, kAlways, "reigns of which it knew the leader"},
    {"lag_ms", Holds::kNumber, kAlways,
     "age of the oldest entry that a follower's server has not taken"},
    {"may_lose", Holds::kNumber, kOrNull,
     "replicas that may be lost, whichever they are, and one of the others leads and serves at "
     "once; null: not known"},
    {"readiness", Holds::kObject, kSometimes, "how this replica is", kReadiness},
    {"verdict", Holds::kObject, kSometimes, "how the group is, as this replica knows it", kVerdict},
    {"commit_latency", Holds::kObject, kOrNull, "of what it proposed; null: it proposed nothing",
     kLatency},
    {"store_latency", Holds::kObject, kOrNull,
     "of its store, until entries are on disk; null: it wrote none", kLatency},
    {"spooled_bytes", Holds::kNumber, kAlways, "committed, and not in its server's memory yet"},
    {"wakeups", Holds::kNumber, kAlways, "of the node"},
    {"divergences", Holds::kNumber, kAlways, "comparisons that found a difference"},
    {"checkpoint", Holds::kObject, kSometimes, "what this replica made of them", kCheckpoint},
    {"recovery", Holds::kObject, kAlways, "what a replica lost now would recover by", kRecovery},
    {"operations", Holds::kObjects, kAlways, "long ones that it carries out now", kOperation},
    {"upgrade", Holds::kObject, kSometimes, "the last one of the server", kUpgrade},
    {"build", Holds::kObject, kSometimes, "of Crane", kBuild},
    {"analysis", Holds::kObject, kSometimes, "of an analysis replica", kAnalysis},
    {"log_digest", Holds::kText, kSometimes, "names the log that its checkpoints belong to"},
};

// --- a group

constexpr F kReturns[] = {
    {"why", Holds::kText, kAlways, "it ended"},
    {"attempts", Holds::kNumber, kAlways, "ends in a row"},
    {"next_unix_ms", Holds::kNumber, kAlways, "time of the next attempt"},
    {"next_in_ms", Holds::kNumber, kAlways, "until then"},
    {"command", Holds::kText, kAlways, "starts it at once"},
};
constexpr F kDisk[] = {
    {"files_bytes", Holds::kNumber, kOrNull,
     "on disk, of what its server wrote to files; null: they are too many to be counted"},
    {"checkpoints_bytes", Holds::kNumber, kOrNull, "on disk, of its checkpoints"},
    {"store_bytes", Holds::kNumber, kOrNull, "on disk, of its log; 0: it is in memory"},
};
constexpr F kGrowth[] = {
    {"over_seconds", Holds::kNumber, kAlways, "between the oldest and the newest checkpoint here"},
    {"files_bytes_per_hour", Holds::kNumber, kAlways,
     "of the server's files, between these; negative: they shrank"},
    {"log_bytes_per_hour", Holds::kNumber, kAlways, "of the log"},
};
constexpr F kRows[] = {
    {"replica", Holds::kNumber, kAlways, "its number"},
    {"state", Holds::kText, kAlways,
     "ok, drained, starts, node is gone, does not answer, not permitted, no member, on another "
     "host; over links also unreachable, another secret, another replica, ended"},
    {"over_link", Holds::kFlag, kSometimes, "true: of another host, whose node was asked"},
    {"lag_entries", Holds::kNumber, kSometimes, "committed entries that its server has not taken"},
    {"returns", Holds::kObject, kSometimes, "of one that is away: when it is started", kReturns},
    {"disk", Holds::kObject, kSometimes, "what it takes of this machine's disks", kDisk},
};
constexpr F kGroup[] = {
    kVersionField,
    {"group", Holds::kText, kAlways, "its name"},
    {"health", Holds::kText, kAlways, "well, degraded, drained, starting, not serving, no leader"},
    {"verdict", Holds::kObject, kAlways, "how the group is", kVerdict},
    {"leader", Holds::kNumber, kOrNull, "the replica that leads; null: none is known"},
    {"view", Holds::kNumber, kOrNull, "that leader's; null: no leader is known"},
    {"commit", Holds::kNumber, kOrNull, "log index of the last committed entry; null: none tells"},
    {"replicas", Holds::kObjects, kAlways,
     "one that answers (ok) has the fields of `node` as well, one that starts perhaps "
     "`operations`; "
     "one of another host those of its member, as a node here knows them",
     kRows},
    {"may_lose", Holds::kNumber, kOrNull,
     "replicas that may be lost, whichever they are, and one of the others leads and serves at "
     "once; null: not known"},
    {"not_serving", Holds::kText, kOrNull, "why the server serves no client; null: it does"},
    {"free_bytes", Holds::kNumber, kSometimes, "free in the group's directory on this machine"},
    {"growth", Holds::kObject, kSometimes, "where two checkpoints of different times are kept",
     kGrowth},
    {"members", Holds::kObjects, kSometimes,
     "by the word of the leader; a replica of this machine tells its own indexes", kMemberFields},
    {"last_election", Holds::kObject, kSometimes, "null: none was seen", kElection},
    {"detection", Holds::kObject, kSometimes, "null: there are no heartbeats", kDetection},
    {"verified", Holds::kObject, kSometimes, "live checking", kVerified},
    {"fabric", Holds::kText, kSometimes, "shm, tcp or verbs"},
    {"durability", Holds::kText, kSometimes, "memory or disk"},
    {"no_quorum", Holds::kText, kSometimes, "why clients are not served, and what becomes of them"},
    {"no_room", Holds::kText, kSometimes,
     "disk or shared memory that is full, so that a replica's log cannot grow"},
    {"supervised", Holds::kFlag, kSometimes, "false: no crane-run does, or it is stopped"},
    {"unsupervised", Holds::kText, kSometimes, "what to do about that"},
    {"ended", Holds::kText, kSometimes,
     "of a group that does not run: the time and the exit status of its crane-run"},
};
constexpr F kMembers[] = {
    kVersionField,
    {"group", Holds::kText, kAlways, "its name"},
    {"members", Holds::kObjects, kAlways, "empty: no node tells", kMemberFields},
};

constexpr F kEvent[] = {
    {"unix_ms", Holds::kNumber, kAlways, "when, by the clock of the replica's machine"},
    {"replica", Holds::kNumber, kAlways, "to which it happened"},
    {"event", Holds::kText, kAlways, "begins, leads, follows, server runs, checkpoint, .."},
    {"text", Holds::kText, kAlways, "what, in words"},
};
constexpr F kEvents[] = {
    kVersionField,
    {"group", Holds::kText, kAlways, "its name"},
    {"events", Holds::kObjects, kAlways, "the oldest first", kEvent},
};

// --- crane-run's file

constexpr F kStateRows[] = {
    {"replica", Holds::kNumber, kAlways, "its number"},
    {"node_pid", Holds::kNumber, kOrNull, "null: it does not run"},
    {"server_pid", Holds::kNumber, kOrNull, "null: it does not run"},
    {"view", Holds::kNumber, kAlways, "as it last told"},
    {"role", Holds::kText, kAlways, "leader, follower, dead, .."},
    {"ready", Holds::kFlag, kAlways, "its server has begun"},
    {"member", Holds::kFlag, kAlways, "it belongs to the group"},
    {"votes", Holds::kFlag, kAlways, "and votes"},
    {"exited", Holds::kFlag, kAlways, "its server ended by itself"},
};
constexpr F kListening[] = {
    {"port", Holds::kNumber, kAlways, "of the server"},
    {"published", Holds::kNumber, kAlways, "that clients use"},
    {"addr", Holds::kText, kAlways, "on this machine"},
};
constexpr F kState[] = {
    kVersionField,
    {"group", Holds::kText, kAlways, "its name"},
    {"pid", Holds::kNumber, kAlways, "of crane-run"},
    {"program", Holds::kText, kAlways, "the server"},
    {"dir", Holds::kText, kAlways, "the group's directory"},
    {"shm_dir", Holds::kText, kAlways, "its shared memory"},
    {"leader", Holds::kNumber, kOrNull, "null: none leads"},
    {"ready", Holds::kFlag, kAlways, "clients can come"},
    {"replicas", Holds::kObjects, kAlways, "", kStateRows},
    {"listening", Holds::kObjects, kAlways, "ports", kListening},
};

// --- the doctor

constexpr F kFindings[] = {
    {"area", Holds::kText, kAlways, "what was looked at"},
    {"verdict", Holds::kText, kAlways, "ok, limited or missing"},
    {"seen", Holds::kText, kAlways, "what there is"},
    {"costs", Holds::kText, kOrNull, "what that costs; null: nothing"},
    {"mend", Holds::kText, kOrNull, "how to mend it"},
    {"measures", Holds::kCounts, kAlways, "numbers of it; the end of a name is its unit"},
};
constexpr F kDoctor[] = {
    kVersionField,
    {"subject", Holds::kText, kAlways, "this machine, or the group's name"},
    {"verdict", Holds::kText, kAlways, "the gravest of the findings"},
    {"headline", Holds::kText, kAlways, "for people"},
    {"findings", Holds::kObjects, kAlways, "one for each thing that a group needs", kFindings},
};

constexpr Document kDocuments[] = {
    {"node", "a node's answer to status, and status.json in its directory", kNode},
    {"group", "crane-ctl status -o json, one for each group", kGroup},
    {"members", "crane-ctl member list -o json, one for each group", kMembers},
    {"events", "crane-ctl events -o json, one for each group", kEvents},
    {"doctor", "crane-run doctor -o json, crane-ctl doctor -o json", kDoctor},
    {"state", "state.json in the directory of a group that crane-run started", kState},
};

}  // namespace

std::span<const Document> documents() { return kDocuments; }

}  // namespace crane::control
