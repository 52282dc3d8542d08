// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of the supervisor of replicas (supervisor.h): one event in, a list of actions out.
//
// It reads no clock and no file and starts no process: time comes with every event.  crane-run
// (runtime/launcher/run), the agent of a host (runtime/launcher/agent) and simulated worlds run the
// same object code.
//
// CONTRACT SUP-S1  Actions are carried out in the order given, all before the next step().
// CONTRACT SUP-S2  step() is total: every event is legal in every state, of any number of a
//              replica; stale ones are ignored.
// CONTRACT SUP-S3  Each StartNode is answered once, by Started or NotStarted; each
//              LookForCheckpoint by Facts.
// CONTRACT SUP-S4  Exactly one NodeEnded for each node that was Started, Found or Adopted, after
//              all that the node had said.
// CONTRACT SUP-S5  Tick is stepped when deadline_ms() has come, at any time earlier as well.
//
// Threads: plain values.  Times are milliseconds of one clock that never goes back.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dmt/base/result.h"
#include "runtime/setup/messages.h"
#include "runtime/supervise/ends.h"

namespace crane::supervise {

// How a node begins.
struct Plan {
  enum class From : std::uint8_t {
    kBeginning,   // with a new server, at the log's first entry
    kStore,       // with its own log and the newest checkpoint, which it finds by itself
    kCheckpoint,  // with the named checkpoint; without a name the newest, or the log if there is
                  // none
    kLog,         // with the log, whatever checkpoints there are
  };
  From from = From::kBeginning;
  std::string checkpoint = {};
  bool forgets = false;  // what the log's memory holds was another's, or an operator gives it up
};

// --- events --------------------------------------------------------------------------------------

struct Start {};  // a new group: every member gets a node
// A group whose supervisor died: a Found for each replica, then TakeOver.
struct Found {
  int replica = 0;
  bool member = false, votes = false, drained = false;
  enum class Node : std::uint8_t { kNone, kAnswers, kSilent } node = Node::kNone;
};
struct TakeOver {
  bool ends = false;  // only to end it
};
struct Adopted {  // a silent node answers
  int replica = 0;
};
struct Started {
  int replica = 0;
};
struct NotStarted {
  int replica = 0;
  Error why;
};
enum class Word : std::uint8_t {
  kReady,         // its server runs
  kListens,       // its server asks for a port
  kServes,        // an agent's: its server has run and listened
  kRemoved,       // it is no member any more, and ends
  kDrained,       // an operator ends it
  kAcceptorOnly,  // it votes, and no server of it ends
};
struct Said {
  int replica = 0;
  Word word{};
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
  std::string refused = {};  // what libcrane.so did not let it execute, and why
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
struct Members {  // the group's list, as `replica` has it
  int replica = 0;
  std::vector<Member> list = {};
};
struct BringBack {  // an operator's word, through the leader
  int replica = 0;
  Plan plan = {};
};
struct Refused {  // why the server cannot be dumped; empty: it can
  std::string why = {};
};
struct NodeEnded {
  int replica = 0;
  int wait = 0;           // as wait(2) gives it, or kUnseenEnd
  bool drained = false;   // an operator's mark lies there
  std::string said = {};  // an agent's: its last line
};
struct Facts {
  int replica = 0;
  bool checkpoint = false;  // of this group, there is one
};
struct Resume {  // an operator's word, where no leader passes it on; answered by Answer
  int replica = 0;
  bool forgets = false;
};
struct Stop {
  const char* why = nullptr;  // static text
  int signal = 0;             // an agent's: the first one for its node
};
struct Kill {};
struct Fail {  // the group cannot go on
  Error why;
};
struct Tick {};

using Event = std::variant<Start, Found, TakeOver, Adopted, Started, NotStarted, Said, Role,
                           ServerExit, Fatal, Members, BringBack, Refused, NodeEnded, Facts, Resume,
                           Stop, Kill, Fail, Tick>;

// --- actions -------------------------------------------------------------------------------------

struct StartNode {
  int replica = 0;
  Plan plan = {};
};
struct EndNode {
  int replica = 0;
  int signal = 0;  // 0: it is told on its channel
};
struct SignalServers {  // through the log: all of them at one turn
  int leader = 0;
};
struct AskCheckpoint {
  int leader = 0;
};
struct AskMember {
  int leader = 0;
  const char* change = "";  // "add" or "remove", of the analysis replica
  int replica = 0;
};
struct LookForCheckpoint {
  int replica = 0;
};
struct Say {
  std::string text = {};
  setup::Level level = setup::Level::kInfo;
};
struct Detail {
  std::string text = {};
};
struct WriteNotice {  // for crane-ctl, while the replica is away
  int replica = 0;
  std::string why = {};      // it was lost, or did not recover
  int attempts = 0;          // that did not last, in a row
  std::int64_t in_ms = 0;    // until the next one
  std::string command = {};  // that makes it at once
};
struct RemoveNotice {
  int replica = 0;
};
struct KeepLogs {};
struct Stopping {};        // all of it ends from here on
struct AnalysisReleased {  // the group goes on without it
  int replica = 0;
  std::string why = {};
};
struct Answer {            // to Resume
  const char* error = "";  // empty: it is done
  std::string text = {};
};
struct StaysDrained {    // an agent's replica has no node until an operator resumes it (AGENT-4)
  std::string why = {};  // an operator resumed it in vain; empty: an operator drained it
};
struct BroughtBack {};
struct Leave {   // an agent's replica is over
  int wait = 0;  // how its node ended
};
struct GiveUp {  // an agent's node never ran
  Outcome why = Done{};
};

using Action =
    std::variant<StartNode, EndNode, SignalServers, AskCheckpoint, AskMember, LookForCheckpoint,
                 Say, Detail, WriteNotice, RemoveNotice, KeepLogs, Stopping, AnalysisReleased,
                 Answer, StaysDrained, BroughtBack, Leave, GiveUp>;

}  // namespace crane::supervise
