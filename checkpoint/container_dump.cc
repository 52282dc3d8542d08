// SPDX-License-Identifier: Apache-2.0
// Dump and restore: the node's requests, and the supervisor's restore with CRIU (criu.h).
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "checkpoint/container_supervisor.h"
#include "checkpoint/criu.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/orphans.h"

namespace crane::checkpoint {
namespace {

// Crane's keys in CRIU's images, and Crane's file among them.
constexpr const char* kNetworkKey = "crane.network";
constexpr const char* kStdioKeys = "crane.stdio";

// Makes a network namespace with lo up, like LXC's; the caller stays in its own.
Result<int> make_network() {
  const int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (before < 0 || unshare(CLONE_NEWNET) != 0) return system_error("unshare the network");
  const int made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  ifreq lo{};
  std::strcpy(lo.ifr_name, "lo");
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool up = any >= 0 && ioctl(any, SIOCGIFFLAGS, &lo) == 0;
  lo.ifr_flags |= IFF_UP;
  up = up && ioctl(any, SIOCSIFFLAGS, &lo) == 0;
  const Error failure = system_error("set up the network");
  if (any >= 0) close(any);
  const bool back = setns(before, CLONE_NEWNET) == 0;
  close(before);
  if (made < 0 || !up || !back) return failure;
  return made;
}

// Ends the remains of an incomplete restore, which are children of the supervisor.
void end_children() {
  const std::string self = std::to_string(getpid());
  std::ifstream list("/proc/self/task/" + self + "/children");
  for (pid_t child; list >> child;) {
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

bool is_usable_path(const std::string& path) {
  return !path.empty() && path[0] == '/' && path.size() < PATH_MAX;
}

}  // namespace

Outcome Server::prepare_restore() {
  return Error{Code::kUnsupported, 0, "only a server in a container can recover from a dump"};
}

Outcome Server::describe(CriuCall&) {
  return Error{Code::kUnsupported, 0, "only a server in a container can be dumped"};
}

// --- the supervisor ------------------------------------------------------------------------------

std::string work_directory(const std::string& directory) { return directory + "/criu"; }
std::string log_of_failure(const std::string& directory) { return directory + "/criu.log"; }

Outcome ContainerSupervisor::run_criu(CriuCall& call) {
  const std::string& directory = server_.options_.directory;
  call.work = work_directory(directory);
  unlink(log_of_failure(directory).c_str());
  auto program = find_criu();
  if (!program) return program.error();
  const auto began = now_ms();
  auto child = start_criu(program.value(), call);
  if (!child) return child.error();
  fault_point("restore.running");
  const int watch = open_pidfd(child.value());
  auto deadline = began + server_.options_.criu_limit_ms;
  bool orphan = false;
  int status = 0;
  while (waitpid(child.value(), &status, WNOHANG) == 0) {
    const auto left = deadline - now_ms();
    if (left <= 0) {
      ::kill(-child.value(), SIGKILL);
      waitpid(child.value(), &status, 0);
      break;
    }
    // Watch only for the node's end; its requests are read when the server runs.
    pollfd fds[2] = {{watch, POLLIN, 0}, {orphan ? -1 : channel_, POLLRDHUP, 0}};
    (void)poll(fds, 2, static_cast<int>(left));
    if (fds[1].revents == 0) continue;
    orphan = true;
    deadline = std::min(deadline, now_ms() + kOrphanTimeoutMs);
  }
  close(watch);
  times_.criu = (now_ms() - began) * 1000;
  if (status == 0) return Done{};
  remove_directories_of_criu();
  return explain_failure(WIFSIGNALED(status),
                         Error{Code::kSystem, 0, "CRIU cannot restore the server"});
}

// Sets the reason, unless there is one, and keeps CRIU's log.  `died`: CRIU was killed; else it
// refused, and `refusal` is the error.
Error ContainerSupervisor::explain_failure(bool died, const Error& refusal) {
  const std::string& directory = server_.options_.directory;
  const std::string work = work_directory(directory);
  if (died) {
    reason_ = "CRIU was killed or did not end in time";
  } else if (reason_.empty()) {
    reason_ = criu_refusal(work);
  }
  rename((work + "/criu.log").c_str(), log_of_failure(directory).c_str());
  return died ? Error{Code::kSystem, 0, "CRIU did not end"} : refusal;
}

Outcome ContainerSupervisor::restore() {
  const std::string work = work_directory(server_.options_.directory);
  CriuCall call;
  call.kind = CriuCall::Kind::kRestore;
  call.images = server_.restore_.images;
  struct stat info {};
  for (const auto& kept : {server_.restore_.images, server_.restore_.upper}) {
    if (stat(kept.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    reason_ = "there is no directory " + kept;
    return Error{Code::kNotFound, errno, "a directory of the checkpoint is missing"};
  }
  const auto began = now_us();
  if (auto prepared = server_.prepare_restore(); !prepared) return prepared;
  fault_point("restore.mounted");
  times_.copying = now_us() - began;
  remove_tree(work);
  if (auto made = make_directories(work); !made) return made;
  Outcome done = server_.describe(call);
  if (done) done = run_criu(call);
  int pid = 0;
  if (done) std::ifstream(work + "/pid") >> pid;
  remove_tree(work);
  if (!done) {
    end_children();
    return done;
  }
  if (pid <= 0) return Error{Code::kSystem, 0, "CRIU did not report the process that it restored"};
  fault_point("restore.done");
  server_.direct_child_ = server_.first_ = pid;
  return Done{};
}

Outcome Server::move_upper(const std::string&) {
  return Error{Code::kUnsupported, 0, "only a server in a container has files of its own"};
}

// --- a container --------------------------------------------------------------------------------

Outcome Container::prepare_restore() {
  if (auto placed = prepare_place(); !placed) return placed;
  if (auto mounted = mount_root(restore_.upper); !mounted) return mounted;
  auto network = make_network();
  if (!network) return network.error();
  network_ = network.value();
  return Done{};
}

Outcome Container::describe(CriuCall& call) {
  const bool dump = call.kind == CriuCall::Kind::kDump;
  for (const auto& bind : all_binds()) {
    call.externals.push_back("mnt[" + bind.target + "]:" + (dump ? bind.target : bind.source));
  }
  const int out = options_.stdout_fd < 0 ? null_ : options_.stdout_fd;
  const int err = options_.stderr_fd < 0 ? null_ : options_.stderr_fd;
  const std::string keys = call.images + "/" + kStdioKeys;
  if (dump) {
    struct stat network {};
    if (stat(("/proc/" + std::to_string(first_) + "/ns/net").c_str(), &network) != 0) {
      return system_error("look at the server's network");
    }
    call.externals.push_back("net[" + std::to_string(network.st_ino) + "]:" + kNetworkKey);
    std::ofstream file(keys);
    for (const int fd : {null_, out, err}) {
      const std::string key = external_key(fd);
      file << key << "\n";
      if (key.rfind("file[", 0) == 0) call.externals.push_back(key);
    }
    if (!file.flush()) return Error{Code::kFull, errno, "write among the images"};
    return Done{};
  }
  call.root = options_.directory + "/rootfs";
  call.inherited.push_back({network_, kNetworkKey});
  std::ifstream file(keys);
  std::set<std::string> known;
  for (const int fd : {null_, out, err}) {
    std::string key;
    if (!std::getline(file, key)) {
      return Error{Code::kDamaged, 0, "the images lack the server's standard descriptors"};
    }
    if (!key.empty() && known.insert(key).second) call.inherited.push_back({fd, key});
  }
  return Done{};
}

// --- the node's side ----------------------------------------------------------------------------

Outcome Server::send_request(int what, bool boost, const std::string& images,
                             const std::string& upper) {
  Request request{};
  request.boost = boost;
  request.what = static_cast<Request::What>(what);
  images.copy(request.images, PATH_MAX - 1);
  upper.copy(request.upper, PATH_MAX - 1);
  if (send(channel_, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof request) {
    return system_error("ask the supervisor");
  }
  return Done{};
}

Outcome Server::begin_dump(int what, const std::string& images, const std::string& upper) {
  if (!is_usable_path(images) || !is_usable_path(upper)) {
    return Error{Code::kBadArgument, 0, "a checkpoint's paths are absolute"};
  }
  if (channel_ < 0 || first_ < 0 || ended_)
    return Error{Code::kNotFound, 0, "the server does not run"};
  if (dump_ != Dump::kNone && dump_ != Dump::kAnswered) {
    return Error{Code::kBusy, 0, "a dump is under way"};
  }
  if (auto asked = send_request(what, false, images, upper); !asked) return asked;
  dump_ = what == Request::kPrepare ? Dump::kPreparing : Dump::kUnderWay;
  reason_.clear();
  return Done{};
}

Outcome Server::prepare_checkpoint(const std::string& images, const std::string& upper) {
  return begin_dump(Request::kPrepare, images, upper);
}

Outcome Server::begin_checkpoint(const std::string& images, const std::string& upper) {
  return begin_dump(Request::kAllAtOnce, images, upper);
}

Outcome Server::freeze(bool boost) {
  if (dump_ != Dump::kPrepared) return Error{Code::kBusy, 0, "no dump was prepared"};
  if (auto asked = send_request(Request::kFreeze, boost); !asked) return asked;
  dump_ = Dump::kUnderWay;
  return Done{};
}

Outcome Server::thaw(bool well) {
  if (dump_ != Dump::kUnderWay) return Error{Code::kBusy, 0, "no dump is under way"};
  return send_request(well ? Request::kThaw : Request::kGiveUp);
}

void Server::cancel_checkpoint() noexcept {
  if (dump_ != Dump::kPreparing && dump_ != Dump::kPrepared) return;
  dump_ = send_request(Request::kCancel).ok() ? Dump::kCancelled : Dump::kNone;
}

Result<CheckpointTimes> Server::checkpointed(int timeout_ms) {
  if (dump_ == Dump::kNone || dump_ == Dump::kCancelled) {
    return Error{Code::kBusy, 0, "no dump was asked for"};
  }
  while (dump_ != Dump::kAnswered) {
    if (!take_report(timeout_ms)) return Error{Code::kBusy, 0, "the dump is under way"};
  }
  dump_ = Dump::kNone;
  if (dump_error_.code != Code::kOk) return dump_error_;
  return dump_times_;
}

Outcome Server::keep_files(const std::string& upper) {
  if (!is_usable_path(upper))
    return Error{Code::kBadArgument, 0, "a directory to keep is absolute"};
  if (channel_ < 0 || ended_) return Error{Code::kNotFound, 0, "the server does not run"};
  return send_request(Request::kKeep, false, "", upper);
}

Outcome Server::end() {
  if (channel_ < 0 || ended_) return Error{Code::kNotFound, 0, "the server does not run"};
  return send_request(Request::kEnd);
}

Outcome Server::begin_restore(const std::string& images, const std::string& upper) {
  CRANE_ASSERT(supervisor_ < 0);
  if (!is_usable_path(images) || !is_usable_path(upper)) {
    return Error{Code::kBadArgument, 0, "a checkpoint's paths are absolute"};
  }
  restore_ = {images, upper};
  return fork_supervisor();
}

}  // namespace crane::checkpoint
