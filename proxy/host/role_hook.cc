// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/role_hook.h"

#include <signal.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace crane::node {
namespace {

constexpr const char* kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

RoleHook::RoleHook(event_base* base, std::string program)
    : base_(base), program_(std::move(program)) {}

RoleHook::~RoleHook() {
  if (pidfd_ < 0) return;
  event_del(&event_);
  ::close(pidfd_);
}

void RoleHook::changed(std::vector<std::string> state) {
  if (program_.empty()) return;
  next_ = std::move(state);
  if (!running()) start();
}

void RoleHook::start() {
  std::vector<std::string> environment = std::move(*next_);
  next_.reset();
  environment.emplace_back(kPath);
  std::vector<std::string> words = {program_};
  posix_spawnattr_t attributes;
  sigset_t none, pipe;
  ::sigemptyset(&none);
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int why = ::posix_spawn(&pid_, program_.c_str(), nullptr, &attributes,
                                pointers(words).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (why != 0) {
    spdlog::error("the role hook was not run: {}: {}", program_, std::strerror(why));
    return;
  }
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd_ < 0) {
    spdlog::error("the role hook is not watched: {}: {}", program_, std::strerror(errno));
    return;
  }
  event_assign(
      &event_, base_, pidfd_, EV_READ,
      [](int, short, void* hook) { static_cast<RoleHook*>(hook)->ended(); }, this);
  event_add(&event_, nullptr);
}

void RoleHook::ended() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ::close(std::exchange(pidfd_, -1));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    spdlog::info("the role hook has run: {}", program_);
  } else if (WIFEXITED(status)) {
    spdlog::warn("the role hook failed: {}: status {}", program_, WEXITSTATUS(status));
  } else {
    spdlog::warn("the role hook died: {}: signal {}", program_, WTERMSIG(status));
  }
  if (next_) start();
}

}  // namespace crane::node
