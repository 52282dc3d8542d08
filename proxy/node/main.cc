// SPDX-License-Identifier: Apache-2.0
// crane-node: one replica's node.  Started by crane-run, never by hand.
#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "proxy/node/config.h"
#include "proxy/node/control.h"
#include "proxy/node/node.h"
#include "proxy/node/placement.h"

namespace {

void open_log(const crane::node::Config& config) {
  std::error_code ignored;
  std::filesystem::create_directories(config.replica_dir(), ignored);
  try {
    auto log = spdlog::basic_logger_mt("crane-node", config.replica_dir() + "/node.log");
    log->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(log));
  } catch (const spdlog::spdlog_ex& e) {
    spdlog::warn("no node.log: {}", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"One replica of a Crane group; started by crane-run."};
  int control_fd = -1;
  std::string path;
  app.add_option("--control-fd", control_fd, "socket to crane-run");
  app.add_option("--config", path, "the node's configuration (JSON)")->required();
  CLI11_PARSE(app, argc, argv);

  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGPIPE, SIG_IGN);
  const auto config = crane::node::read_config(path);
  if (!config.ok()) {
    const int status = crane::node::code(crane::node::ExitStatus::kBadConfiguration);
    const std::string why = path + ": " + config.error().what;
    spdlog::error("{}", why);
    crane::node::Control(control_fd).send({{"t", "fatal"}, {"code", status}, {"message", why}});
    return status;
  }
  open_log(config.value());
  crane::node::place_node(config.value());
  crane::node::Node node(config.value(), control_fd);
  return crane::node::code(node.run());
}
