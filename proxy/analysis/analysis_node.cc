// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/analysis_node.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "dmt/base/accept_error.h"
#include "proxy/host/consensus_options.h"
#include "proxy/host/history_about.h"
#include "proxy/host/status.h"
#include "proxy/node/node.h"
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// Interval at which entries are written to the kernel; the reader checks about as often.
constexpr std::uint64_t kFlushNs = 50'000'000;
constexpr std::uint64_t kLookNs = 500'000'000;
constexpr std::size_t kClientsMax = 16, kRequestMax = 4096;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::uint64_t now() { return static_cast<std::uint64_t>(monotonic_ns()); }

}  // namespace

AnalysisNode::AnalysisNode(const Config& config, int control_fd)
    : config_(config), control_(control_fd) {
  engine_status_.tool = config.analysis;
  engine_status_.report = config.analysis_dir + "/report.txt";
}

AnalysisNode::~AnalysisNode() {
  for (const int fd : clients_) ::close(fd);
  if (socket_ >= 0) ::close(socket_);
  if (signals_ >= 0) ::close(signals_);
}

ExitStatus AnalysisNode::run() {
  if (open()) {
    spdlog::info("replica {} gets the log for {}", config_.replica, config_.analysis);
    control_.send({{"t", "ready"}});
  }
  while (!done_) {
    const std::uint64_t began = now();
    std::uint64_t due = consensus_->poll(began);
    consensus_->flush_doorbells();
    look_after_log(began);
    if (flush_ns_ != 0) due = std::min(due, flush_ns_);
    if (!done_) wait(std::min(due, look_ns_));
  }
  shut_down();
  spdlog::info("replica {} leaves with status {}", config_.replica, code(result_));
  return result_;
}

// --- setting up ---------------------------------------------------------------------------------

bool AnalysisNode::open() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT}) ::sigaddset(&set, s);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  open_control_socket();
  return open_spool() && open_consensus();
}

bool AnalysisNode::open_spool() {
  auto spool = Spool::open(config_.analysis_dir, config_.replica, history_about(config_),
                           std::uint64_t{config_.analysis_spool_mb} << 20);
  if (!spool.ok()) {
    fail(ExitStatus::kNotHere, fmt::format("{}: {}; name another directory with --analysis-dir",
                                           config_.analysis_dir, spool.error().message()));
    return false;
  }
  spool_ = std::move(spool).value();
  return true;
}

bool AnalysisNode::open_consensus() {
  consensus::Options options = member_options(config_);
  options.analysis = true;
  options.forget = true;  // its server always begins at the start of the log
  options.callbacks.on_committed = [this](const consensus::EntryView& e) { on_committed(e); };
  options.callbacks.on_role = [](consensus::Role role, View view, ReplicaId) {
    spdlog::info("{} in view {}.{}", consensus::name(role), view_counter(view),
                 value(view_owner(view)));
  };
  options.callbacks.on_fatal = [this](const char* why) {
    if (consensus_ != nullptr && consensus_->status().removed) control_.send({{"t", "removed"}});
    const bool removed = consensus_ != nullptr && consensus_->status().removed;
    fail(removed ? ExitStatus::kLeftGroup : ExitStatus::kLogFailed, why);
  };
  auto opened = consensus::Consensus::open(std::move(options));
  if (!opened.ok()) {
    fail(ExitStatus::kNoConsensus,
         fmt::format("consensus in {}: {}", config_.shm_dir, opened.error().message()));
    return false;
  }
  consensus_ = std::move(opened).value();
  return true;
}

void AnalysisNode::open_control_socket() {
  const std::string path = config_.replica_dir() + "/control.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ::unlink(path.c_str());
  if (path.size() < sizeof address.sun_path) {
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    if (socket_ >= 0 && ::bind(socket_, where, sizeof address) == 0 && ::listen(socket_, 16) == 0) {
      return;
    }
  }
  spdlog::warn("no control.sock: {}", std::strerror(errno));
}

// --- the loop -----------------------------------------------------------------------------------

void AnalysisNode::wait(std::uint64_t until_ns) {
  if (control_.refused()) control_.flush();
  const bool paused = accept_ns_ > now();
  if (paused) until_ns = std::min(until_ns, accept_ns_);
  const bool writes = control_.waits() && !control_.refused();
  std::vector<pollfd> fds{
      {consensus_->event_fd(), POLLIN, 0},
      {signals_, POLLIN, 0},
      {control_.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0},
      {paused ? -1 : socket_, POLLIN, 0},
      {engine_ != nullptr ? engine_->fd() : -1, POLLIN, 0}};
  for (const int fd : clients_) fds.push_back({fd, POLLIN, 0});
  const std::uint64_t began = now();
  const std::uint64_t ns = until_ns > began ? until_ns - began : 0;
  const timespec timeout{static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
  if (::ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return;
  if (fds[1].revents != 0) on_signals();
  if ((fds[2].revents & POLLOUT) != 0) control_.flush();
  if ((fds[2].revents & ~POLLOUT) != 0) on_control();
  if (fds[4].revents != 0) on_engine_output();
  // answer() removes from clients_, so this loop uses the copy in fds.
  for (std::size_t i = 5; i < fds.size(); ++i) {
    if (fds[i].revents != 0) answer(fds[i].fd);
  }
  if (fds[3].revents != 0) accept_client();
}

void AnalysisNode::on_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) done_ = true;
}

void AnalysisNode::on_control() {
  for (;;) {
    auto message = control_.receive();
    if (!message.ok()) return;
    if (message.value().fd >= 0) ::close(message.value().fd);
    if (message.value().text.empty()) {
      spdlog::error("crane-run is gone");
      done_ = true;
      result_ = ExitStatus::kControlLost;
      return;
    }
    const auto command = parse_command(message.value().text);
    if (command && command->is("stop")) done_ = true;
  }
}

void AnalysisNode::accept_client() {
  const int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    constexpr std::uint64_t kAgainNs = std::uint64_t{kAcceptAgainMs} * 1'000'000;
    if (classify_accept_error(errno) == AcceptError::kHost) accept_ns_ = now() + kAgainNs;
    return;
  }
  if (clients_.size() >= kClientsMax) {  // close the one that waits longest
    ::close(clients_.front());
    clients_.erase(clients_.begin());
  }
  clients_.push_back(fd);
}

// Reads one request and sends one answer.
void AnalysisNode::answer(int fd) {
  std::string request(kRequestMax, '\0');
  const ssize_t got = ::recv(fd, request.data(), request.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    request.resize(static_cast<std::size_t>(got));
    const std::string text = reply_to(request);
    (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::close(fd);
  std::erase(clients_, fd);
}

std::string AnalysisNode::reply_to(const std::string& text) const {
  const Json request = Json::parse(text, nullptr, false);
  const auto what = request.is_object() ? request.find("do") : request.end();
  if (request.is_object() && what != request.end() && *what == "status") return status();
  return Json{{"ok", false},
              {"error", "bad_argument"},
              {"message", fmt::format("replica {} is an analysis replica: it serves no client and "
                                      "never leads; crane-ctl member remove {} ends it",
                                      config_.replica, config_.replica)}}
      .dump();
}

std::string AnalysisNode::status() const {
  NodeStatus s;
  const consensus::GroupStatus group = consensus_->status();
  s.group = config_.group;
  s.replica = config_.replica;
  s.replicas = config_.replicas;
  s.pid = ::getpid();
  s.server_pid = engine_ != nullptr && engine_->running() ? engine_->pid() : -1;
  s.role = "analysis";
  s.view = view_counter(group.view);
  s.leader = value(group.leader);
  s.last = value(group.last);
  s.committed = value(group.committed);
  s.applied = engine_status_.entry;
  s.fabric = "shm";
  s.durability = "memory";
  s.connected = group.connected;
  s.now_ns = now();
  s.log = group;
  Json all = to_json(s);
  // An analysis replica has no part in these.
  for (const char* key : {"verified", "checkpoint", "soft_barriers", "unhooked_calls", "unhooked",
                          "unsupported", "readiness", "verdict"}) {
    all.erase(key);
  }
  all["may_lose"] = nullptr;
  AnalysisStatus status = engine_status_;
  status.got = spool_->last();
  status.spooled = spool_->kept();
  all["analysis"] = to_json(status);
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// --- the log and the engine ---------------------------------------------------------------------

void AnalysisNode::on_committed(const consensus::EntryView& entry) {
  if (done_) return;
  if (spool_->last() == 0 && value(entry.at.index) != 1) {
    return too_late(fmt::format("begins at entry {}", value(entry.at.index)));
  }
  spool_->committed(entry);
  if (flush_ns_ == 0) flush_ns_ = now() + kFlushNs;
}

void AnalysisNode::too_late(const std::string& how) {
  fail(ExitStatus::kMissedEntries,
       fmt::format("the others' log {}, but a server in valgrind cannot begin at a checkpoint: "
                   "start the group again with --analysis {}",
                   how, config_.analysis));
}

void AnalysisNode::look_after_log(std::uint64_t now_ns) {
  if (flush_ns_ != 0 && now_ns >= flush_ns_) {
    flush_ns_ = 0;
    spool_->flush();
    if (engine_ == nullptr && spool_->last() > 0 && !done_) start_engine();
  }
  if (now_ns >= look_ns_) {
    look_ns_ = now_ns + kLookNs;
    if (consensus_->status().needs_checkpoint && spool_->last() == 0) {
      too_late("begins after entry 1");
    } else if (consensus_->status().needs_checkpoint && !spool_->ended()) {
      spool_->end("they have left the others' logs while this replica was away");
    }
  }
  if (const std::string news = spool_->take_message(); !news.empty()) log_and_send(news);
}

void AnalysisNode::start_engine() {
  EngineOptions options;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  options.program = (here / "crane-replay").string();
  for (const char* installed : {"../../bin/crane-replay", "../bin/crane-replay"}) {
    if (!fs::exists(options.program, ignored)) options.program = (here / installed).string();
  }
  options.directory = config_.analysis_dir;
  options.replica = config_.replica;
  options.tool = config_.analysis;
  options.report = engine_status_.report;
  options.place_dir = config_.replica_dir() + "/analysis";
  // Named after this process: an earlier one may still be ending.
  options.place_name = fmt::format("{}.r{}.{}", config_.group, config_.replica, ::getpid());
  options.log = config_.replica_dir() + "/engine.log";
  engine_ = std::make_unique<Engine>(std::move(options));
  if (const Outcome started = engine_->start(); !started.ok()) {
    return fail(ExitStatus::kServerNotStarted,
                fmt::format("crane-replay: {}", started.error().message()));
  }
  spdlog::info("crane-replay, pid {}, runs the server in {}", engine_->pid(), config_.analysis);
}

void AnalysisNode::on_engine_output() {
  int ended_with = -1;
  const bool lives = engine_->receive([&](const Json& received) {
    const std::string news = apply_message(engine_status_, received);
    const std::string type = control::text_in(received, "t");
    if (type == "end") ended_with = static_cast<int>(control::number_in(received, "status"));
    if (type == "progress") spool_->read_up_to(control::number_in(received, "position"));
    if (!news.empty() && ended_with < 3) log_and_send(news);
  });
  if (lives || done_) return;
  constexpr int kLastVerdict = 2;  // a higher ReplayStatus is a failure
  if (ended_with >= 0 && ended_with <= kLastVerdict) return;
  if (ended_with < 0 && engine_status_.ended.empty()) {
    // Killed from outside: crane-run starts this node again, if the log still has all entries.
    const int how = engine_->how_ended();
    spdlog::error("crane-replay ended at entry {}: {}", engine_status_.entry,
                  WIFSIGNALED(how) ? fmt::format("killed by signal {}", WTERMSIG(how))
                                   : fmt::format("status {}", WEXITSTATUS(how)));
    done_ = true;
    result_ = ExitStatus::kServerDied;
    return;
  }
  fail(ended_with == 4 ? ExitStatus::kNotHere : ExitStatus::kServerDied,
       fmt::format("at entry {}: {}", engine_status_.entry, engine_status_.ended));
}

void AnalysisNode::shut_down() {
  if (engine_ != nullptr) {
    engine_->stop();
    engine_.reset();
  }
  // The findings stay; the inputs, and an empty report, do not.
  std::error_code ignored;
  fs::remove(fmt::format("{}/replica-{}.history", config_.analysis_dir, config_.replica), ignored);
  if (engine_status_.reports == 0) fs::remove(engine_status_.report, ignored);
}

void AnalysisNode::log_and_send(const std::string& text) {
  spdlog::info("{}", text);
  control_.send({{"t", "analysis"}, {"text", text}});
}

void AnalysisNode::fail(ExitStatus status, const std::string& why) {
  if (done_) return;
  spdlog::error("{}", why);
  done_ = true;
  result_ = status;
  control_.send({{"t", "fatal"}, {"code", code(status)}, {"message", why}});
}

}  // namespace crane::node
