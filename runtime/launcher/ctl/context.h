// SPDX-License-Identifier: Apache-2.0
#pragma once
// The group that crane-ctl controls from anywhere: the addresses of its nodes and its secret, from
// --hosts and --secret-file, or from a group's file (--config, CRANE_CONTEXT, or the one that
// crane-run --hosts keeps; context_file.h).
//
// Threads: plain functions; both may block for name lookups.

#include <map>
#include <optional>
#include <string>

#include "consensus/fabric/secure_link.h"
#include "runtime/setup/messages.h"

namespace crane::launcher {

struct Context {
  std::string group;   // empty: the operator names it (--hosts)
  std::string secret;  // the text of its file
  // By replica; nullopt: the host's name is not known.
  std::map<int, std::optional<consensus::SocketAddress>> places;
};

// `hosts`: the words of crane-run --hosts, in the same order.  Errors: kUsage, kReplicas, kSecret.
Outcome context_of_hosts(const std::string& hosts, const std::string& secret_file,
                         Context& context);
// Errors: kGroupFile; kSecret.
Outcome context_of_file(const std::string& path, Context& context);

}  // namespace crane::launcher
