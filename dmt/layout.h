// SPDX-License-Identifier: Apache-2.0
#pragma once
// The segment: everything that the processes of one replica share.  Layout only; no logic.
//
// One file on tmpfs, created by the node and mapped by the node and every server process.  Links
// are indices, never pointers.  0 means "none" for files, watches and blocks (entry 0 of each table
// is unused); kNone means it for slots and timers.
//
// INVARIANT DMT-L1  Every field without "node:" or "any:" in its comment is read and written only
//               by the turn holder (Scheduler::holder); the hand-off of the turn is the
//               happens-before edge.  clang's thread-safety analysis checks it in libcrane.so
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
inline constexpr std::uint32_t kLayoutVersion = 27;
inline constexpr std::uint16_t kNone = 0xffff;
inline constexpr std::uint32_t kHolderIdle = 0xffff;  // no holder: the next CAS gets the turn

enum class Mode : std::uint32_t { kSerial = 1, kParallel = 2 };
// kArrival, for tests only, admits an entry at any turn at which it happens to arrive.
enum class Admission : std::uint32_t { kGrant = 1, kClassic = 2, kArrival = 3 };

// The calls that a profile may name for agreed detachment.
enum DetachedCall : std::uint32_t {
  kDetachSync = 1,  // fsync, fdatasync
  // Long computations (stall.h): only in processes whose computing nothing can observe, or in all.
  kDetachComputation = 2,
  kDetachAnyComputation = 4,
};

// Which threads the stall rule applies to (stall.h).
enum class StallRule : std::uint32_t { kOff, kSpins, kComputations };

// Agreed configuration: the same on all replicas, except replica and perturb_seed; constant after
// creation.
struct Configuration {
  Mode mode;
  Admission admission;
  std::uint32_t quantum;
  std::uint32_t replica;
  std::uint64_t send_buffer;   // S of D15, bytes per connection
  std::uint64_t perturb_seed;  // 0 = off; else random delays at turns (determinism tests)
  std::uint32_t perturb_max_us;
  std::uint32_t spin;  // iterations to spin for the turn before sleeping; 0 on one core
  char host_name[64];
  StallRule stall_rule;
  std::uint64_t processors;      // bits: where detached computations run; 0: no move
  std::uint32_t detached_calls;  // bits of DetachedCall: callers leave the schedule (D3b)
  std::uint32_t trace;           // 1 = the node receives every turn (OutputType::kTurns)
  std::uint32_t waits_for_room;  // 1 = a call that finds no room on a disk waits (ROOM-4)
  std::uint32_t branch_event;    // a second way to count slices (base/branch_event.h); 0: none
  std::uint64_t slice_ps;        // length of a slice, in picoseconds (slices.h); 0: no slices
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
  std::uint32_t generation;                  // how often the slot was allocated
  std::uint32_t thread_id;                   // gettid() inside the container
  bool sliced;                               // its slice ended, and it has not waited since
  std::uint64_t wait_object;                 // object it waits on; 0 = only deadline or watches
  std::int64_t wait_since_ns;                // virtual
  std::uint64_t pending_signals;             // bit signo-1, directed at this thread
  std::uint64_t blocked_signals;
  std::uint64_t operations;   // this slot's turns so far; names what it creates (D2)
  std::uint64_t exit_object;  // joiners wait on it
  std::int64_t cpu_ns;        // virtual processor time (processes.h)
  std::uint32_t wait_bits;    // wake-ups with these bits wake it (futexes); set before waiting
  std::atomic<std::uint32_t> in_operation;  // any: 1 = its thread is between get and put of a turn
  std::atomic<std::uint32_t> preempted;     // any: how often it gave way
  // --- agreed detachment (scheduler.h)
  std::atomic<std::uint32_t> detached;     // any: 1 = detached; only its own thread writes it
  std::atomic<std::uint32_t> arrived;      // any: 1 = it is detached and wants to rejoin
  std::atomic<std::uint32_t> detachments;  // any: number of detachments; names the current one
  std::uint32_t at_soft_barrier;           // 1 = its thread waits at a soft barrier
  // --- the current or last wait, for messages only (stuck.h)
  std::uint32_t wait_operation;
  std::uint64_t wait_caller;  // return address of the call
};

// A thread's scheduling settings.  The program can read them back; they have no effect.
struct ThreadScheduling {
  std::uint8_t policy;  // 0: SCHED_OTHER
  std::uint8_t priority;
  bool resets_on_fork;
  std::uint64_t affinity;  // processors as bits; 0 = all
};

// --- processes -------------------------------------------------------------------------------

enum class ProcessState : std::uint8_t { kFree, kAlive, kZombie };
enum class Disposition : std::uint8_t { kDefault, kIgnore, kHandler };
// The state of a posix_spawn or vfork, for which the parent waits.
enum class SpawnState : std::uint8_t { kOver, kUnderWay, kFailed };
// The event that waitpid can still report of a live process.
enum class StopEvent : std::uint8_t { kNothing, kStopped, kContinued };

struct alignas(64) ProcessRecord {
  ProcessState state;
  bool exec_pending;   // between the exec's turn and the new image's attach
  bool shares_memory;  // mapped memory that others may see, or was forked by such a process
  bool no_child_stop;  // SA_NOCLDSTOP and SA_NOCLDWAIT of its SIGCHLD
  bool no_child_wait;
  bool collects_orphans;  // PR_SET_CHILD_SUBREAPER
  std::uint8_t parent_death_signal;
  std::uint8_t stopped_by;  // the stop signal (job_control.h); 0 = not stopped
  StopEvent stop_event;
  std::uint16_t parent;
  std::uint16_t main_slot;
  std::uint16_t slots;  // live slots
  std::uint32_t pid;    // inside the container; 0 until the child has reported it
  std::uint32_t group;  // process group id
  std::uint32_t session;
  std::int32_t wait_status;  // when kZombie
  std::uint32_t fd_limit;    // one above the highest descriptor ever used
  std::uint64_t space;       // names its private objects: changes at fork, kept over exec
  std::uint64_t life;        // distinguishes it from earlier processes with this record
  std::uint64_t pending_signals;
  Disposition dispositions[65];
  std::int64_t alarm_interval_ns;
  std::uint16_t alarm_timer;        // a timer, or kNone
  std::atomic<std::uint32_t> gone;  // any: 1 = its end was an operation of the schedule (D18)
  SpawnState spawn;                 // state of the posix_spawn or vfork that created it
  std::int32_t spawn_error;         // errno of a failed spawn
  std::int64_t cpu_ns;              // virtual processor time of all its slots
  std::int64_t children_cpu_ns;     // of waited-for children, including theirs
  // ITIMER_VIRTUAL and ITIMER_PROF: due when cpu_ns reaches this value; 0 = not armed
  std::int64_t cpu_due_ns[2], cpu_interval_ns[2];
  std::uint16_t cpu_timers;  // number of armed POSIX timers on a processor clock
  // RLIMIT_CPU in ns of cpu_ns: the next SIGXCPU, and the end; 0 = none
  std::int64_t cpu_warning_ns, cpu_end_ns;
  std::uint64_t cpu_limits[2];  // as set by the program, seconds + 1; 0 = none
  // --- pseudo-terminals (controlling_terminals.h)
  std::uint16_t terminal;       // the controlling terminal; 0 = none that is virtual
  std::uint32_t hung_up_group;  // session leader: foreground group at the hang-up
};

// --- virtual time ----------------------------------------------------------------------------

enum class TimerKind : std::uint8_t { kFree, kSlot, kFile, kProcess, kPosix };
struct TimerRecord {
  TimerKind kind;
  std::uint16_t heap;   // position + 1 in the heap, 0 = not armed
  std::uint32_t owner;  // slot, file or process by kind
  std::int64_t deadline_ns;
  std::uint64_t number;  // equal deadlines fire in the order of arming (rule 8e)
};

// --- queued signals and POSIX timers ---------------------------------------------------------

// The content of a siginfo_t.
struct SignalInfo {
  std::int32_t code;    // si_code
  std::uint32_t pid;    // sender, or the ended child
  std::uint32_t uid;    // of the sender
  std::int32_t status;  // of a child; of a timer: overruns
  std::uint64_t value;  // from sigqueue or the timer; opaque to Crane
  std::uint32_t timer;  // SI_TIMER: the timer's number
  std::uint32_t unused;
};

// The details of a pending signal.  The pending bits are authoritative; a bit without a record was
// sent when the table was full.  Links are indices, 0 = none.
struct QueuedSignal {
  std::uint16_t next;
  std::uint8_t signo;  // 0 = free
  std::uint8_t unused;
  std::uint16_t slot;  // target thread, or kNone: the whole process
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
  bool pending;  // a notification is not delivered yet: expirations count as overruns
  Notify notify;
  TimerClock counts;
  std::int32_t clock;  // clockid_t from the program
  std::uint16_t process;
  std::uint16_t signo;
  std::uint16_t slot, clock_slot;  // the thread to notify, or kNone; the clock's thread
  std::uint32_t slot_generation;
  std::uint16_t timer;  // in the heap, or kNone
  std::uint16_t unused;
  std::uint32_t overrun, last_overrun;
  std::int64_t interval_ns;
  std::int64_t cpu_due_ns;  // processor clocks: due when the clock reaches it; 0 = not armed
  std::uint64_t value;
};

// --- messages ----------------------------------------------------------------------------------

// A notification of a message in an empty POSIX queue (message_notices.h).
struct MessageNotice {
  bool used, fired;
  Notify notify;
  std::uint8_t signo;
  std::uint16_t process;
  std::uint32_t generation;
  std::uint64_t object;  // of the queue
  std::uint64_t value;
};

// --- names -------------------------------------------------------------------------------------

enum class NameState : std::uint8_t { kFree, kAsked, kAnswered };

// A thread's query to the leader's resolver (names.h).
struct NameRecord {
  NameState state;
  std::uint16_t slot;  // the thread that waits for the answer
  std::uint32_t generation;
  std::uint64_t number;
  NameRequest request;
  ResolvedBody answer;  // when kAnswered
};

// --- descriptors -----------------------------------------------------------------------------

// The kind of the open file description that a descriptor refers to if it is not plain.  All
// descriptors made by dup, fork or passing share the description.
enum class FileKind : std::uint8_t {
  kFree,
  kSocket,      // virtual TCP socket, not yet listening nor connected
  kListener,    // virtual TCP listener
  kConnection,  // virtual TCP connection: with a client, or opened by the server
  kPipeRead,    // kernel pipe; the segment counts its bytes
  kPipeWrite,
  kPipeBoth,        // a named pipe opened for both reading and writing (BothEnds)
  kUnixSocket,      // kernel unix stream socket, not connected
  kUnixListener,    // kernel unix listener
  kUnixStream,      // one end of a connected kernel unix stream (also socketpair)
  kEventFd,         // wholly virtual
  kTimerFd,         // wholly virtual
  kEpoll,           // wholly virtual
  kSignalFd,        // wholly virtual
  kRandom,          // /dev/urandom and /dev/random (D7)
  kDatagram,        // wholly virtual UDP socket (datagrams.h)
  kProcess,         // pidfd: `port` is the process; counter.count is 1 when it has ended
  kKernelSocket,    // kernel unix datagram or netlink socket; `listener` has its name, and `queued`
                    // whether data has arrived (runtime/preload/sockets/kernel_socket.h)
  kTerminalMaster,  // wholly virtual pseudo-terminal (terminals.h)
  kTerminalLine,
  kInotify,  // wholly virtual inotify instance (inotify.h)
  kEnd,      // the number of kinds; each has a row in dmt/file_kind.h
};

// Readiness bits are poll(2)'s: POLLIN 1, POLLOUT 4, POLLERR 8, POLLHUP 16, POLLRDHUP 0x2000.
using Readiness = std::uint32_t;

// The target of F_SETOWN, and the signal of O_ASYNC (file_owners.h).
enum class OwnerKind : std::uint8_t { kNoOwner, kThread, kProcess, kGroup };
struct FileOwner {
  OwnerKind kind;
  std::uint8_t signal;  // F_SETSIG; 0 = SIGIO without details
  bool wants_signal;    // O_ASYNC
  std::int32_t fd;      // the descriptor that set O_ASYNC
  std::uint32_t id;
};

struct alignas(64) FileRecord {
  FileKind kind;
  bool nonblocking;
  std::uint16_t port;
  std::uint32_t references;  // descriptors in all processes, plus one while queued for accept
  std::uint32_t generation;
  Readiness readiness;
  std::uint32_t watches;  // list of this file's watches, FIFO, linked by `file_next`
  std::uint32_t watches_tail;
  std::uint32_t chain;   // accept queue, queue of rights, or free list
  std::uint32_t rights;  // descriptors in flight to this end of a unix stream (envelopes)
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
  bool armed;            // ONESHOT disarms it
  bool is_ready;         // in the epoll's ready list
  std::uint8_t flags;    // kWatchEdge | kWatchOneshot | kWatchExclusive
  std::uint32_t file;    // the watched file
  std::uint32_t owner;   // slot, or epoll file
  std::uint32_t events;  // poll bits of interest; POLLERR and POLLHUP always count
  std::int32_t fd;       // as passed to epoll_ctl
  std::uint32_t file_next, file_previous;
  std::uint32_t owner_next, owner_previous;
  std::uint32_t ready_next, ready_previous;
  std::uint64_t data;  // epoll_event.data
};
inline constexpr std::uint8_t kWatchEdge = 1, kWatchOneshot = 2, kWatchExclusive = 4;

// --- files by name ---------------------------------------------------------------------------

// A file's identity and its modification time, in virtual wall time (inodes.h).
struct InodeRecord {
  std::uint64_t inode, device;  // in the kernel
  std::uint64_t number;         // the virtual one; 0 = free
  std::int64_t modified_ns;     // or kNotModified: the kernel's time holds
  std::int64_t accessed_ns;     // last set value; kNotModified: equal to the modification time
  std::uint64_t path;           // offset of its path in the stream of all paths ever stored
  std::uint32_t path_bytes;     // 0 = unknown
  std::uint32_t next;           // next of its bucket: index + 1
  bool unseen;                  // written since its time was last read
  bool held;                    // the record is not reused for another file
  bool made;                    // created by the server
};
inline constexpr std::int64_t kNotModified = INT64_MIN;

struct InodeTable {
  std::uint64_t last_number;
  std::int64_t began_ns;  // virtual wall time of the first query: later files are the server's
  std::uint32_t held;     // number of held records
  std::uint64_t root_device, root_inode;  // in the kernel; 0, 0 = not yet queried
  std::uint32_t buckets[kInodeBuckets];
  InodeRecord records[kInodesMax];
  std::uint64_t paths_end;  // bytes of paths stored so far; `paths` keeps the newest kPathsBytes
  char paths[kPathsBytes];  // private to each replica: no other value in the segment depends on it
};

// --- inotify (inotify.h) ----------------------------------------------------------------------

// The events of one file that one inotify instance subscribes to.
struct FileWatch {
  std::uint64_t number;                      // of the file (inodes.h); 0 = free
  std::uint32_t instance;                    // its file record
  std::int32_t watch;                        // watch descriptor within the instance
  std::uint32_t mask;                        // the subscribed IN_* bits
  std::uint32_t bucket_next, instance_next;  // 0 = none
};

struct InotifyTable {
  std::uint32_t used, free;  // high-water mark and LIFO list, linked by bucket_next
  std::uint32_t last_cookie;
  std::uint32_t interested[kFileEventsMax];  // how many watches subscribe to an event, by its bit
  std::uint32_t buckets[kFileWatchBuckets];  // watches by file
  FileWatch watches[kFileWatchesMax];        // entry 0 is unused
};

// --- System V semaphores ----------------------------------------------------------------------

// The amount that a semaphore gets at the end of a process (SEM_UNDO).  It is in the segment,
// because it outlives exec.
struct SemaphoreUndo {
  std::int32_t id;
  std::int32_t change;  // 0 = free
  std::uint16_t number;
  std::uint16_t process;
};

// --- the stall rule (stall.h) ------------------------------------------------------------------

// Where a thread was found stalled: a range of application instructions, inclusive.
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
  std::uint32_t listeners;                              // linked by ListenerState::next
  std::uint32_t slots_used;                             // one above the highest slot ever used
  std::uint32_t signal_files;                           // number of kSignalFd files
  std::uint32_t process_files;                          // number of kProcess files
  std::uint32_t inotify_files;                          // number of kInotify files
  std::uint32_t watched_events;                         // IN_* bits that any watch subscribes to
  std::uint32_t output_pending;  // hand-offs + 1 since output that the node was not notified of
  bool ended;                    // the main process has ended
  bool ends_grant;               // the current operation uses up the grant
  bool served;                   // a CONNECT was admitted: from then on binds request ports
  std::uint16_t next_port;       // where the search for a free port begins (loopback.h)
  std::uint16_t last_slot;       // last holder of the turn, except the node; 0 = none yet
  SliceGrant slice_grant;
  std::uint32_t sliced_runnable;  // number of runnable slots that are sliced
  // --- words for the node's event loop
  alignas(128) std::atomic<std::uint32_t> node_asleep;  // any: 1 = ring the doorbell
  std::atomic<std::uint32_t> stalled;        // any: turns wanted: sequence empty, run queue not
  std::atomic<std::uint32_t> grant_low;      // any: half of the grant is used and no entry follows
  std::atomic<std::uint32_t> leading;        // node: 1 = this replica leads and wants these hints
  std::atomic<std::int64_t> next_deadline;   // any: earliest armed deadline, INT64_MAX = none
  std::atomic<std::int64_t> node_timer;      // node: the deadline that its own timer is set for
  std::atomic<std::uint64_t> applied_index;  // any: index of the last admitted entry
  std::atomic<std::uint64_t> published_clock;  // any: clock at the last hand-off
  std::atomic<std::uint32_t> blocks_in_use;    // any: inbound; back-pressure of the leader
  std::atomic<std::uint32_t> fenced;  // any: not 0 = this replica has failed; all threads stop
  std::atomic<std::uint32_t> wait_for_room;  // any: threads that wait for room on a disk (ROOM-4)
  std::atomic<std::uint32_t> slice_wanted;   // any: 1 = sliced threads wait for a bubble
  // --- the stall rule (stall.h)
  std::atomic<std::uint64_t>
      leader_clock_limit;  // node: operations at this clock wait; UINT64_MAX = none
  std::atomic<std::uint64_t> preempt_clock;  // node: preempt_slot gives way; UINT64_MAX = none
  std::atomic<std::uint32_t> preempt_slot;   // node
  std::atomic<HeldThread> held_thread;       // any
  std::atomic<std::uint64_t> preempt_requests_obeyed;  // any: how many
  StallSite preempt_request_site;                      // node: before preempt_clock
  std::uint64_t preempt_request_leaves;  // node: before preempt_clock; see PreemptBody
  PreemptBody held_thread_preempt;       // of the held slot: written before held_thread
  std::uint32_t stall_sites;             // number of sites in stall_site
  StallSite stall_site[kStallSitesMax];
  // --- agreed detachment and soft barriers (scheduler.h)
  std::atomic<std::uint32_t> arrivals;  // any: how often a detached thread asked to rejoin
  std::uint16_t awaited;                // slot of an ATTACH that cannot be admitted yet, or 0
  std::atomic<std::uint32_t> at_soft_barrier;  // any: number of slots that wait at soft barriers
  std::uint32_t file_locks;                    // 1 = the server has used locks on files
  std::atomic<std::uint64_t> preempt_requests_sent;  // node: how many, raised after preempt_clock
  // --- checkpoints (quiescence.h)
  std::atomic<std::uint32_t> restores;  // node: how often this server was restored
};

// --- calls that bypassed the library (unhooked.h) --------------------------------------------

// The outcome of such a call.
enum class Outcome : std::uint32_t {
  kOperation = 1,  // became an operation of the schedule after all
  kRefused = 2,    // returned ENOSYS, as from a kernel without it
  kPassed = 3,     // executed by the kernel, unseen by the schedule
};

struct UnhookedCall {
  std::int32_t number;  // of the system call
  Outcome outcome;
  std::uint64_t offset;  // of the instruction after the call, in the object
  char name[24];
  char object[88];  // the file it was loaded from; for a long path, its end
};

struct UnhookedRecord {
  std::atomic<std::uint32_t> state;  // any: 0 = free, 1 = being written, 2 = complete
  std::atomic<std::uint64_t> count;  // any
  UnhookedCall call;                 // any: constant once complete
};

struct UnhookedCalls {
  std::uint32_t strict;                // constant after creation: the first call ends the server
  std::atomic<std::uint32_t> blind;    // any: processes that the kernel could not watch
  std::atomic<std::uint64_t> total;    // any
  std::atomic<std::uint32_t> stopped;  // any: 1 + the record at which strict mode stopped
  UnhookedRecord records[kUnhookedMax];
};

// --- requests of the server that Crane did not fulfil, counted for the operator -----------------

// Not part of the schedule (runtime/preload/sockets/unreachable.h, runtime/preload/trap/sandbox.h).
struct Unsupported {
  std::atomic<std::uint64_t> datagrams;  // any: dropped datagrams
  std::atomic<std::uint64_t> udp_ports;  // any: bound UDP ports, which no client reaches
  std::atomic<std::uint64_t> sandboxes;  // any: seccomp sandboxes that were not applied
};

// --- soft barriers (rule 13) ------------------------------------------------------------------

struct SoftBarrier {
  std::uint32_t count, timeout_us;  // count 0: not set up
  std::uint32_t arrived;            // in this round
  std::uint32_t round;              // incremented at each release
  std::uint64_t arrivals;           // in all rounds
};

enum class PointState : std::uint32_t { kNotFound, kRefused, kFound };

// A function that the server exports: its callers, in all processes, wait at a soft barrier.
struct SoftBarrierPoint {
  char function[kFunctionNameBytes];  // constant after creation; "": none
  SoftBarrier soft_barrier;           // count and time-out are constant
  std::atomic<PointState> state;      // any: only increases
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
  // files by descriptor, 0 = plain; a process' row starts at process * kFdsMax
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
  alignas(64) TurnRecord turns[kTurnHistory];  // the newest turns: turn t is at t % kTurnHistory
  // any: names of operations by code, each terminated by a 0; libcrane.so writes them at attach
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
  // Constant after creation: directories that server and host share (socket_directories.h), each
  // terminated by a 0, the last one by two.
  char socket_directories[kSocketDirectoriesBytes];
};

static_assert(std::is_standard_layout_v<Layout>);
static_assert(std::is_trivially_destructible_v<Layout>);
static_assert(alignof(SlotRecord) == 128, "two slots never share a line or its prefetch pair");

}  // namespace crane::dmt
