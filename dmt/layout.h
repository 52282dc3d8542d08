// SPDX-License-Identifier: Apache-2.0
#pragma once
// The segment: everything that the processes of one replica share.  Only layout; no logic.
//
// One file on tmpfs, created by the node, mapped by the node and by every server process.  Links
// are indices, never pointers; 0 is "none" for files, watches and blocks (entry 0 of each table is
// unused) and kNone for slots and timers.
//
// INVARIANT DMT-L1  Every field without "node:" or "any:" in its comment is read and written only
//               by the turn holder (Scheduler::holder); the hand-off of the turn is the
//               happens-before edge.  clang's thread-safety analysis knows it of libcrane.so
//               (dmt/base/thread_safety.h, tests/lint/thread_safety.py).
// INVARIANT DMT-L2  `version` is stored last at creation and checked first at attach.
// INVARIANT DMT-L3  No structure holds an address; all are trivially copyable or atomics.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dmt/base/ids.h"
#include "dmt/file_states.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/ring.h"
#include "dmt/sequence/turn_record.h"
#include "dmt/slice_records.h"
#include "dmt/terminal_record.h"
#include "dmt/tuning.h"

namespace crane::dmt {

inline constexpr std::uint64_t kSegmentMagic = 0x43524e5345474d31;  // "CRNSEGM1"
inline constexpr std::uint32_t kLayoutVersion = 26;
inline constexpr std::uint16_t kNone = 0xffff;
inline constexpr std::uint32_t kHolderIdle = 0xffff;  // none: the next to CAS it has the turn

enum class Mode : std::uint32_t { kSerial = 1, kParallel = 2 };
// kArrival is the test-only switch that admits at whatever turn an entry happens to arrive.
enum class Admission : std::uint32_t { kGrant = 1, kClassic = 2, kArrival = 3 };

// What a profile may name for agreed detachment.
enum DetachedCall : std::uint32_t {
  kDetachSync = 1,  // fsync, fdatasync
  // Long computations (stall.h): of processes that cannot be seen computing, and of all.
  kDetachComputation = 2,
  kDetachAnyComputation = 4,
};

// A thread that has the turn and takes no operation (stall.h).
enum class StallRule : std::uint32_t { kOff, kSpins, kComputations };

// Agreed configuration (the same on all replicas but for replica and perturb_seed); constant after
// creation.
struct Configuration {
  Mode mode;
  Admission admission;
  std::uint32_t quantum;
  std::uint32_t replica;
  std::uint64_t send_buffer;   // S of D15, bytes per connection
  std::uint64_t perturb_seed;  // 0 = off; else random delays at turns (tests of determinism)
  std::uint32_t perturb_max_us;
  std::uint32_t spin;  // iterations to spin for the turn before sleeping; 0 on one core
  char host_name[64];
  StallRule stall_rule;
  std::uint64_t processors;      // this replica's, as bits, for who computes away; 0: stay
  std::uint32_t detached_calls;  // bits of DetachedCall: their callers leave the schedule (D3b)
  std::uint32_t trace;           // 1 = every turn is handed to the node (OutputType::kTurns)
  std::uint32_t waits_for_room;  // 1 = a call that finds no room on a disk waits (ROOM-4)
  std::uint32_t branch_event;    // what slices are counted by, too (base/branch_event.h); 0: none
  std::uint64_t slice_ps;  // of a thread's computation, in picoseconds (slices.h); 0: no slices
};

// --- threads ---------------------------------------------------------------------------------

enum class SlotState : std::uint8_t { kFree, kRunnable, kWaiting, kDead, kDetached };
enum class WakeReason : std::uint8_t { kSignalled, kTimeout, kInterrupted };

struct alignas(128) SlotRecord {
  std::atomic<std::uint32_t> parked;  // any: futex word; 1 = its thread sleeps for the turn
  SlotState state;
  WakeReason wake_reason;
  std::uint16_t queue_next, queue_previous;  // run queue or wait bucket
  std::uint16_t process;                     // index into processes
  std::uint32_t generation;                  // how often the slot was taken
  std::uint32_t thread_id;                   // gettid() inside the container
  bool sliced;                               // a slice of it ended, and it has not waited since
  std::uint64_t wait_object;                 // object it waits on; 0 = only deadline or watches
  std::int64_t wait_since_ns;                // virtual
  std::uint64_t pending_signals;             // bit signo-1, directed at this thread
  std::uint64_t blocked_signals;
  std::uint64_t operations;   // own turns of this slot: names what it creates (D2)
  std::uint64_t exit_object;  // joiners wait here
  std::int64_t cpu_ns;        // virtual processor time (processes.h)
  std::uint32_t wait_bits;    // which wake-ups with bits concern it (futexes); set before waiting
  std::atomic<std::uint32_t> in_operation;  // any: 1 = its thread is between get and put of a turn
  std::atomic<std::uint32_t> preempted;     // any: how often it gave way
  // --- agreed detachment (scheduler.h)
  std::atomic<std::uint32_t> detached;     // any: 1 = its thread is detached; its own thread writes
  std::atomic<std::uint32_t> arrived;      // any: 1 = .. and wants to rejoin
  std::atomic<std::uint32_t> detachments;  // any: how often it was; names the current one
  std::uint32_t at_soft_barrier;           // 1 = it waits at a soft barrier
  // --- what it waits in, or waited last; for messages only (stuck.h)
  std::uint32_t wait_operation;
  std::uint64_t wait_caller;  // whom the call returns to
};

// A thread's own settings about its scheduling: they read back, and move nothing.
struct ThreadScheduling {
  std::uint8_t policy;  // 0: SCHED_OTHER
  std::uint8_t priority;
  bool resets_on_fork;
  std::uint64_t affinity;  // processors as bits; 0 = all
};

// --- processes -------------------------------------------------------------------------------

enum class ProcessState : std::uint8_t { kFree, kAlive, kZombie };
enum class Disposition : std::uint8_t { kDefault, kIgnore, kHandler };
// What the parent in posix_spawn or vfork waits for.
enum class SpawnState : std::uint8_t { kOver, kUnderWay, kFailed };
// What waitpid can still be told of a process that lives.
enum class StopEvent : std::uint8_t { kNothing, kStopped, kContinued };

struct alignas(64) ProcessRecord {
  ProcessState state;
  bool exec_pending;   // between exec's turn and the new image's attach
  bool foreign;        // has no libcrane.so: no slots
  bool shares_memory;  // it mapped memory that others may see, or was forked by one that did
  bool no_child_stop;  // SA_NOCLDSTOP and SA_NOCLDWAIT of its SIGCHLD
  bool no_child_wait;
  bool collects_orphans;  // PR_SET_CHILD_SUBREAPER
  std::uint8_t parent_death_signal;
  std::uint8_t stopped_by;  // the stop signal (job_control.h), 0 = it goes on
  StopEvent stop_event;
  std::uint16_t parent;
  std::uint16_t main_slot;
  std::uint16_t slots;  // live slots
  std::uint32_t pid;    // inside the container; 0 until the child told it
  std::uint32_t group;  // process group id
  std::uint32_t session;
  std::int32_t wait_status;  // when kZombie
  std::uint32_t fd_limit;    // one above the highest descriptor ever used
  std::uint64_t space;       // names its private objects: differs after fork, kept over exec
  std::uint64_t life;        // tells it from others that had this record before
  std::uint64_t pending_signals;
  Disposition dispositions[65];
  std::int64_t alarm_interval_ns;
  std::uint16_t alarm_timer;        // a timer, or kNone
  std::atomic<std::uint32_t> gone;  // any: 1 = its end was an operation of the schedule (D18)
  SpawnState spawn;                 // of a child of posix_spawn or vfork
  std::int32_t spawn_error;         // why it failed
  std::int64_t cpu_ns;              // virtual processor time of all its slots
  std::int64_t children_cpu_ns;     // of those that were waited for, theirs included
  // ITIMER_VIRTUAL and ITIMER_PROF: due when cpu_ns reaches it, 0 = not armed
  std::int64_t cpu_due_ns[2], cpu_interval_ns[2];
  std::uint16_t cpu_timers;  // POSIX timers on a processor clock that are armed
  // RLIMIT_CPU, ns of cpu_ns: when SIGXCPU is due next, and the end; 0 = none
  std::int64_t cpu_warning_ns, cpu_end_ns;
  std::uint64_t cpu_limits[2];  // as they were set, seconds + 1; 0 = none
  // --- pseudo-terminals (controlling_terminals.h)
  std::uint16_t terminal;       // the controlling one, 0 = none of ours
  std::uint32_t hung_up_group;  // of a session's leader: in front when its terminal hung up
};

// --- virtual time ----------------------------------------------------------------------------

enum class TimerKind : std::uint8_t { kFree, kSlot, kFile, kProcess, kPosix };
struct TimerRecord {
  TimerKind kind;
  std::uint16_t heap;   // position + 1 in the heap, 0 = not armed
  std::uint32_t owner;  // slot, file or process by kind
  std::int64_t deadline_ns;
  std::uint64_t number;  // ties fire in the order of arming (rule 8e)
};

// --- queued signals and POSIX timers ---------------------------------------------------------

// What a siginfo_t tells of a signal.
struct SignalInfo {
  std::int32_t code;    // si_code
  std::uint32_t pid;    // sender, or the child that ended
  std::uint32_t uid;    // sender's
  std::int32_t status;  // of a child; of a timer: overruns
  std::uint64_t value;  // sigqueue's or the timer's, the program's own affair
  std::uint32_t timer;  // SI_TIMER: which
  std::uint32_t unused;
};

// A pending signal's particulars.  The pending bits say what is pending; a bit without a record was
// sent when the table was full.  Links are indices, 0 = none.
struct QueuedSignal {
  std::uint16_t next;
  std::uint8_t signo;  // 0 = free
  std::uint8_t unused;
  std::uint16_t slot;  // a thread's, or kNone: the process'
  std::uint16_t process;
  SignalInfo info;
};

struct SignalTable {
  std::uint16_t head, tail;  // in the order of sending
  std::uint16_t free, used;  // LIFO list and high-water mark
  QueuedSignal records[kQueuedSignalsMax];
};

enum class Notify : std::uint8_t { kNothing, kSignal, kThread };
enum class TimerClock : std::uint8_t { kVirtual, kProcess, kThread };  // time, processor time
struct PosixTimer {
  bool used;
  bool pending;  // a notification is on its way: expirations count as overruns
  Notify notify;
  TimerClock counts;
  std::int32_t clock;  // clockid_t as given
  std::uint16_t process;
  std::uint16_t signo;
  std::uint16_t slot, clock_slot;  // the thread to be told, or kNone; whose processor time counts
  std::uint32_t slot_generation;
  std::uint16_t timer;  // of the heap, or kNone
  std::uint16_t unused;
  std::uint32_t overrun, last_overrun;
  std::int64_t interval_ns;
  std::int64_t cpu_due_ns;  // processor clocks: due when the clock reaches it, 0 = not armed
  std::uint64_t value;
};

// --- messages ----------------------------------------------------------------------------------

// What tells of a message in an empty POSIX queue (message_notices.h).
struct MessageNotice {
  bool used, fired;
  Notify notify;
  std::uint8_t signo;
  std::uint16_t process;
  std::uint32_t generation;
  std::uint64_t object;  // the queue's
  std::uint64_t value;
};

// --- names -------------------------------------------------------------------------------------

enum class NameState : std::uint8_t { kFree, kAsked, kAnswered };

// What a thread asks the leader's resolver (names.h).
struct NameRecord {
  NameState state;
  std::uint16_t slot;  // who asks
  std::uint32_t generation;
  std::uint64_t number;
  NameRequest request;
  ResolvedBody answer;  // when kAnswered
};

// --- descriptors -----------------------------------------------------------------------------

// What a descriptor refers to when it is not plain: an open file description, shared by all
// descriptors that were made by dup, fork or passing.
enum class FileKind : std::uint8_t {
  kFree,
  kSocket,      // virtual TCP socket, not yet listening nor connected
  kListener,    // virtual TCP listener
  kConnection,  // virtual TCP connection, with a client or with whom the server connects to
  kPipeRead,    // kernel pipe, counted here
  kPipeWrite,
  kPipeBoth,        // a named pipe that is open for both sides (BothEnds)
  kUnixSocket,      // kernel unix stream socket, not connected
  kUnixListener,    // kernel unix listener
  kUnixStream,      // one end of a connected kernel unix stream (also socketpair)
  kEventFd,         // wholly virtual
  kTimerFd,         // wholly virtual
  kEpoll,           // wholly virtual
  kSignalFd,        // wholly virtual
  kRandom,          // /dev/urandom and /dev/random (D7)
  kDatagram,        // wholly virtual UDP socket (datagrams.h)
  kProcess,         // pidfd: `port` is the process, counter.count 1 when it has ended
  kKernelSocket,    // kernel unix datagram or netlink socket; `listener` has its name, and in
                    // `queued` whether something is there (runtime/preload/sockets/kernel_socket.h)
  kTerminalMaster,  // wholly virtual pseudo-terminal (terminals.h)
  kTerminalLine,
  kInotify,  // wholly virtual inotify instance (inotify.h)
  kEnd,      // how many there are: each has its row in dmt/file_kind.h
};

// Readiness bits are poll(2)'s: POLLIN 1, POLLOUT 4, POLLERR 8, POLLHUP 16, POLLRDHUP 0x2000.
using Readiness = std::uint32_t;

// Whom F_SETOWN names, and what O_ASYNC sends (file_owners.h).
enum class OwnerKind : std::uint8_t { kNoOwner, kThread, kProcess, kGroup };
struct FileOwner {
  OwnerKind kind;
  std::uint8_t signal;  // F_SETSIG; 0 = SIGIO, without particulars
  bool wants_signal;    // O_ASYNC
  std::int32_t fd;      // by which O_ASYNC was set
  std::uint32_t id;
};

struct alignas(64) FileRecord {
  FileKind kind;
  bool nonblocking;
  std::uint16_t port;
  std::uint32_t references;  // descriptors in all processes, plus one while queued for accept
  std::uint32_t generation;
  Readiness readiness;
  std::uint32_t watches;  // list of watches on this file, FIFO, linked by `file_next`
  std::uint32_t watches_tail;
  std::uint32_t chain;   // accept queue, queue of rights, or free list
  std::uint32_t rights;  // descriptors on their way to this end of a unix stream (envelopes)
  std::uint64_t object;  // agreed name: creating slot and its operation count (D2)
  FileOwner owner;
  union {
    ListenerState listener;
    ConnectionState connection;
    StreamState stream;
    BothEnds both;
    CounterState counter;
    EpollState epoll;
    DatagramState datagram;
    TerminalEnd end;
    InotifyState inotify;
  };
};

enum class WatchKind : std::uint8_t { kFree, kSlot, kEpoll };
struct WatchRecord {
  WatchKind kind;
  bool armed;            // ONESHOT disarms
  bool is_ready;         // in the epoll's ready list
  std::uint8_t flags;    // kWatchEdge | kWatchOneshot | kWatchExclusive
  std::uint32_t file;    // the watched file
  std::uint32_t owner;   // slot, or epoll file
  std::uint32_t events;  // bits of interest; POLLERR and POLLHUP always count
  std::int32_t fd;       // as given to epoll_ctl
  std::uint32_t file_next, file_previous;
  std::uint32_t owner_next, owner_previous;
  std::uint32_t ready_next, ready_previous;
  std::uint64_t data;  // epoll_event.data
};
inline constexpr std::uint8_t kWatchEdge = 1, kWatchOneshot = 2, kWatchExclusive = 4;

// --- files by name ---------------------------------------------------------------------------

// What a file is known by and when it was modified, in virtual wall time (inodes.h).
struct InodeRecord {
  std::uint64_t inode, device;  // the kernel's
  std::uint64_t number;         // the virtual one; 0 = free
  std::int64_t modified_ns;     // or kNotModified: its time is the kernel's
  std::int64_t accessed_ns;     // as it was last set; or kNotModified: that of the modification
  std::uint64_t path;           // where it begins among all that were ever remembered
  std::uint32_t path_bytes;     // 0 = not known
  std::uint32_t next;           // of its bucket: index + 1
  bool unseen;                  // written since anybody looked at its time
  bool held;                    // the place is not used for another number
  bool made;                    // by the server
};
inline constexpr std::int64_t kNotModified = INT64_MIN;

struct InodeTable {
  std::uint64_t last_number;
  std::int64_t began_ns;  // virtual wall time of the first look: later files are ours
  std::uint32_t held;     // records that are
  std::uint64_t root_device, root_inode;  // the kernel's; 0, 0 = not looked at yet
  std::uint32_t buckets[kInodeBuckets];
  InodeRecord records[kInodesMax];
  std::uint64_t paths_end;  // bytes of paths remembered so far, the newest kPathsBytes are here
  char paths[kPathsBytes];  // the own of each replica: no other value of the segment depends on it
};

// --- inotify (inotify.h) ----------------------------------------------------------------------

// What one instance wants to hear of one file.
struct FileWatch {
  std::uint64_t number;                      // the file's (inodes.h); 0 = free
  std::uint32_t instance;                    // its file
  std::int32_t watch;                        // number of the watch, of this instance's
  std::uint32_t mask;                        // IN_* bits that it was asked for
  std::uint32_t bucket_next, instance_next;  // 0 = none
};

struct InotifyTable {
  std::uint32_t used, free;  // high-water mark and LIFO list, linked by bucket_next
  std::uint32_t last_cookie;
  std::uint32_t interested[kFileEventsMax];  // how many watches ask for an event, by its bit
  std::uint32_t buckets[kFileWatchBuckets];  // of the watches of a file
  FileWatch watches[kFileWatchesMax];        // entry 0 is unused
};

// --- System V semaphores ----------------------------------------------------------------------

// What the end of a process adds to a semaphore (SEM_UNDO); here, because it outlives exec.
struct SemaphoreUndo {
  std::int32_t id;
  std::int32_t change;  // 0 = free
  std::uint16_t number;
  std::uint16_t process;
};

// --- the stall rule (stall.h) ------------------------------------------------------------------

// Where a thread was found stalled: instructions of the application, ends included.
struct StallSite {
  std::uint64_t low, high;
};
enum class HeldThread : std::uint32_t { kNoThread, kHeld, kReleased };

// --- the scheduler ---------------------------------------------------------------------------

struct Queue16 {
  std::uint16_t head, tail;
};

struct HashPoint {
  std::uint64_t turn, hash;
};

struct SchedulerState {
  alignas(128) std::atomic<std::uint32_t> holder;  // any: slot with the turn, or kHolderIdle
  alignas(128) std::uint64_t clock;                // turns taken
  std::uint64_t grant_left;
  std::uint64_t grant_low_mark;  // at this many turns left the leader is asked for a bubble
  std::uint32_t quantum_left;
  Queue16 run_queue;
  std::uint32_t runnable;
  std::int64_t now_ns;  // virtual monotonic time (D6)
  std::int64_t wall_offset_ns;
  std::uint64_t seed[4];
  std::uint64_t hash;
  std::uint64_t wait_number;
  std::uint64_t object_number;
  View view;           // of the last START admitted
  Viewstamp admitted;  // last entry admitted
  std::uint64_t admissions;
  std::uint32_t timers_armed;
  std::uint16_t free_slots_head, free_slots_tail;  // FIFO: deterministic reuse (D19)
  std::uint16_t free_timer;
  std::uint32_t free_file, free_watch, free_block;      // LIFO lists
  std::uint32_t files_used, watches_used, blocks_used;  // high-water marks
  std::uint32_t listeners;                              // list linked by ListenerState::next
  std::uint32_t slots_used;                             // one above the highest slot ever taken
  std::uint32_t signal_files;                           // how many kSignalFd files there are
  std::uint32_t process_files;                          // how many kProcess files
  std::uint32_t inotify_files;                          // how many kInotify files
  std::uint32_t watched_events;                         // IN_* bits that some watch asks for
  std::uint32_t output_pending;  // hand-offs + 1 since output that the node was not told of
  bool ended;                    // the main process has ended
  bool ends_grant;               // the operation that is under way uses it up
  bool served;                   // a CONNECT was admitted: ports are asked for from now on
  std::uint16_t next_port;       // where the search for a free one begins (loopback.h)
  std::uint16_t last_slot;       // had the turn last, the node apart; 0 = none yet
  SliceGrant slice_grant;
  std::uint32_t sliced_runnable;  // how many of the runnable slots are sliced
  // --- words for the node's event loop
  alignas(128) std::atomic<std::uint32_t> node_asleep;  // any: 1 = ring the doorbell
  std::atomic<std::uint32_t> stalled;        // any: turns wanted, sequence empty, run queue not
  std::atomic<std::uint32_t> grant_low;      // any: the grant is half used and nothing follows
  std::atomic<std::uint32_t> leading;        // node: 1 = this replica leads, wants the hints above
  std::atomic<std::int64_t> next_deadline;   // any: earliest armed deadline, INT64_MAX = none
  std::atomic<std::int64_t> node_timer;      // node: deadline its own timer is set for
  std::atomic<std::uint64_t> applied_index;  // any: index of the last admitted entry
  std::atomic<std::uint64_t> published_clock;  // any: clock at the last hand-off
  std::atomic<std::uint32_t> blocks_in_use;    // any: inbound blocks; the leader's back-pressure
  std::atomic<std::uint32_t> fenced;  // any: not 0 = this replica has failed; no thread goes on
  std::atomic<std::uint32_t> wait_for_room;  // any: threads that wait for room on a disk (ROOM-4)
  std::atomic<std::uint32_t> slice_wanted;   // any: 1 = sliced threads wait for a bubble
  // --- the stall rule (stall.h)
  std::atomic<std::uint64_t>
      leader_clock_limit;  // node: operations at this clock wait; UINT64_MAX = none
  std::atomic<std::uint64_t> preempt_clock;  // node: preempt_slot gives way; UINT64_MAX = none
  std::atomic<std::uint32_t> preempt_slot;   // node
  std::atomic<HeldThread> held_thread;       // any
  std::atomic<std::uint64_t> preempt_requests_obeyed;  // any
  StallSite preempt_request_site;                      // node: before preempt_clock
  std::uint64_t preempt_request_leaves;  // node: before preempt_clock; see PreemptBody
  PreemptBody held_thread_preempt;       // the caught slot's: before caught
  std::uint32_t stall_sites;             // how many there are below
  StallSite stall_site[kStallSitesMax];
  // --- agreed detachment and soft barriers (scheduler.h)
  std::atomic<std::uint32_t> arrivals;  // any: how often a detached thread wanted to rejoin
  std::uint16_t awaited;                // slot of the ATTACH that cannot be admitted yet, or 0
  std::atomic<std::uint32_t> at_soft_barrier;  // any: how many slots wait at soft barriers
  std::uint32_t file_locks;                    // 1 = the server has used locks on files
  std::atomic<std::uint64_t> orders_given;     // node: how many, raised after preempt_clock is set
  // --- checkpoints (quiescence.h)
  std::atomic<std::uint32_t> restores;  // node: how often this server came from a checkpoint
};

// --- calls that bypassed the library (unhooked.h) --------------------------------------------

// What became of such a call.
enum class Outcome : std::uint32_t {
  kOperation = 1,  // it was made an operation of the schedule after all
  kRefused = 2,    // answered ENOSYS, as by a kernel without it
  kPassed = 3,     // done by the kernel, where the schedule does not see it
};

struct UnhookedCall {
  std::int32_t number;  // of the system call
  Outcome outcome;
  std::uint64_t offset;  // of the instruction behind the call, in the object
  char name[24];
  char object[88];  // the file it was loaded from; the end of a long path
};

struct UnhookedRecord {
  std::atomic<std::uint32_t> state;  // any: 0 = free, 1 = being written, 2 = there
  std::atomic<std::uint64_t> count;  // any
  UnhookedCall call;                 // any: constant once there
};

struct UnhookedCalls {
  std::uint32_t strict;                // constant after creation: the first one ends the server
  std::atomic<std::uint32_t> blind;    // any: processes that the kernel would not watch
  std::atomic<std::uint64_t> total;    // any
  std::atomic<std::uint32_t> stopped;  // any: 1 + the record that strict mode stopped at
  UnhookedRecord records[kUnhookedMax];
};

// --- what the server asked for and did not get, counted for the operator -------------------------

// No part of the schedule (runtime/preload/sockets/unreachable.h,
// runtime/preload/trap/sandbox.h).
struct Unsupported {
  std::atomic<std::uint64_t> datagrams;  // any: that were dropped
  std::atomic<std::uint64_t> udp_ports;  // any: bound, and no client reaches them
  std::atomic<std::uint64_t> sandboxes;  // any: seccomp's, that were not applied
};

// --- soft barriers (rule 13) ------------------------------------------------------------------

struct SoftBarrier {
  std::uint32_t count, timeout_us;  // count 0: not set up
  std::uint32_t arrived;            // of this round
  std::uint32_t round;              // raised at each release
  std::uint64_t arrivals;           // of all rounds
};

enum class PointState : std::uint32_t { kNotFound, kRefused, kFound };

// An exported function of the server before which its callers, in all processes, line up.
struct SoftBarrierPoint {
  char function[kFunctionNameBytes];  // constant after creation; "": none
  SoftBarrier soft_barrier;           // count and time-out are constant
  std::atomic<PointState> state;      // any: only raised
};

struct SegmentHeader {
  std::uint64_t magic;
  std::atomic<std::uint32_t> version;  // stored last (DMT-L2)
  std::uint32_t header_bytes;
  std::uint64_t total_bytes;
  Configuration configuration;
  RingLayout sequence;  // node -> admission
  RingLayout output;    // turn holder -> node
};

struct Layout {
  SegmentHeader header;
  SchedulerState scheduler;
  Queue16 wait_buckets[kWaitBuckets];
  std::uint16_t timer_heap[kTimersMax];
  TimerRecord timers[kTimersMax];  // timer i < kSlotsMax is slot i's deadline
  HashPoint history[kHashHistory];
  SlotRecord slots[kSlotsMax];
  ProcessRecord processes[kProcessesMax];
  std::uint32_t block_next[kBlocksMax];
  std::uint32_t connection_buckets[kConnectionBuckets];
  FileRecord files[kFilesMax];
  WatchRecord watches[kWatchesMax];
  // files by descriptor, 0 = plain; the row of a process starts at process * kFdsMax
  std::uint32_t descriptors[static_cast<std::size_t>(kProcessesMax) * kFdsMax];
  alignas(4096) std::byte blocks[static_cast<std::size_t>(kBlocksMax) * kBlockBytes];
  alignas(4096) std::byte sequence_data[kSequenceBytes];
  alignas(4096) std::byte output_data[kOutputBytes];
  SignalTable signals;
  std::uint32_t posix_timers_used;  // high-water mark
  PosixTimer posix_timers[kPosixTimersMax];
  alignas(64) UnhookedCalls unhooked;
  alignas(64) Unsupported unsupported;
  InodeTable inodes;
  alignas(64) InotifyTable inotify;
  alignas(64) TurnRecord turns[kTurnHistory];  // the last ones: turn t is at t % kTurnHistory
  // any: names of operations by code, each ended by a 0; written by libcrane.so as it attaches
  char operation_names[kOperationNamesBytes];
  SemaphoreUndo semaphore_undos[kSemaphoreUndosMax];
  alignas(64) SoftBarrierPoint soft_barrier_points[kSoftBarrierPointsMax];
  MessageNotice message_notices[kMessageNoticesMax];
  ThreadScheduling scheduling[kSlotsMax];
  TerminalRecord terminals[kTerminalsMax];  // entry 0 is unused
  NameRecord names[kNamesMax];
  alignas(64) TickPoints tick_points;
  EarlyPoints early_points;
  alignas(64) SliceReport slice_report;
  // Constant after creation: directories of the server that are the host's (socket_directories.h),
  // each ended by a 0, the last one by two.
  char socket_directories[kSocketDirectoriesBytes];
};

static_assert(std::is_standard_layout_v<Layout>);
static_assert(std::is_trivially_destructible_v<Layout>);
static_assert(alignof(SlotRecord) == 128, "two slots never share a line or its prefetch pair");

}  // namespace crane::dmt
