// SPDX-License-Identifier: Apache-2.0
// crane-node: one replica's node.  Started by crane-run with a control channel, or by itself as one
// of several hosts: crane-node --config group.toml --replica 2.
#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "proxy/node/analysis_node.h"
#include "proxy/node/config.h"
#include "proxy/node/control.h"
#include "proxy/node/host_config.h"
#include "proxy/node/node.h"
#include "proxy/node/placement.h"

namespace {

using crane::node::Config;
using crane::node::ExitStatus;

void open_log(const Config& config) {
  std::error_code ignored;
  std::filesystem::create_directories(config.replica_dir(), ignored);
  try {
    auto log = spdlog::basic_logger_mt("crane-node", config.replica_dir() + "/node.log");
    // By itself it talks to whoever started it (a terminal, a journal) as well.
    if (config.host) log->sinks().push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    log->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(log));
  } catch (const spdlog::spdlog_ex& e) {
    spdlog::warn("no node.log: {}", e.what());
  }
}

int run_under_launcher(const std::string& path, int control_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  auto config = crane::node::read_config(path);
  if (!config.ok()) {
    const int status = crane::node::code(ExitStatus::kBadConfiguration);
    const std::string why = path + ": " + config.error().what;
    spdlog::error("{}", why);
    crane::node::Control(control_fd).send({{"t", "fatal"}, {"code", status}, {"message", why}});
    return status;
  }
  open_log(config.value());
  crane::node::place_node(config.value());
  if (!config.value().analysis.empty()) {
    return crane::node::code(crane::node::AnalysisNode(config.value(), control_fd).run());
  }
  crane::node::Node node(config.value(), control_fd);
  return crane::node::code(node.run());
}

int run_by_itself(const std::string& path, int replica, bool new_group) {
  crane::setup::set_program("crane-node");
  crane::setup::GroupDirectories directories;
  Config config;
  const auto problem = crane::node::host_config(path, replica, directories, config);
  if (!problem.none()) {
    crane::setup::say(problem.text);
    return static_cast<int>(problem.status);
  }
  // What other nodes of this machine have not forgotten yet is no checkpoint of the new group.
  if (new_group) {
    crane::node::forget_group(config);
  } else {
    crane::node::choose_begin(config);
  }
  open_log(config);
  crane::node::place_node(config);
  crane::node::Node node(config, -1);
  const ExitStatus status = node.run();
  return status == ExitStatus::kStopped ? node.server_exit_code() : crane::node::code(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"One replica of a Crane group."};
  int control_fd = -1, replica = -1;
  std::string path;
  app.add_option("--config", path, "the group's file (TOML; from crane-run: JSON)")->required();
  auto* mine = app.add_option("--replica", replica, "the number of this host's replica");
  app.add_option("--control-fd", control_fd, "socket to crane-run, which sets it")->excludes(mine);
  bool new_group = false;
  app.add_flag("--force-new-group", new_group,
               "forget what this replica holds of the group; only when all hosts begin anew")
      ->needs(mine);
  app.footer(
      "Example: crane-node --config /etc/crane/group.toml --replica 2\n"
      "Exit status: the server's own; 64 to 79, 100 to 123 are Crane's (README: When it says).");
  CLI11_PARSE(app, argc, argv);
  ::signal(SIGPIPE, SIG_IGN);
  return replica >= 0 ? run_by_itself(path, replica, new_group)
                      : run_under_launcher(path, control_fd);
}
