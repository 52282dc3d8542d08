// SPDX-License-Identifier: Apache-2.0
// crane-node: one replica's node.  It is started by crane-run with a control channel, or without
// crane-run as one of several hosts: crane-node --config group.toml --replica 2.
#include <poll.h>
#include <signal.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "checkpoint/orphans.h"
#include "consensus/fabric/shm_layout.h"
#include "consensus/fabric/tcp_frame.h"
#include "consensus/fabric/verbs_layout.h"
#include "dmt/base/descriptor_limit.h"
#include "dmt/sequence/entry.h"
#include "proxy/analysis/analysis_node.h"
#include "proxy/host/check_devices.h"
#include "proxy/host/config.h"
#include "proxy/host/control.h"
#include "proxy/host/descriptors.h"
#include "proxy/host/held_files.h"
#include "proxy/host/host_config.h"
#include "proxy/host/placement.h"
#include "proxy/host/recovery/fetch.h"
#include "proxy/node/node.h"
#include "proxy/record/output_record.h"
#include "runtime/control/schema.h"
#include "runtime/setup/command_line.h"
#include "runtime/setup/instance.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/patient_write.h"
#include "runtime/setup/service_manager.h"
#include "runtime/setup/version.h"

namespace {

using crane::node::Config;
using crane::node::ExitStatus;
using crane::setup::CommandLine;
using crane::setup::Program;
using crane::setup::Word;

// The prefix of a line, as crane::setup::print_message() writes it for this level.
class HeadFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& line) override {
    using crane::setup::Level;
    const Level level = message.level >= spdlog::level::err    ? Level::kError
                        : message.level >= spdlog::level::warn ? Level::kWarning
                                                               : Level::kInfo;
    const std::string head = crane::setup::head_of(level);
    line.append(head.data(), head.data() + head.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<HeadFlag>();
  }
};

// Standard error of a node without crane-run.  Its reader may be stopped, but the node never waits:
// lines that find no room are only in node.log, and a later line reports their number.
class StarterSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    if (missing_ > 0) {
      spdlog::details::log_msg about = message;
      const std::string text = std::to_string(missing_) +
                               " lines are in node.log only: the reader "
                               "of this output had stopped";
      about.payload = text;
      formatter_->format(about, line);
      if (!is_written(line)) {
        ++missing_;
        return;
      }
      missing_ = 0;
      line.clear();
    }
    formatter_->format(message, line);
    if (!is_written(line)) ++missing_;
  }
  void flush_() override {}

 private:
  static bool is_written(const spdlog::memory_buf_t& line) {
    return crane::setup::write_what_fits(STDERR_FILENO, line.data(), line.size()) >= 0;
  }

  std::size_t missing_ = 0;
};

std::unique_ptr<spdlog::formatter> line_for_starter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<HeadFlag>('*').set_pattern("%*crane-node: %v");
  return formatter;
}

void open_log(const Config& config) {
  std::error_code ignored;
  std::filesystem::create_directories(config.replica_dir(), ignored);
  try {
    auto log = spdlog::basic_logger_mt("crane-node", config.replica_dir() + "/node.log");
    // Without crane-run it also writes to the standard error of its starter (terminal, journal).
    if (config.host) log->sinks().push_back(std::make_shared<StarterSink>());
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z [%l] %v");
    if (config.host) log->sinks().back()->set_formatter(line_for_starter());
    log->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(log));
  } catch (const spdlog::spdlog_ex& e) {
    spdlog::warn("no node.log: {}", e.what());
  }
}

int run_under_launcher(const std::string& path, int control_fd, rlim_t descriptors) {
  auto config = crane::node::read_config(path);
  if (!config.ok()) {
    const int status = crane::node::code(ExitStatus::kBadConfiguration);
    const std::string why = path + ": " + config.error().what;
    spdlog::error("{}", why);
    crane::node::Control(control_fd).send({{"t", "fatal"}, {"code", status}, {"message", why}});
    return status;
  }
  config.value().server_descriptors = descriptors;
  open_log(config.value());
  crane::node::place_node(config.value());
  if (const auto held = crane::node::hold_files_of_group(config.value()); !held) {
    const int status = crane::node::code(ExitStatus::kServerNotStarted);
    const std::string why = held.error().message();
    spdlog::error("{}", why);
    crane::node::Control(control_fd).send({{"t", "fatal"}, {"code", status}, {"message", why}});
    return status;
  }
  if (!config.value().analysis.empty()) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // the next crane-run starts another one
    return crane::node::code(crane::node::AnalysisNode(config.value(), control_fd).run());
  }
  crane::node::NodeMode member;
  crane::node::Node node(config.value(), control_fd, member);
  return crane::node::code(node.run());
}

// Interval of checks for room on a full disk or shared memory; the kernel does not report room.
constexpr int kRoomLookMs = 2'000;

// Executes this program again with the same arguments.  Returns only on failure.
void begin_again(const std::string& path, int replica, rlim_t descriptors) {
  const std::string number = std::to_string(replica);
  const char* const words[] = {"crane-node", "--config",     path.c_str(),
                               "--replica",  number.c_str(), nullptr};
  spdlog::info("this replica begins again");
  for (const int signo : {SIGINT, SIGTERM}) ::signal(signo, SIG_DFL);  // the loop left them ignored
  spdlog::shutdown();
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  crane::limit_descriptors(descriptors);
  crane::setup::service_manager().put_back();
  ::execv("/proc/self/exe", const_cast<char* const*>(words));
}

struct RestartPlan {
  bool new_group = false;  // forget the old group's state
  bool forget = false;     // begin as a new member, at a checkpoint
};

int run_by_itself(const std::string& path, int replica, const RestartPlan& begin,
                  rlim_t descriptors) {
  crane::setup::set_program("crane-node");
  crane::setup::keep_log();
  crane::setup::GroupDirectories directories;
  Config config;
  const auto problem = crane::node::host_config(path, replica, directories, config);
  if (!problem) {
    crane::setup::print_message(problem.error().text);
    // A person at a terminal gets the message; a service waits for room.
    const bool full = crane::setup::status_of(problem) == crane::setup::Status::kDiskFull;
    if (full && crane::setup::service_manager().manages()) {
      crane::setup::service_manager().status("waits for room: " + problem.error().text);
      ::poll(nullptr, 0, kRoomLookMs);
      begin_again(path, replica, descriptors);
    }
    return problem.error().exit_status;
  }
  open_log(config);
  crane::checkpoint::remove_directories_of_criu();
  // A new group does not fetch: other hosts may still have checkpoints of the old group.
  if (begin.new_group) {
    crane::node::forget_group(config);
  } else if (!crane::node::fetch_before_start(config)) {
    return crane::node::code(ExitStatus::kNoCheckpoint);
  } else {
    crane::node::choose_starting_point(config);
  }
  config.forget = begin.forget;
  config.server_descriptors = descriptors;
  crane::node::place_node(config);
  if (const auto held = crane::node::hold_files_of_group(config); !held) {
    spdlog::error("{}", held.error().message());
    return crane::node::code(ExitStatus::kServerNotStarted);
  }
  ExitStatus status;
  {
    crane::node::NodeMode member;
    crane::node::Node node(config, -1, member);
    status = node.run();
    if (status == ExitStatus::kStopped) return node.server_exit_code();
  }
  if (status == ExitStatus::kNoRoom) {
    ::poll(nullptr, 0, kRoomLookMs);
    begin_again(path, replica, descriptors);
  }
  // There is a newer checkpoint on this host, or one before the server's position.
  const bool again = status == ExitStatus::kTooFarBehind || status == ExitStatus::kBeginsAgain;
  if (again || crane::node::fetch_after(config, status)) begin_again(path, replica, descriptors);
  return crane::node::code(status);
}

crane::Outcome find_instance(const std::string& word, std::string& path, int& replica) {
  crane::setup::Instance instance;
  if (auto p = crane::setup::parse_instance(word, "/etc/crane", instance); !p) return p;
  path = instance.path;
  replica = instance.replica.value_or(-1);
  if (instance.replica) return crane::Done{};
  crane::setup::GroupFile file;
  if (auto p = crane::setup::read_group_file(path, file); !p) return p;
  return crane::setup::own_replica(path, file, replica);
}

std::string version() {
  return crane::setup::version_text({{"entry", crane::kEntryFormatVersion},
                                     {"tcp", crane::consensus::tcp::kTcpVersion},
                                     {"verbs", crane::consensus::verbs::kVerbsVersion},
                                     {"shm", crane::consensus::shm::kShmLayoutVersion},
                                     {"recording", crane::proxy::kRecordingVersion},
                                     {"control", crane::control::kVersion}});
}

// The command line.
struct Typed {
  int control_fd = -1, replica = -1;
  std::string path, instance;
  bool checks_devices = false;
  RestartPlan begin;
};

std::vector<Word> words_of(Typed& typed) {
  return {
      {"--config", &typed.path, "the group's file (TOML; from crane-run: JSON)"},
      {"--replica", &typed.replica, "the number of this host's replica", {.needs = {"--config"}}},
      {"--instance",
       &typed.instance,
       "as --config /etc/crane/NAME.toml, for the replica with an address of this host, or the one "
       "that "
       "NAME:REPLICA names (for units of systemd)",
       {.excludes = {"--config", "--replica"}}},
      {"--control-fd",
       &typed.control_fd,
       "socket to crane-run, which sets it",
       {.excludes = {"--replica", "--instance"}}},
      {"--force-new-group",
       Word::Flag{&typed.begin.new_group},
       "forget this replica's state of the group; only when all hosts start over",
       {.excludes = {"--control-fd"}}},
      {"--forget-log",
       Word::Flag{&typed.begin.forget},
       "forget the log that this host holds: the replica recovers as a new member, at a "
       "checkpoint",
       {.excludes = {"--control-fd", "--force-new-group"}}},
      {"--check-devices",
       Word::Flag{&typed.checks_devices},
       "test the fence of this machine's RDMA devices, and print it as JSON",
       {.excludes = {"--config", "--instance"}}}};
}

}  // namespace

int main(int argc, char** argv) {
  (void)crane::setup::service_manager();
  Typed typed;
  const Program program{
      {"crane-node", "One replica of a Crane group.", words_of(typed)},
      version(),
      "Example: crane-node --config /etc/crane/group.toml --replica 2\n"
      "Exit status: the server's own; 64 to 85, 100 to 126, 193 and 195 are Crane's "
      "(REFERENCE.md: Exit status)."};
  const auto report = [](const std::string& mistake) {
    crane::setup::set_program("crane-node");
    crane::setup::print_message("command line: " + mistake + "; see crane-node --help");
  };
  const int usage = static_cast<int>(crane::setup::Status::kUsage);
  if (const auto status = CommandLine(program).status_after(argc, argv, usage, report)) {
    return *status;
  }
  if (typed.checks_devices) {
    std::printf("%s\n", crane::node::check_devices().dump().c_str());
    return 0;
  }
  if (typed.path.empty() && typed.instance.empty()) {
    report("--config or --instance is required");
    return usage;
  }
  if (!typed.instance.empty()) {
    crane::setup::set_program("crane-node");
    const crane::Outcome found = find_instance(typed.instance, typed.path, typed.replica);
    if (!found) {
      crane::setup::print_message(found.error().text);
      return found.error().exit_status;
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  const rlim_t descriptors = crane::node::prepare_descriptors();
  return typed.replica >= 0 ? run_by_itself(typed.path, typed.replica, typed.begin, descriptors)
                            : run_under_launcher(typed.path, typed.control_fd, descriptors);
}
