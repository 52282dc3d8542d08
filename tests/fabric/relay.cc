// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <list>
#include <random>
#include <vector>

#include "consensus/fabric/secure_link.h"
#include "dmt/base/clock.h"

namespace crane::test {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kTimeOutNs = 200'000'000;  // Linux's minimum for a retransmission
constexpr std::size_t kPieceBytes = 16U << 10;
constexpr std::size_t kPiecesMax = 64;  // most pieces under way; then the relay stops reading

std::uint64_t now_ns() { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

// Bytes on their way from one socket to the other.
struct Piece {
  std::vector<char> bytes;
  std::uint64_t due_ns = 0;
  bool lost = false;
};
struct Flow {
  int from = -1;
  int to = -1;
  std::size_t direction = 0;
  bool sheltered = false;  // the weather does not affect this connection
  std::deque<Piece> pieces;
};

struct CarriedState {
  Flow flows[2];
  bool over = false;
};

class Sky {
 public:
  explicit Sky(Weather& weather) : weather_(weather), random_(static_cast<unsigned>(::getpid())) {}

  bool loses(const Flow& f) {
    const std::uint32_t loss = f.sheltered ? 0 : weather_.loss_per_mille[f.direction].load();
    if (loss == 0 || random_() % 1000 >= loss) return false;
    ++weather_.lost;
    return true;
  }
  void timed_out() { ++weather_.timed_out; }
  std::uint64_t way_ns(const Flow& f) {
    const std::uint64_t jitter = weather_.jitter_us;
    if (f.sheltered || weather_.delay_us == 0) return 0;
    return (weather_.delay_us - jitter + random_() % (2 * jitter + 1)) * kUs;
  }
  bool shelters(unsigned connection) const {
    const std::uint32_t links = weather_.links;
    return links != 0 &&
           (links & (connection % 2 == 0 ? Weather::kBackground : Weather::kLog)) == 0;
  }

  // Decides whether the new piece arrives, and what it reveals about earlier losses.
  void send(Flow& f, std::vector<char> bytes, std::uint64_t now) {
    Piece piece{std::move(bytes), now + way_ns(f), false};
    if (loses(f)) {
      piece.lost = true;
      piece.due_ns += kTimeOutNs;
    } else {
      for (Piece& before : f.pieces) {
        if (!before.lost || loses(f)) continue;
        before.lost = false;
        before.due_ns = std::min(before.due_ns, now + 3 * way_ns(f));
      }
    }
    f.pieces.push_back(std::move(piece));
  }

 private:
  Weather& weather_;
  std::minstd_rand random_;
};

void carry(Flow& f, bool& over, Sky& sky) {
  const std::uint64_t now = now_ns();
  char bytes[kPieceBytes];
  if (f.pieces.size() < kPiecesMax) {
    const ssize_t got = ::recv(f.from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) sky.send(f, {bytes, bytes + got}, now);
    if (got == 0 || (got < 0 && errno != EAGAIN)) over = true;
  }
  while (!f.pieces.empty() && f.pieces.front().due_ns <= now) {
    std::vector<char>& first = f.pieces.front().bytes;
    const ssize_t sent = ::send(f.to, first.data(), first.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) over = true;
      return;
    }
    first.erase(first.begin(), first.begin() + sent);
    if (!first.empty()) return;
    if (f.pieces.front().lost) sky.timed_out();
    f.pieces.pop_front();
  }
}

// Waits until one of the connections needs work.
void wait_for(int listener, const std::list<CarriedState>& all) {
  std::vector<pollfd> fds{{listener, POLLIN, 0}};
  const std::uint64_t now = now_ns();
  std::uint64_t due = kNever;
  for (const CarriedState& c : all) {
    for (const Flow& f : c.flows) {
      if (f.pieces.size() < kPiecesMax) fds.push_back({f.from, POLLIN, 0});
      if (f.pieces.empty()) continue;
      due = std::min(due, f.pieces.front().due_ns);
      if (f.pieces.front().due_ns <= now) fds.push_back({f.to, POLLOUT, 0});
    }
  }
  const std::uint64_t wait = due == kNever ? kNever : due > now ? due - now : kNever;
  const timespec t{static_cast<time_t>(wait / 1'000'000'000),
                   static_cast<long>(wait % 1'000'000'000)};
  ::ppoll(fds.data(), fds.size(), wait == kNever ? nullptr : &t, nullptr);
}

}  // namespace

void run_relay(const consensus::Endpoint& listen, const consensus::Endpoint& forward,
               Weather& weather) {
  const auto here = consensus::resolve(listen.address, listen.port);
  const auto there = consensus::resolve(forward.address, forward.port);
  if (!here || !there) ::_exit(3);
  const auto listener = consensus::listen_on(here.value());
  if (!listener) ::_exit(3);
  Sky sky(weather);
  std::list<CarriedState> all;
  unsigned connections = 0;
  for (;;) {
    wait_for(listener.value(), all);
    for (;;) {
      const int in = ::accept(listener.value(), nullptr, nullptr);
      if (in < 0) break;
      const int out = ::socket(there.value().get()->sa_family, SOCK_STREAM, 0);
      if (::connect(out, there.value().get(), there.value().size) != 0) {
        ::close(in);
        ::close(out);
        continue;
      }
      const bool sheltered = sky.shelters(connections++);
      CarriedState carried;
      carried.flows[0] = {in, out, 0, sheltered, {}};
      carried.flows[1] = {out, in, 1, sheltered, {}};
      all.push_back(std::move(carried));
    }
    for (auto c = all.begin(); c != all.end();) {
      for (Flow& f : c->flows) carry(f, c->over, sky);
      if (c->over) {
        ::close(c->flows[0].from);
        ::close(c->flows[0].to);
        c = all.erase(c);
      } else {
        ++c;
      }
    }
  }
}

}  // namespace crane::test
