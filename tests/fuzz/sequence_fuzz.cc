// SPDX-License-Identifier: Apache-2.0
// The entries of the Paxos sequence: for any type, body, stamp and grant a server's segment admits
// the entry or fences itself, and never does anything else.

#include <sys/mman.h>
#include <array>

#include <algorithm>
#include <csetjmp>
#include <limits>

#include "dmt/admission.h"
#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "dmt/base/log.h"
#include "dmt/hand_off.h"
#include "dmt/processes.h"
#include "dmt/scheduler.h"
#include "dmt/segment.h"
#include "dmt/sequence/ring.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::dmt;

struct Piece {
  std::uint8_t type;
  std::uint8_t damage;  // 1: checksum, 2: length, 4: record cut short
  std::uint16_t body_bytes;
  std::uint32_t grant;
  std::uint64_t stamp_ns;
};

std::jmp_buf fenced;
void on_fence() noexcept { std::longjmp(fenced, 1); }

class Replica {
 public:
  Replica() {
    void* const memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CRANE_ASSERT(memory != MAP_FAILED);
    Configuration c{};
    c.mode = Mode::kParallel;
    c.quantum = 1;
    c.send_buffer = 3000;
    w_ = &initialise_segment(memory, c);
    create_main_process(*w_);
  }
  ~Replica() { ::munmap(w_, sizeof(Layout)); }
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  void push(const Piece& p, std::span<const std::byte> body) {
    SequenceHeader header{};
    header.body_bytes = static_cast<std::uint32_t>(body.size());
    header.type = static_cast<EntryType>(p.type);
    header.grant = p.grant;
    header.stamp_ns = p.stamp_ns;
    if (header.type == EntryType::kStart) view_ = make_view(view_counter(view_) + 1, ReplicaId{0});
    header.viewstamp = {view_, Index{++index_}};
    header.crc = crc32c(body.data(), body.size(), crc32c(&header, sizeof header));
    if ((p.damage & 1) != 0) header.crc ^= p.grant | 1;
    if ((p.damage & 2) != 0) header.body_bytes += p.grant;
    auto total = static_cast<std::uint32_t>(sizeof header + body.size());
    Ring ring(w_->header.sequence, reinterpret_cast<std::byte*>(w_));
    const std::span<std::byte> room = ring.reserve(total);
    CRANE_ASSERT(!room.empty());
    std::memcpy(room.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(room.data() + sizeof header, body.data(), body.size());
    if ((p.damage & 4) != 0) total = std::max(1U, p.grant % total);
    ring.commit(total);
  }
  bool admit() {
    if (!held_) return held_ = admit_from_node(*w_);
    return admit_next(*w_);
  }
  void drop_outputs() {
    Ring ring(w_->header.output, reinterpret_cast<std::byte*>(w_));
    while (!ring.front().empty()) ring.pop();
  }

 private:
  Layout* w_;
  View view_{};
  std::uint64_t index_ = 0;
  bool held_ = false;
};

// Separate from setjmp, because its function keeps no variable alive across the jump.
__attribute__((noinline)) void admit_all(Replica& replica, crane::fuzz::Input& input) {
  const StartBody start{};
  replica.push({static_cast<std::uint8_t>(EntryType::kStart), 0, sizeof start, 100, 1000},
               std::as_bytes(std::span(&start, 1)));
  CRANE_ASSERT(replica.admit());
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    const auto p = input.take<Piece>();
    replica.push(p, input.take_bytes(p.body_bytes));
    (void)replica.admit();
    replica.drop_outputs();
  }
}

void until_fenced(Replica& replica, crane::fuzz::Input& input) {
  if (setjmp(fenced) == 0) admit_all(replica, input);
}

template <typename Body>
void piece(std::string& out, EntryType type, const Body& body, std::size_t more = 0) {
  crane::fuzz::put(out, Piece{static_cast<std::uint8_t>(type), 0,
                              static_cast<std::uint16_t>(sizeof body + more), 1000, 1'000'000'000});
  crane::fuzz::put(out, body);
  out.append(more, 'x');
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  ConnectBody connect{};
  connect.port = 80;
  connect.peer.family = connect.local.family = 2;
  std::string all;
  piece(all, EntryType::kStart, StartBody{{1, 2, 3, 4}, 5, 0, Resets::kNone});
  piece(all, EntryType::kConnect, connect);
  piece(all, EntryType::kData, DataBody{ConnId{2}}, 100);
  piece(all, EntryType::kWindow, WindowBody{ConnId{2}, 50});
  piece(all, EntryType::kSignal, SignalBody{15, 0});
  piece(all, EntryType::kTime, std::uint64_t{0});
  piece(all, EntryType::kPreempt, PreemptBody{7, 1, 2, 1, 1});
  piece(all, EntryType::kCheckpoint, CheckpointBody{0});
  piece(all, EntryType::kPassed, PassedBody{7});
  piece(all, EntryType::kAttach, AttachBody{1, 1});
  piece(all, EntryType::kPort, PortBody{1, 1, 98});
  piece(all, EntryType::kConnected,
        ConnectedBody{ConnId{kOutboundBit | 1}, 0, 1, connect.local, {}});
  ResolvedBody resolved{};
  resolved.number = kOutboundBit | 2;
  resolved.count = 1;
  piece(all, EntryType::kResolved, resolved);
  piece(all, EntryType::kShutdown, ConnBody{ConnId{2}});
  piece(all, EntryType::kReset, ConnBody{ConnId{2}});
  piece(all, EntryType::kTaken, TakenBody{ConnId{2}, 50});
  piece(all, EntryType::kStart, StartBody{{1, 2, 3, 4}, 5, 1, Resets::kThoseThatStay});
  piece(all, EntryType::kStart, StartBody{{1, 2, 3, 4}, 5, 2, Resets::kAll});
  // Each type once with a body of zeros, so that none is missing.
#define ENTRY(symbol, number, name, origin) \
  piece(all, EntryType::symbol, std::array<std::byte, 64>{});
#include "dmt/sequence/entry_types.def"
#undef ENTRY
  std::string bubble;
  piece(bubble, EntryType::kBubble, std::uint8_t{0});
  return {all, bubble, all + bubble + all};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool once = [] {
    set_fence_handler(on_fence);
    set_message_fd(2);
    return true;
  }();
  (void)once;
  crane::fuzz::Input input(data, size);
  Replica replica;
  until_fenced(replica, input);
  return 0;
}
