// SPDX-License-Identifier: Apache-2.0
#pragma once
// The leader's resolver is libc's.  It reads /etc/nsswitch.conf, /etc/hosts and /etc/resolv.conf of
// the host, and may wait long.  So each question has its own process; the loop receives the answer
// through a pipe, and kills a process that is late.
//
// Threads: the node's one thread, inside its event loop.

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/types.h>

#include <cstdint>
#include <list>

#include "proxy/clients/names.h"

namespace crane::proxy {

struct ResolverOptions {
  VirtualAddress server{};         // replaces those of /etc/resolv.conf; family 0: none
  bool only_files = false;         // no question goes to the network (--outbound none)
  std::int64_t limit_ms = 30'000;  // after that the answer is EAI_AGAIN
  std::size_t at_once = 16;        // processes; further questions wait
};

// libc's answer, in this process; may take long.
ResolvedBody resolve(const NameRequest& request, const ResolverOptions& options);

class Resolver final : public NameResolver {
 public:
  class Owner {
   public:
    virtual void answered(const ResolvedBody& body) = 0;

   protected:
    ~Owner() = default;
  };

  Resolver(event_base* base, const ResolverOptions& options, Owner& owner)
      : base_(base), options_(options), owner_(owner) {}
  ~Resolver() override;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  void ask(std::uint64_t number, const NameRequest& request) override;
  void forget_all() override;

  std::size_t processes() const noexcept { return running_; }

 private:
  struct Question {
    Resolver* resolver;
    std::uint64_t number;
    NameRequest request;
    pid_t pid = -1;
    int fd = -1;  // reading end of the process's pipe
    std::size_t got = 0;
    ResolvedBody answer{};
    event readable{};
    event limit{};
  };

  static void on_readable(int fd, short what, void* question);
  static void on_limit(int fd, short what, void* question);
  void start_waiting();
  bool start(Question& question);
  void read(Question& question);
  void stop(Question& question) noexcept;
  void finish(Question& question, int error);

  event_base* base_;
  const ResolverOptions options_;
  Owner& owner_;
  std::list<Question> questions_;
  std::size_t running_ = 0;
};

}  // namespace crane::proxy
