// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of the supervisor of replicas (supervisor.h): one event in, a list of actions out.
//
// The supervisor reads no clock and no file and starts no process; every event comes with the time.
// crane-run (runtime/launcher/run), a host's agent (runtime/launcher/agent) and simulated worlds
// run the same object code.
//
// CONTRACT SUP-S1  Actions are executed in the order given, all before the next step().
// CONTRACT SUP-S2  step() is total: every event is legal in every state, of any number of a
//              replica; stale ones are ignored.
// CONTRACT SUP-S3  Each StartNode is answered once, by Started or NotStarted; each
//              LookForCheckpoint by CheckpointLookup.
// CONTRACT SUP-S4  Exactly one NodeEnded for each node that was Started, Found or Adopted, after
//              all messages of the node.
// CONTRACT SUP-S5  Tick is stepped when deadline_ms() has come; it may also come at any earlier
//              time.
//
// Threads: plain values.  Times are milliseconds of one monotonic clock.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dmt/base/result.h"
#include "runtime/setup/messages.h"
#include "runtime/supervise/ends.h"

namespace crane::supervise {

// The state with which a node begins.
struct Plan {
  enum class From : std::uint8_t {
    kBeginning,   // with a new server, at the log's first entry
    kStore,       // with its own log and the newest checkpoint, which the node finds
    kCheckpoint,  // with the named checkpoint; without a name the newest, or the log if there is
                  // none
    kLog,         // with the log, even if there are checkpoints
  };
  From from = From::kBeginning;
  std::string checkpoint = {};
  bool forgets = false;  // discards the log's memory: it was another replica's, or at a request
};

// --- events --------------------------------------------------------------------------------------

struct Start {};  // a new group: every member gets a node
// For a group after its supervisor died: a Found for each replica, then TakeOver.
struct Found {
  int replica = 0;
  bool member = false, votes = false, drained = false;
  enum class Node : std::uint8_t { kNone, kAnswers, kSilent } node = Node::kNone;
};
struct TakeOver {
  bool ends = false;  // takes it over only to end it
};
struct Adopted {  // a node that was silent answers
  int replica = 0;
};
struct Started {
  int replica = 0;
};
struct NotStarted {
  int replica = 0;
  Error why;
};
enum class Report : std::uint8_t {
  kReady,         // its server runs
  kListens,       // its server requests a port
  kCaughtUp,      // its server has run what the others had run when it returned
  kServes,        // only for an agent: its server has run and listened
  kRemoved,       // it is no longer a member, and ends
  kDrained,       // an operator ends it
  kAcceptorOnly,  // it votes but has no server, so none will end
};
struct Reported {
  int replica = 0;
  Report report{};
};
struct Role {
  int replica = 0;
  bool leads = false;
  std::uint64_t view = 0;
};
struct ServerExit {
  int replica = 0;
  int status = 0;
  ExitReason reason = ExitReason::kExited;
  std::string refused = {};  // the call that libcrane.so refused last, and why
};
struct Fatal {  // the node is about to end with `code` (runtime/setup/exit_status.h)
  int replica = 0;
  int code = 0;
  std::string message = {};
};
struct Member {
  int replica = 0;
  bool votes = false;
};
struct Members {  // the group's list in the view of `replica`
  int replica = 0;
  std::vector<Member> list = {};
};
struct BringBack {  // an operator's request, through the leader
  int replica = 0;
  Plan plan = {};
};
struct Refused {
  std::string why = {};  // why the server cannot be dumped; empty: it can
};
struct NodeEnded {
  int replica = 0;
  int wait = 0;                 // the result of wait(2), or kUnseenEnd
  bool drained = false;         // its directory has an operator's mark (kDrainedMark)
  std::string last_line = {};   // only for an agent: the node's last line
  std::uint64_t oom_kills = 0;  // processes that the kernel's OOM killer ended since the node began
};
struct CheckpointLookup {
  int replica = 0;
  bool found = false;  // there is a checkpoint of this group
};
struct Resume {  // an operator's request that no leader forwards; answered by Answer
  int replica = 0;
  bool forgets = false;
};
struct Stop {
  const char* why = nullptr;  // static text
  int signal = 0;             // only for an agent: the first signal for its node
};
struct Kill {};
struct Fail {  // the group cannot continue
  Error why;
};
struct Tick {};

using Event = std::variant<Start, Found, TakeOver, Adopted, Started, NotStarted, Reported, Role,
                           ServerExit, Fatal, Members, BringBack, Refused, NodeEnded,
                           CheckpointLookup, Resume, Stop, Kill, Fail, Tick>;

// --- actions -------------------------------------------------------------------------------------

struct StartNode {
  int replica = 0;
  Plan plan = {};
};
struct EndNode {
  int replica = 0;
  int signal = 0;  // 0: a message on its channel
};
struct SignalServers {  // through the log: all servers at one turn
  int leader = 0;
};
struct AskCheckpoint {
  int leader = 0;
};
struct AskMember {
  int leader = 0;
  const char* change = "";  // "add" or "remove" the analysis replica
  int replica = 0;
};
struct LookForCheckpoint {
  int replica = 0;
};
struct PrintMessage {
  std::string text = {};
  setup::Level level = setup::Level::kInfo;
};
struct Detail {
  std::string text = {};
};
struct WriteNotice {  // for crane-ctl, while the replica is away
  int replica = 0;
  std::string why = {};      // why it was lost, or did not recover
  int attempts = 0;          // attempts in a row that did not last
  std::int64_t in_ms = 0;    // time until the next attempt
  std::string command = {};  // the command that starts it at once
};
struct RemoveNotice {
  int replica = 0;
};
struct KeepLogs {};
struct Stopping {};        // from now on the whole group ends
struct AnalysisReleased {  // the group continues without its analysis replica
  int replica = 0;
  std::string why = {};
};
struct Answer {            // to Resume
  const char* error = "";  // empty: success
  std::string text = {};
};
struct StaysDrained {    // an agent's replica has no node until an operator resumes it (AGENT-4)
  std::string why = {};  // why resuming it failed; empty: an operator drained it
};
struct BroughtBack {};
struct Leave {   // an agent's replica leaves the group
  int wait = 0;  // how its node ended
};
struct GiveUp {  // an agent's node never ran
  Outcome why = Done{};
};

using Action =
    std::variant<StartNode, EndNode, SignalServers, AskCheckpoint, AskMember, LookForCheckpoint,
                 PrintMessage, Detail, WriteNotice, RemoveNotice, KeepLogs, Stopping,
                 AnalysisReleased, Answer, StaysDrained, BroughtBack, Leave, GiveUp>;

}  // namespace crane::supervise
