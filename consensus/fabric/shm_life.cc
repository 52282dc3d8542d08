// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/shm_life.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "consensus/fabric/process.h"

namespace crane::consensus::shm {
namespace {

constexpr std::size_t kWatchStackBytes = 64U << 10;

struct alignas(64) Line {
  pthread_mutex_t mutex;
};

std::string path_in(const std::string& directory) { return directory + "/life"; }

int make_robust(pthread_mutex_t* mutex) noexcept {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  const int why = ::pthread_mutex_init(mutex, &kind);
  ::pthread_mutexattr_destroy(&kind);
  return why;
}

}  // namespace

LifeLine::~LifeLine() {
  for (std::uint8_t i = 0; i < held_; ++i) ::pthread_mutex_unlock(&region_.as<Line>()[i].mutex);
}

Outcome LifeLine::hold(const std::string& directory, std::uint8_t replicas) {
  const std::string path = path_in(directory);
  ::unlink((path + ".new").c_str());
  auto region = Region::create(path + ".new", replicas * sizeof(Line), Fill::kWhole);
  if (!region) return region.error();
  region_ = std::move(region).value();
  for (; held_ < replicas; ++held_) {
    pthread_mutex_t* const mutex = &region_.as<Line>()[held_].mutex;
    int why = make_robust(mutex);
    if (why == 0) why = ::pthread_mutex_lock(mutex);
    if (why != 0) return Error{Code::kSystem, why, "make a robust mutex"};
  }
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) {
    return system_error("publish the life line");
  }
  return Done{};
}

// Shared by the watch and its thread; the last one frees it.
struct LifeWatch::Shared {
  Region region;
  pthread_mutex_t* mutex = nullptr;
  int event = -1;
  std::shared_ptr<Urgency> urgency;
  std::atomic<bool> stopped{false};

  ~Shared() {
    if (event >= 0) ::close(event);
  }

  static void* wait(void* argument) {
    const std::unique_ptr<std::shared_ptr<Shared>> self(
        static_cast<std::shared_ptr<Shared>*>(argument));
    Shared& s = **self;
    // EOWNERDEAD: the process died. 0: it closed its life line.  Both mean that it is gone.
    // Unlocking leaves a mutex of a dead owner inconsistent for ever, which is fine: it has no
    // further use.
    if (s.urgency) Urgency::always();
    const int got = ::pthread_mutex_lock(s.mutex);
    if (got == 0 || got == EOWNERDEAD) ::pthread_mutex_unlock(s.mutex);
    const std::uint64_t one = 1;
    if (s.stopped.load()) return nullptr;
    if (s.urgency) s.urgency->begin();
    static_cast<void>(!::write(s.event, &one, sizeof one));
    return nullptr;
  }
};

Outcome LifeWatch::start(const std::string& directory, std::uint8_t replicas, ReplicaId self,
                         std::shared_ptr<Urgency> urgency) {
  stop();
  auto region =
      Region::open(path_in(directory), Region::Access::kReadWrite, replicas * sizeof(Line));
  if (!region) return region.error();
  auto shared = std::make_shared<Shared>();
  shared->region = std::move(region).value();
  shared->urgency = std::move(urgency);
  shared->mutex = &shared->region.as<Line>()[value(self)].mutex;
  shared->event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (shared->event < 0) return system_error("eventfd");

  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kWatchStackBytes);
  auto argument = std::make_unique<std::shared_ptr<Shared>>(shared);
  pthread_t thread{};
  int why = 0;
  {
    const SignalsBlocked blocked;
    why = ::pthread_create(&thread, &attributes, &Shared::wait, argument.get());
  }
  ::pthread_attr_destroy(&attributes);
  if (why != 0) return Error{Code::kSystem, why, "pthread_create"};
  static_cast<void>(argument.release());  // the thread has it
  shared_ = std::move(shared);
  return Done{};
}

void LifeWatch::stop() noexcept {
  if (shared_) shared_->stopped.store(true);
  shared_.reset();
}

int LifeWatch::fd() const noexcept { return shared_ ? shared_->event : -1; }

}  // namespace crane::consensus::shm
