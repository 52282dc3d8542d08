// SPDX-License-Identifier: Apache-2.0
// The table of all messages between Crane's programs, and from operators (schema.h).
#include <csignal>

#include "dmt/base/ids.h"
#include "runtime/control/schema.h"

namespace crane::control {
namespace {

constexpr std::size_t kRequestMax = 4096;
constexpr std::size_t kPipeMax = 64 * 1024;
constexpr std::size_t kLineMax = 1 << 20;  // one line holds the whole file of a group

constexpr std::uint64_t kReplicaMost = kReplicasMax - 1;
constexpr std::uint64_t kNameMost = 255;
constexpr std::uint64_t kIntMost = 0x7fff'ffff;

constexpr Field replica(const char* meaning, bool required = true) {
  return {"replica", Kind::kNumber, required, meaning, 0, kReplicaMost};
}
constexpr Field text(const char* name, bool required, const char* meaning,
                     std::uint64_t most = kAny) {
  return {name, Kind::kText, required, meaning, 0, most};
}
constexpr Field flag(const char* name, const char* meaning) {
  return {name, Kind::kFlag, false, meaning};
}
constexpr Field number(const char* name, bool required, const char* meaning, std::uint64_t least,
                       std::uint64_t most) {
  return {name, Kind::kNumber, required, meaning, least, most};
}

constexpr const char* kChanges[] = {"add", "promote", "remove"};
constexpr std::uint64_t kGenerationMost = 65'535;  // one for each upgrade
constexpr const char* kTiers[] = {"criu", "restart"};
constexpr std::span<const Field> kNoFields = {};

// --- control.sock of a node

constexpr Field kTransfer[] = {
    number("to", false, "the new leader; null: the most advanced follower", 0, kReplicaMost)};
constexpr Field kMember[] = {{"change", Kind::kText, true, "the change", 0, kAny, kChanges},
                             replica("the replica to change")};
constexpr Field kSignal[] = {number("signo", true, "its number on this machine", 1, NSIG - 1)};
constexpr Field kCheckpoint[] = {
    replica("the replica that takes it; null: the next follower", false),
    {"tier", Kind::kText, false,
     "criu: the server's processes (the default); restart: every server ends and starts again on "
     "its files",
     0, kAny, kTiers}};
constexpr Field kUpgrade[] = {
    text("command", true, "the new server's command line, a JSON list of words"),
    number("seconds", true, "time limit until it listens, else it is rolled back", 1, 86'400),
    number("files", false, "generation of the machine's files that it reads; null: as before", 0,
           kGenerationMost)};
constexpr Field kCopyLog[] = {
    number("view", true, "view of a checkpoint's entry", 0, kAny),
    number("index", true, "log index of that entry", 0, kAny),
    number("position", true, "the entry's end in the log", 0, kAny),
    number("through", true, "log index that the copy must reach", 0, kAny),
    number("file", true,
           "the copy is written to the empty file log-FILE in the replica's directory", 0, kAny)};
constexpr std::uint64_t kEventsMost = 1000;
constexpr Field kEvents[] = {
    number("last", true, "the largest number of events, the newest ones", 1, kEventsMost)};
constexpr Field kHandOver[] = {
    {"to", Kind::kText, true, "the agreed versions of that build", 1, 200}};
constexpr Field kBringBack[] = {
    replica("the replica to start"), flag("forget", "start as a new member, without its log"),
    text("checkpoint", false, "the checkpoint's name, VIEW.INDEX; null or empty: the newest",
         kNameMost)};
constexpr Verb kNodeVerbs[] = {
    {"status", kNoFields, "returns the state of the node and of its group"},
    {"transfer", kTransfer, "the leader hands the lead over"},
    {"member", kMember, "the leader changes the group's members"},
    {"signal", kSignal, "the leader sends the servers' main process a signal, through the log"},
    {"checkpoint", kCheckpoint,
     "the leader has a checkpoint taken; a follower asks it for one of its own"},
    {"upgrade", kUpgrade, "the leader has every server ended, and started with another command"},
    {"copy_log", kCopyLog,
     "copies the log after a checkpoint to a file, for a backup; repeat it until it is done"},
    {"events", kEvents, "returns what happened to this replica, as far as an answer has room"},
    {"hand_over", kHandOver,
     "the leader has every server ended, and another build of Crane continue with its files"},
    {"leave", kNoFields, "this replica ends on request (drain)"},
    {"supervise", kNoFields, "a crane-run that was started again takes the node over"},
    {"bring_back", kBringBack, "crane-run starts a replica that was drained or lost"},
};

// --- agent.sock of a host agent

constexpr Field kResume[] = {
    replica("the replica to start (crane-run); an agent has only one", false),
    flag("forget", "start as a new member, without its log")};
constexpr Verb kAgentVerbs[] = {
    {"state", kNoFields, "returns whether a node runs, and why it did not recover"},
    {"resume", kResume, "starts the drained replica"},
};

// --- between crane-run and a host agent

constexpr Field kGroup[] = {text("file", true, "the group's file, TOML"),
                            text("secret", true, "the group's secret"),
                            replica("the replica of this host")};
constexpr Field kEnd[] = {
    text("name", true, "the group's name", kNameMost),
    text("dir", false, "directory of groups on that host; empty or null: the default")};
constexpr Verb kRunToAgentVerbs[] = {
    {"group", kGroup, "the group to start; sent once"},
    {"start", kNoFields, "all hosts are ready"},
    {"stop", kNoFields, "ends the node in order"},
    {"kill", kNoFields, "ends the node now"},
    {"end", kEnd, "ends the agents of a group on this host"},
};

// --- between crane-run and a node

constexpr const char* kRoles[] = {"leader", "follower", "candidate", "learner", "none"};
constexpr const char* kEnds[] = {"exited", "signal", "background"};
constexpr Field port(const char* meaning) {
  return {"port", Kind::kNumber, true, meaning, 0, 65'535};
}
constexpr Field kAddress =
    text("address", false, "the address of the listening socket; empty: any", kNameMost);
constexpr Field kListener[] = {
    port("the server's port; its listening socket comes with the message"), kAddress};
constexpr Field kListenFailed[] = {port("the server's port"), kAddress,
                                   text("message", true, "the cause, for people"),
                                   number("error", true, "errno", 0, 4095)};
constexpr Field kNotPublished[] = {port("the server's port; clients cannot reach it"), kAddress};
constexpr Field kSignalFrom[] = {
    number("signo", true, "its number on this machine", 1, NSIG - 1),
    number("pid", false, "the process inside the server; null: its main process", 0, kIntMost)};
constexpr Verb kRunToNodeVerbs[] = {
    {"listener", kListener, "a socket to accept clients from"},
    {"listen_failed", kListenFailed, "there is no socket for that port"},
    {"not_published", kNotPublished,
     "a waiting bind succeeds, because only the server itself uses the port"},
    {"stop", kNoFields, "ends the node in order"},
    {"signal", kSignalFrom, "the leader sends the server a signal, through the log"},
    {"member", kMember, "the leader changes the group's members"},
    {"checkpoint", kNoFields, "a replica recovers without one: the leader has one taken"},
};

constexpr Field kListen[] = {port("the server's port"), kAddress,
                             number("backlog", true, "the server's backlog", 0, kIntMost),
                             flag("bind", "a bind of the server waits for the result")};
constexpr Field kRole[] = {{"role", Kind::kText, true, "this replica's role", 0, kAny, kRoles},
                           number("view", true, "the view of that role", 0, kAny),
                           number("leader", false, "the leader of that view, if known", 0, 255)};
constexpr Field kServer[] = {
    number("pid", false, "its first process; null: it ended before the node saw it", 1, kIntMost)};
constexpr Field kExit[] = {
    number("status", true, "the exit status in the form of a shell", 0, 255),
    {"reason", Kind::kText, true, "how the server ended, at a turn", 0, kAny, kEnds},
    text("refused", false, "the call that libcrane.so refused last, and why")};
constexpr Field kOneMember[] = {replica("its number"), text("member", true, "its role", kNameMost)};
constexpr Field kMembers[] = {
    {"members", Kind::kList, true, "all members of the group", 0, kReplicasMax, {}, kOneMember}};
constexpr Field kAnalysis[] = {text("text", true, "news of an analysis replica, for people")};
constexpr Field kRefused[] = {text("why", true, "why the server cannot be dumped; empty: it can")};
constexpr Field kFatal[] = {number("code", true, "the status that the node ends with", 0, 255),
                            text("message", true, "the cause, for people")};
constexpr Verb kNodeToRunVerbs[] = {
    {"ready", kNoFields, "its server runs"},
    {"caught_up", kNoFields, "its server has run the entries that it missed"},
    {"listen", kListen, "the server listens: requests a socket for its clients"},
    {"listener", kListener, "a socket of the node, for a crane-run that takes over"},
    {"role", kRole, "the role has changed"},
    {"server", kServer, "the server was started"},
    {"exit", kExit, "its server has ended"},
    {"members", kMembers, "the group's members have changed"},
    {"removed", kNoFields, "this replica is no longer a member"},
    {"drained", kNoFields, "this replica ends on request"},
    {"acceptor_only", kNoFields, "it votes, without a server until there is a checkpoint"},
    {"bring_back", kBringBack, "an operator requests the start of that replica"},
    {"refused", kRefused, "whether CRIU dumps this server"},
    {"analysis", kAnalysis, "what an analysis replica found"},
    {"fatal", kFatal, "this replica cannot continue"},
};

constexpr ChannelTable kTables[kChannels] = {
    {Channel::kNode, "node", "an operator to a node: DIR/GROUP/rN/control.sock", "do", true, false,
     kRequestMax, kNodeVerbs},
    {Channel::kAgent, "agent",
     "an operator to a host agent or to crane-run: agent.sock in its directory", "do", true, false,
     kRequestMax, kAgentVerbs},
    {Channel::kRunToAgent, "run-to-agent", "crane-run to a host agent's standard input", "t", false,
     false, kLineMax, kRunToAgentVerbs},
    {Channel::kRunToNode, "run-to-node", "crane-run to a node, on the socket that they share", "t",
     false, true, kPipeMax, kRunToNodeVerbs},
    {Channel::kNodeToRun, "node-to-run", "a node to its crane-run, on that socket", "t", false,
     true, kPipeMax, kNodeToRunVerbs},
};

}  // namespace

const ChannelTable& table_of(Channel channel) {
  const ChannelTable& table = kTables[static_cast<std::size_t>(channel)];
  CRANE_ASSERT(table.channel == channel);
  return table;
}

}  // namespace crane::control
