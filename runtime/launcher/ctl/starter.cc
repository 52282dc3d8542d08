// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/starter.h"

#include <unistd.h>

#include <optional>

#include "dmt/base/process_stat.h"
#include "runtime/launcher/agent/agent_socket.h"
#include "runtime/launcher/control_client.h"
#include "runtime/launcher/ctl/reach.h"
#include "runtime/launcher/run_files.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;
constexpr int kAskMs = 2'000;

std::string agent_socket_of(const Request& request, const std::string& group, int replica) {
  return request.home_of(group) + "/h" + std::to_string(replica) + "/" + kAgentSocket;
}

}  // namespace

Starter starter_of(const Request& request, const std::string& group, int replica) {
  const bool here = is_here(request, group, replica);
  if (request.context || (!here && is_reached(request, group, replica))) {
    return Starter::kElsewhere;
  }
  const std::string state = request.home_of(group) + "/state.json";
  if (access(state.c_str(), F_OK) == 0) return Starter::kCraneRun;
  const RequestResult result = ask_agent(request, group, replica, {{"do", "state"}});
  return result.status == 0 || result.busy ? Starter::kAgent : Starter::kNone;
}

bool is_reached(const Request& request, const std::string& group, int replica) {
  return reach_of(request, group)->replicas().count(replica) != 0;
}

bool is_here(const Request& request, const std::string& group, int replica) {
  if (request.context) return false;
  bool denied = false;
  return find_replicas(request.dir_of(group), group, denied).count(replica) != 0;
}

RequestResult ask_agent(const Request& request, const std::string& group, int replica,
                        const Json& what) {
  std::string text;
  const Reply reply = ask_node(agent_socket_of(request, group, replica), what.dump(), kAskMs, text);
  if (reply != Reply::kAnswer) {
    return {kRefused,
            "no answer: " + group + ": the agent of replica " + std::to_string(replica) +
                " does not answer",
            reply == Reply::kSilent};
  }
  return result_of(group, text);
}

RequestResult ask_crane_run(const Request& request, const std::string& group, const Json& what) {
  const std::string agent_socket = request.home_of(group) + "/" + kAgentSocket;
  std::string text;
  const Reply reply = ask_node(agent_socket, what.dump(), kAskMs, text);
  if (reply == Reply::kAnswer) return result_of(group, text);
  return {kRefused, "no answer: " + group + ": its crane-run does not answer",
          reply == Reply::kSilent};
}

Supervision supervision_of(const std::string& dir, const std::string& group) {
  const std::string home = dir + "/" + group;
  if (access((home + "/running.json").c_str(), F_OK) != 0) return Supervision::kPresent;
  if (!setup::is_held(home)) return Supervision::kGone;
  const pid_t pid = crane_run_of(home);
  const auto stat = pid > 0 ? read_process_stat(pid) : std::nullopt;
  return stat && is_stopped(*stat) ? Supervision::kStopped : Supervision::kPresent;
}

std::string resume_hint(Starter starter, int replica) {
  const std::string number = std::to_string(replica);
  if (starter == Starter::kElsewhere) {
    return "crane-ctl replica resume " + number + " on its host brings it back";
  }
  return starter != Starter::kNone
             ? "crane-ctl replica resume " + number + " brings it back"
             : "start its node to bring it back (crane-node --config FILE --replica " + number +
                   ", or crane-run --hosts)";
}

}  // namespace crane::launcher
