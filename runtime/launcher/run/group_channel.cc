// SPDX-License-Identifier: Apache-2.0
// The channels between crane-run and its nodes: either side may be stopped, and the other one goes
// on (OUTBOX-1).
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/launcher/channel.h"
#include "runtime/launcher/run/group.h"

namespace crane::launcher {

using Json = nlohmann::json;

// All that it has said until now.
void Group::hear(Replica& replica) {
  std::string json;
  while (replica.channel >= 0) {
    int fd = -1;
    const Got got = receive_message(replica.channel, json, fd);
    if (got == Got::kMessage) {
      fd >= 0 ? on_fd(replica, json, fd) : on_message(replica, json);
      continue;
    }
    if (got == Got::kGone) close_channel(replica);
    break;
  }
}

void Group::open_channel(Replica& replica, int channel) {
  replica.channel = channel;
  replica.outbox.start(channel);
}

void Group::close_channel(Replica& replica) {
  if (replica.channel >= 0) close(replica.channel);
  open_channel(replica, -1);
}

// Never waits for the node: one that is stopped hears it when it is continued.
void Group::tell(Replica& replica, const Json& message, int passed) {
  using control::Outbox;
  const auto kind = message["t"] == "stop" ? Outbox::Kind::kLast : Outbox::Kind::kUsual;
  std::string key;
  for (const char* name : {"t", "port", "signo", "change", "replica"}) {
    if (const auto found = message.find(name); found != message.end()) key += found->dump() + " ";
  }
  if (replica.outbox.send(kind, key, message.dump(), passed) == Outbox::Sent::kFailed) {
    say("replica " + std::to_string(replica.number) + " does not hear " + message.dump() + ": " +
            strerror(errno),
        setup::Level::kError);
  }
}

void Group::flush(Replica& replica) {
  while (replica.outbox.flush() == control::Outbox::Sent::kFailed) {
    say("replica " + std::to_string(replica.number) +
            " does not hear a message that waited: " + strerror(errno),
        setup::Level::kError);
  }
}

}  // namespace crane::launcher
