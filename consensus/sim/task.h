// SPDX-License-Identifier: Apache-2.0
#pragma once
// The action of an event: a callable that is stored in place if it is small, so that an event of a
// world costs no allocation.  std::function allocates for more than two words.
//
// Threads: one.

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace crane::consensus::sim {

class Task {
 public:
  template <typename F>
  requires(!std::is_same_v<std::decay_t<F>, Task>) explicit Task(F&& f) { set(std::forward<F>(f)); }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  ~Task() { clear(); }

  // REQUIRES: it holds nothing.
  template <typename F>
  void set(F&& f) {
    using Body = std::decay_t<F>;
    if constexpr (sizeof(Body) <= kRoom && alignof(Body) <= alignof(std::max_align_t)) {
      new (room_) Body(std::forward<F>(f));
      kind_ = &kKind<Body>;
    } else {
      auto boxed = [body = std::make_unique<Body>(std::forward<F>(f))] { (*body)(); };
      new (room_) decltype(boxed)(std::move(boxed));
      kind_ = &kKind<decltype(boxed)>;
    }
  }
  void clear() noexcept {
    if (kind_ != nullptr) kind_->destroy(room_);
    kind_ = nullptr;
  }
  // REQUIRES: it holds something.
  void operator()() { kind_->call(room_); }

 private:
  static constexpr std::size_t kRoom = 64;
  struct Kind {
    void (*call)(void*);
    void (*move)(void* to, void* from);  // and destroys what it moved from
    void (*destroy)(void*);
  };
  template <typename Body>
  static constexpr Kind kKind{
      [](void* body) { (*static_cast<Body*>(body))(); },
      [](void* to, void* from) {
        new (to) Body(std::move(*static_cast<Body*>(from)));
        static_cast<Body*>(from)->~Body();
      },
      [](void* body) { static_cast<Body*>(body)->~Body(); },
  };

  void take(Task& other) noexcept {
    kind_ = std::exchange(other.kind_, nullptr);
    if (kind_ != nullptr) kind_->move(room_, other.room_);
  }

  const Kind* kind_ = nullptr;
  alignas(std::max_align_t) std::byte room_[kRoom];
};

}  // namespace crane::consensus::sim
