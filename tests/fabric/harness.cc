// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/harness.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "consensus/fabric/shm.h"

namespace crane::test {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::vector<Seen> drain(Fabric& fabric) {
  std::vector<Seen> out;
  FabricEvent events[8];
  while (const std::size_t n = fabric.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) {
      const FabricEvent& e = events[i];
      out.push_back({e.kind, e.peer, e.ok, e.token, {e.data.begin(), e.data.end()}});
    }
  }
  return out;
}

bool drain_until(Fabric& fabric, const std::function<bool(const Seen&)>& done, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  do {
    for (const Seen& s : drain(fabric)) {
      if (done(s)) return true;
    }
    if (fabric.prepare_to_sleep()) {
      pollfd fd{fabric.event_fd(), POLLIN, 0};
      ::poll(&fd, 1, 20);
    }
  } while (Clock::now() < deadline);
  return false;
}

Seen completion_of(Fabric& fabric, Token token) {
  std::vector<Seen> found;
  for (Seen& s : drain(fabric)) {
    if (s.kind == Kind::kCompletion && s.token == token) found.push_back(std::move(s));
  }
  REQUIRE(found.size() == 1);
  return found.front();
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> out(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) out[i] = static_cast<std::byte>(text[i]);
  return out;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool until(const std::function<bool()>& condition, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::uint64_t given_seed() {
  const char* const given = std::getenv("CRANE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

void let_pass_us(std::uint64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));  // poll
}

TemporaryDirectory::TemporaryDirectory() {
  const bool shm = ::access("/dev/shm", W_OK) == 0;
  path_ = std::string(shm ? "/dev/shm" : "/tmp") + "/crane-test-XXXXXX";
  REQUIRE(::mkdtemp(path_.data()) != nullptr);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Child::Child(const std::function<void()>& body) : pid_(::fork()) {
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    body();
    ::_exit(0);
  }
}

Child::~Child() {
  if (pid_ > 0) kill();
}

void Child::stop() {
  REQUIRE(::kill(pid_, SIGSTOP) == 0);
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, WUNTRACED) == pid_);
  REQUIRE(WIFSTOPPED(status));
}

void Child::resume() { REQUIRE(::kill(pid_, SIGCONT) == 0); }

void Child::kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool Child::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void* shared_pages(std::size_t size) {
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  return at;
}

void release_pages(void* at, std::size_t size) { ::munmap(at, size); }

std::vector<consensus::Endpoint> verbs_endpoints(std::uint8_t replicas, std::uint16_t port) {
  const char* const given = std::getenv("CRANE_VERBS_ADDRESSES");
  std::istringstream words(given != nullptr ? given : "10.9.0.1 10.9.0.2 10.9.0.3");
  std::vector<std::string> hosts;
  for (std::string word; words >> word;) hosts.push_back(word);
  std::vector<consensus::Endpoint> out;
  for (std::size_t i = 0; i < replicas; ++i) {
    out.push_back({hosts[i % hosts.size()], static_cast<std::uint16_t>(port + i / hosts.size())});
  }
  return out;
}

std::uint16_t next_verbs_port() {
  static int n = 0;
  return static_cast<std::uint16_t>(20000 + (::getpid() * 64 + n++ * 4) % 10000);
}

std::unique_ptr<Fabric> ShmGroup::open(std::uint8_t id, std::uint8_t replicas) {
  consensus::ShmOptions options;
  options.directory = directory_.path();
  options.self = ReplicaId{id};
  options.replicas = replicas;
  options.group = 77;
  options.log_bytes = kLogBytes;
  auto opened = consensus::ShmFabric::open(options);
  if (!opened) return nullptr;
  return std::move(opened).value();
}

void ShmGroup::lose_memory(std::uint8_t id) {
  std::filesystem::remove_all(directory_.path() + "/r" + std::to_string(id));
}

void ShmGroup::half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                          std::span<const std::byte> bytes) {
  auto* const writer = static_cast<consensus::ShmFabric&>(fabric).test_only_writer(peer, key);
  if (writer != nullptr) writer->test_only_copy(offset, bytes);
}

bool ShmGroup::other_half(Fabric& fabric, ReplicaId peer, Key key) {
  auto* const writer = static_cast<consensus::ShmFabric&>(fabric).test_only_writer(peer, key);
  return writer != nullptr && writer->test_only_publish();
}

}  // namespace crane::test
