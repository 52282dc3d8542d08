// SPDX-License-Identifier: Apache-2.0
// The table of all messages between Crane's programs, and from operators (schema.h).
#include <csignal>

#include "dmt/base/ids.h"
#include "runtime/control/schema.h"

namespace crane::control {
namespace {

constexpr std::size_t kRequestMax = 4096;
constexpr std::size_t kPipeMax = 64 * 1024;
constexpr std::size_t kLineMax = 1 << 20;  // the file of a group travels in one

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
    number("to", false, "who shall lead; null: who is furthest", 0, kReplicaMost)};
constexpr Field kMember[] = {
    {"change", Kind::kText, true, "what becomes of the replica", 0, kAny, kChanges},
    replica("whom it is about")};
constexpr Field kSignal[] = {number("signo", true, "its number on this machine", 1, NSIG - 1)};
constexpr Field kCheckpoint[] = {
    replica("who takes it; null: the next follower", false),
    {"tier", Kind::kText, false,
     "criu: the server's processes (the default); restart: every server ends and begins on its "
     "files",
     0, kAny, kTiers}};
constexpr Field kUpgrade[] = {
    text("command", true, "the new server's command line, a JSON list of words"),
    number("seconds", true, "within which it listens, or is rolled back", 1, 86'400),
    number("files", false, "generation of the machine's files that it reads; null: as before", 0,
           kGenerationMost)};
constexpr Field kCopyLog[] = {
    number("view", true, "of the entry of a checkpoint", 0, kAny),
    number("index", true, "its log index", 0, kAny),
    number("position", true, "where it ends in the log", 0, kAny),
    number("through", true, "log index that the copy reaches at least", 0, kAny),
    number("file", true, "the copy is log-FILE in the replica's directory, and is there, empty", 0,
           kAny)};
constexpr Field kHandOver[] = {
    {"to", Kind::kText, true, "the agreed versions of that build", 1, 200}};
constexpr Field kBringBack[] = {
    replica("who is started"), flag("forget", "as a new member, without what its log holds"),
    text("checkpoint", false, "its name, VIEW.INDEX; null or empty: the newest", kNameMost)};
constexpr Verb kNodeVerbs[] = {
    {"status", kNoFields, "what the node knows of itself and of its group"},
    {"transfer", kTransfer, "the leader hands the lead over"},
    {"member", kMember, "the leader changes who belongs to the group"},
    {"signal", kSignal, "the leader sends the servers' main process a signal, through the log"},
    {"checkpoint", kCheckpoint, "the leader has a checkpoint taken"},
    {"upgrade", kUpgrade, "the leader has every server ended, and started with another command"},
    {"copy_log", kCopyLog,
     "the log behind a checkpoint becomes a file, for a backup; asked again until it is done"},
    {"hand_over", kHandOver,
     "the leader has every server ended, and another build of Crane go on with its files"},
    {"leave", kNoFields, "this replica ends, and is not missed (drain)"},
    {"supervise", kNoFields, "a crane-run that was started again takes the node over"},
    {"bring_back", kBringBack, "crane-run starts a replica that was drained or lost"},
};

// --- agent.sock of a host agent

constexpr Field kResume[] = {replica("who is started (crane-run); an agent has one only", false),
                             flag("forget", "as a new member, without what its log holds")};
constexpr Verb kAgentVerbs[] = {
    {"state", kNoFields, "whether a node runs, and why it did not recover"},
    {"resume", kResume, "the drained replica is started"},
};

// --- between crane-run and a host agent

constexpr Field kGroup[] = {text("file", true, "the group's file, TOML"),
                            text("secret", true, "the group's secret"),
                            replica("who runs on this host")};
constexpr Field kEnd[] = {
    text("name", true, "the group's name", kNameMost),
    text("dir", false, "where groups live on that host; empty or null: the default")};
constexpr Verb kRunToAgentVerbs[] = {
    {"group", kGroup, "what to start, once"},
    {"start", kNoFields, "all hosts are ready"},
    {"stop", kNoFields, "the node is to end in order"},
    {"kill", kNoFields, "the node is to end now"},
    {"end", kEnd, "the agents of a group on this host are to end"},
};

// --- between crane-run and a node

constexpr const char* kRoles[] = {"leader", "follower", "candidate", "learner", "none"};
constexpr const char* kEnds[] = {"exited", "signal", "background"};
constexpr Field port(const char* meaning) {
  return {"port", Kind::kNumber, true, meaning, 0, 65'535};
}
constexpr Field kAddress = text("address", false, "at which it listens; empty: at any", kNameMost);
constexpr Field kListener[] = {port("of the server; its listening socket comes with the message"),
                               kAddress};
constexpr Field kListenFailed[] = {port("of the server"), kAddress,
                                   text("message", true, "why, for people"),
                                   number("error", true, "errno", 0, 4095)};
constexpr Field kNotPublished[] = {port("of the server; clients do not reach it"), kAddress};
constexpr Field kSignalFrom[] = {
    number("signo", true, "its number on this machine", 1, NSIG - 1),
    number("pid", false, "of the process inside the server; null: its main process", 0, kIntMost)};
constexpr Verb kRunToNodeVerbs[] = {
    {"listener", kListener, "a socket to take clients from"},
    {"listen_failed", kListenFailed, "there is no socket for that port"},
    {"not_published", kNotPublished, "a bind that waits succeeds: the port is the server's own"},
    {"stop", kNoFields, "the node is to end in order"},
    {"signal", kSignalFrom, "the leader sends the server a signal, through the log"},
    {"member", kMember, "the leader changes who belongs to the group"},
    {"checkpoint", kNoFields, "a replica recovers without one: the leader has one taken"},
};

constexpr Field kListen[] = {
    port("of the server"), kAddress,
    number("backlog", true, "as the server asked for it", 0, kIntMost),
    flag("bind", "a bind of the server waits to know whether it can have the port")};
constexpr Field kRole[] = {{"role", Kind::kText, true, "of this replica", 0, kAny, kRoles},
                           number("view", true, "in which", 0, kAny),
                           number("leader", false, "of that view, as far as it is known", 0, 255)};
constexpr Field kServer[] = {number(
    "pid", false, "of its first process; null: it had ended before it was seen", 1, kIntMost)};
constexpr Field kExit[] = {
    number("status", true, "as a shell shows it", 0, 255),
    {"reason", Kind::kText, true, "how the server ended, at a turn", 0, kAny, kEnds},
    text("refused", false, "what libcrane.so did not let it execute, and why")};
constexpr Field kOneMember[] = {replica("its number"), text("member", true, "its part", kNameMost)};
constexpr Field kMembers[] = {
    {"members", Kind::kList, true, "all who belong to the group", 0, kReplicasMax, {}, kOneMember}};
constexpr Field kAnalysis[] = {text("text", true, "news of an analysis replica, for people")};
constexpr Field kRefused[] = {text("why", true, "why the server cannot be dumped; empty: it can")};
constexpr Field kFatal[] = {number("code", true, "the status that the node ends with", 0, 255),
                            text("message", true, "why, for people")};
constexpr Verb kNodeToRunVerbs[] = {
    {"ready", kNoFields, "its server runs"},
    {"listen", kListen, "the server listens: a socket is wanted for its clients"},
    {"listener", kListener, "a socket that the node has, for a crane-run that takes over"},
    {"role", kRole, "the role has changed"},
    {"server", kServer, "the server was started"},
    {"exit", kExit, "the server has ended on all replicas"},
    {"members", kMembers, "who belongs to the group has changed"},
    {"removed", kNoFields, "this replica does not belong to it any more"},
    {"drained", kNoFields, "this replica ends, and is not missed"},
    {"acceptor_only", kNoFields, "it votes, without a server until a checkpoint is there"},
    {"bring_back", kBringBack, "an operator wants that replica started"},
    {"refused", kRefused, "whether CRIU dumps this server"},
    {"analysis", kAnalysis, "what an analysis replica found"},
    {"fatal", kFatal, "this replica cannot go on"},
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
