// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers of the conformance tests: groups of fabrics (one class per kind of fabric), events as
// plain values, and real child processes that can be stopped, continued and killed.
//
// Threads: none. fork() makes the children, which never return into the test framework.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "consensus/fabric/fabric.h"

namespace crane::test {

using consensus::Fabric;
using consensus::FabricEvent;
using consensus::Key;
using consensus::Token;
using Kind = FabricEvent::Kind;

// A FabricEvent that owns its data.
struct Seen {
  Kind kind{};
  ReplicaId peer{};
  bool ok = false;
  Token token{};
  std::vector<std::byte> data;
};

// Polls until nothing is left.
std::vector<Seen> drain(Fabric& fabric);
// Drains, sleeping on event_fd() in between, until `done` or `timeout_ms`; false on time-out.
bool drain_until(Fabric& fabric, const std::function<bool(const Seen&)>& done, int timeout_ms);
// The completion of `token` in the events of drain(); REQUIREs exactly one.
Seen completion_of(Fabric& fabric, Token token);

std::vector<std::byte> bytes_of(const std::string& text);
std::string text_of(std::span<const std::byte> bytes);
bool until(const std::function<bool()>& condition, int timeout_ms = 10'000);

// CRANE_SEED, which repeats a run's choices, or a random number.
std::uint64_t given_seed();

// Lets time pass in which something continues, or must not happen; never waits for a condition.
void let_pass_us(std::uint64_t us);

// A temporary directory, on tmpfs if there is one.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// A forked child that runs `body` and exits; killed at destruction.
class Child {
 public:
  explicit Child(const std::function<void()>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void stop();  // returns when the child is stopped
  void resume();
  void kill();  // SIGKILL, reaped
  bool wait();  // true: the child exited with 0
  pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_ = -1;
};

// A page shared by parent and children, zeroed.
template <typename T>
class Shared {
 public:
  Shared() : at_(static_cast<T*>(allocate(sizeof(T)))) {}
  ~Shared() { release(at_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const noexcept { return at_; }

 private:
  static void* allocate(std::size_t size);
  static void release(void* at, std::size_t size);
  T* at_;
};
void* shared_pages(std::size_t size);
void release_pages(void* at, std::size_t size);
template <typename T>
void* Shared<T>::allocate(std::size_t size) {
  return shared_pages(size);
}
template <typename T>
void Shared<T>::release(void* at, std::size_t size) {
  release_pages(at, size);
}

// The addresses of a group's replicas over RDMA: three, one per device, as tests/vm makes them;
// CRANE_VERBS_ADDRESSES="10.0.0.1 10.0.0.2 ..." names others.
std::vector<consensus::Endpoint> verbs_endpoints(std::uint8_t replicas, std::uint16_t port);
// A port per group, because children of the previous group may still be dying.
std::uint16_t next_verbs_port();

// A group over shared memory.
class ShmGroup {
 public:
  static constexpr std::uint64_t kLogBytes = 4U << 20;
  static constexpr bool kOneSided = true;  // operations complete without the owner's processor
  // Lets only its owner poll this fabric; in this group that is always so (tcp_group.h).
  void hold(Fabric&) noexcept {}
  void release(Fabric&) noexcept {}
  std::unique_ptr<Fabric> open(std::uint8_t id, std::uint8_t replicas = 3);
  // Makes a replica lose its memory, as after a restart of its machine.
  void lose_memory(std::uint8_t id);
  // Copies half of a write (the caller is then stopped, is killed or continues).
  static void half_write(Fabric& fabric, ReplicaId peer, Key key, std::uint64_t offset,
                         std::span<const std::byte> bytes);
  // Completes the write that half_write began.
  static bool other_half(Fabric& fabric, ReplicaId peer, Key key);

 private:
  TemporaryDirectory directory_;
};

}  // namespace crane::test
