// SPDX-License-Identifier: Apache-2.0
// The table of all messages between Crane's programs, and from operators (schema.h).
#include <csignal>

#include "dmt/base/ids.h"
#include "runtime/control/schema.h"

namespace crane::control {
namespace {

constexpr std::size_t kRequestMax = 4096;
constexpr std::size_t kLineMax = 1 << 20;  // the file of a group travels in one

constexpr std::uint64_t kReplicaMost = kReplicasMax - 1;
constexpr std::uint64_t kNameMost = 255;

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
    number("seconds", true, "within which it listens, or is rolled back", 1, 86'400)};
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

constexpr ChannelTable kTables[kChannels] = {
    {Channel::kNode, "node", "an operator to a node: DIR/GROUP/rN/control.sock", "do", true,
     kRequestMax, kNodeVerbs},
    {Channel::kAgent, "agent",
     "an operator to a host agent or to crane-run: agent.sock in its directory", "do", true,
     kRequestMax, kAgentVerbs},
    {Channel::kRunToAgent, "run-to-agent", "crane-run to a host agent's standard input", "t", false,
     kLineMax, kRunToAgentVerbs},
};

}  // namespace

const ChannelTable& table_of(Channel channel) {
  const ChannelTable& table = kTables[static_cast<std::size_t>(channel)];
  CRANE_ASSERT(table.channel == channel);
  return table;
}

}  // namespace crane::control
