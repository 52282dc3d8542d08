// SPDX-License-Identifier: Apache-2.0
// TcpFabric: operations, frames and events.  Links are in tcp_links.cc.
#include "consensus/fabric/tcp.h"
#include "dmt/base/clock.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace crane::consensus {

using tcp::Frame;
using tcp::FrameHead;
using tcp::FrameKind;
using tcp::Plane;

namespace {

constexpr unsigned kRequestsMax = 256;
constexpr std::size_t kReadJobsMax = 1024;
constexpr std::size_t kEventsWaitingMax = 4096;
// Parts of a long read per peer and poll(): heartbeats go in between.
constexpr int kPartsPerPoll = 4;

std::uint64_t monotonic_ns() noexcept { return static_cast<std::uint64_t>(crane::monotonic_ns()); }

template <typename T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
T body_of(const Frame& frame) noexcept {
  T out;
  std::memcpy(&out, frame.body.data(), sizeof out);
  return out;
}

FrameHead head_of(FrameKind kind, std::uint64_t sequence = 0, std::uint8_t flag = 0) noexcept {
  return {0, kind, flag, 0, sequence};
}

}  // namespace

// --- own memory ---------------------------------------------------------------------------------

void TcpFabric::set_cell(std::uint8_t cell, const CellValue& v) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  own()->cells[cell].store(v);
}

CellValue TcpFabric::own_cell(std::uint8_t cell) const noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  CellValue v;
  CRANE_ASSERT(own()->cells[cell].load(v));
  return v;
}

// --- permissions --------------------------------------------------------------------------------

Result<Key> TcpFabric::permit_writes(ReplicaId id) noexcept {
  CRANE_ASSERT(id != options_.self && value(id) < peers_.size());
  revoke_writes(id);
  // Counted before it is published: a death in between only wastes the key.
  const Key key{own()->next_key++};
  std::atomic_thread_fence(std::memory_order_release);
  own()->live_key[value(id)] = value(key);
  return key;
}

// FABRIC-F2: frames are compared with the live key one by one, by this thread.
void TcpFabric::revoke_writes(ReplicaId id) noexcept { own()->live_key[value(id)] = 0; }

// --- operations ---------------------------------------------------------------------------------

TcpFabric::Op& TcpFabric::add_op(Peer& p, Token token, Op::Kind kind, bool ok) noexcept {
  Op& op = p.ops.emplace_back();
  op.token = token;
  op.kind = kind;
  op.sequence = ++p.sequence;
  op.state = ok ? Op::State::kPending : Op::State::kFailed;
  if (!ok) ops_ready_ = true;
  if (ok && kind == Op::Kind::kLog && p.log_pending++ == 0) p.last_log_progress_ns = now_ns_;
  return op;
}

void TcpFabric::settle(Peer& p, Op& op, bool ok) noexcept {
  if (op.state != Op::State::kPending) return;
  op.state = ok ? Op::State::kOk : Op::State::kFailed;
  if (op.kind == Op::Kind::kLog) --p.log_pending;
  ops_ready_ = true;
}

void TcpFabric::fail_log_ops(Peer& p) noexcept {
  if (p.log_pending == 0) return;
  for (Op& op : p.ops) {
    if (op.kind == Op::Kind::kLog) settle(p, op, false);
  }
  p.failed_key = p.used_key;  // FABRIC-F5
}

// Null: frames for this plane are dropped now.
std::vector<std::byte>* TcpFabric::out_of(Peer& p, Plane plane) noexcept {
  if (!p.up) return nullptr;
  Connection* const connection = p.connections[static_cast<std::size_t>(plane)];
  if (connection != nullptr && connection->greeted) return &connection->link->out();
  return plane == Plane::kLog ? &p.early : nullptr;
}

void TcpFabric::put(Peer& p, Plane plane, const FrameHead& head, std::span<const std::byte> first,
                    std::span<const std::byte> second) noexcept {
  std::vector<std::byte>* const out = out_of(p, plane);
  if (out == nullptr) return;
  if (plane == Plane::kBackground) p.sent_ns = now_ns_;
  tcp::encode(*out, head, first, second);
}

void TcpFabric::open_log(ReplicaId id, Key key, Token token) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  const bool ok = p.up && key != kNoKey;
  p.used_key = key;
  p.failed_key = ok ? kNoKey : key;
  Op& op = add_op(p, token, Op::Kind::kLog, ok);
  op.key = key;
  if (!ok) return;
  const tcp::WriteHead head{value(key), 0};
  put(p, Plane::kLog, head_of(FrameKind::kOpen, op.sequence), bytes_of(head));
  expect_answer(p, Plane::kLog, op.sequence);
}

void TcpFabric::close_log(ReplicaId id) noexcept {
  Peer& p = peer(id);
  fail_log_ops(p);
  p.failed_key = p.used_key;
}

void TcpFabric::write(ReplicaId id, Key key, std::uint64_t offset, std::span<const std::byte> bytes,
                      Token token) noexcept {
  Peer& p = peer(id);
  bool ok = p.up && key != kNoKey && key != p.failed_key && offset <= options_.log_bytes &&
            bytes.size() <= options_.log_bytes - offset;
  if (ok) {
    const Connection* const connection = p.connections[static_cast<std::size_t>(Plane::kLog)];
    const std::size_t waits =
        p.early.size() +
        (connection != nullptr && connection->greeted ? connection->link->unsent() : 0);
    if (waits + bytes.size() > options_.backlog_bytes) {
      p.used_key = key;
      // The peer does not read: its writes must not wait for room (FABRIC-F5, FABRIC-F8).
      break_log(id);
      ok = false;
    }
  }
  if (!ok) {
    p.failed_key = key;  // FABRIC-F5
    add_op(p, token, Op::Kind::kLog, false);
    return;
  }
  p.used_key = key;
  Op& op = add_op(p, token, Op::Kind::kLog, true);
  op.key = key;
  const tcp::WriteHead head{value(key), offset};
  put(p, Plane::kLog, head_of(FrameKind::kWrite, op.sequence), bytes_of(head), bytes);
  expect_answer(p, Plane::kLog, op.sequence);
}

void TcpFabric::read(ReplicaId id, std::uint64_t offset, std::uint64_t n, Token token) noexcept {
  CRANE_ASSERT(n <= kReadBytesMax);
  Peer& p = peer(id);
  const bool ok = p.up && offset <= options_.log_bytes && n <= options_.log_bytes - offset;
  Op& op = add_op(p, token, Op::Kind::kRead, ok);
  op.size = n;
  if (!ok) return;
  const tcp::ReadHead head{offset, n};
  put(p, Plane::kBackground, head_of(FrameKind::kRead, op.sequence), bytes_of(head));
  expect_answer(p, Plane::kBackground, op.sequence);
}

void TcpFabric::read_cell(ReplicaId id, std::uint8_t cell, Token token) noexcept {
  CRANE_ASSERT(cell < kCellsMax);
  Peer& p = peer(id);
  const Op& op = add_op(p, token, Op::Kind::kCell, p.up);
  put(p, Plane::kBackground, head_of(FrameKind::kReadCell, op.sequence, cell));
  if (p.up) expect_answer(p, Plane::kBackground, op.sequence);
}

bool TcpFabric::send_request(ReplicaId id, std::span<const std::byte> body) noexcept {
  CRANE_ASSERT(body.size() <= kRequestBytesMax);
  Peer& p = peer(id);
  if (!p.up || p.requests >= kRequestsMax) return false;
  ++p.requests;
  put(p, Plane::kBackground, head_of(FrameKind::kRequest), body);
  expect_answer(p, Plane::kBackground, ++p.sequence);
  return true;
}

// --- frames -------------------------------------------------------------------------------------

// False: the peer broke the protocol; the caller closes its links.
bool TcpFabric::on_frame(Peer& p, ReplicaId id, Plane plane, const Frame& frame) noexcept {
  switch (frame.head.kind) {
    case FrameKind::kHello:
      return false;
    case FrameKind::kWrite:
    case FrameKind::kOpen:
      on_write(p, id, frame);
      return true;
    case FrameKind::kAck:
      on_ack(p, frame.head);
      return true;
    case FrameKind::kRequest:
      report_event({FabricEvent::Kind::kRequest, id, true, {}, {}}, frame.body);
      return true;
    case FrameKind::kReadCell: {
      const CellValue v = own_cell(frame.head.flag);
      put(p, Plane::kBackground, head_of(FrameKind::kCell, frame.head.sequence), bytes_of(v));
      return true;
    }
    case FrameKind::kCell:
      on_cell(p, frame);
      return true;
    case FrameKind::kRead:
      return on_read(p, frame);
    case FrameKind::kReadPart:
      return on_part(p, frame);
    case FrameKind::kPing:
      on_ping(p, plane, frame.head);
      return true;
  }
  return false;
}

void TcpFabric::on_write(Peer& p, ReplicaId id, const Frame& frame) noexcept {
  const auto head = body_of<tcp::WriteHead>(frame);
  const auto bytes = frame.body.subspan(sizeof head);
  const std::span<std::byte> log = log_memory();
  const bool ok = head.key != 0 && Key{head.key} == permitted(id) &&  // FABRIC-F2, FABRIC-F6
                  head.offset <= log.size() && bytes.size() <= log.size() - head.offset &&
                  log_.back(head.offset, ahead(head.offset, bytes.size(), log.size()));
  if (ok && !bytes.empty()) {
    std::memcpy(log.data() + head.offset, bytes.data(), bytes.size());
    p.landed = true;
  }
  const std::uint8_t flag = ok ? tcp::kOk : tcp::kRefused;
  if (p.ack_due && p.ack_flag != flag) put_ack(p);
  p.ack_due = true;  // sent after this, hence after the copy (FABRIC-F3)
  p.ack_flag = flag;
  p.ack_sequence = frame.head.sequence;
}

void TcpFabric::put_ack(Peer& p) noexcept {
  if (!p.ack_due) return;
  p.ack_due = false;
  put(p, Plane::kLog, head_of(FrameKind::kAck, p.ack_sequence, p.ack_flag));
}

void TcpFabric::on_ack(Peer& p, const FrameHead& head) noexcept {
  p.last_log_progress_ns = now_ns_;
  on_answer(p, Plane::kLog, head.sequence);
  for (Op& op : p.ops) {
    if (p.log_pending == 0 || op.sequence > head.sequence) break;
    if (op.kind != Op::Kind::kLog || op.state != Op::State::kPending) continue;
    if (head.flag != tcp::kOk) p.failed_key = op.key;  // FABRIC-F5
    settle(p, op, head.flag == tcp::kOk);
  }
}

TcpFabric::Op* TcpFabric::pending_op(Peer& p, std::uint64_t sequence, Op::Kind kind) noexcept {
  for (Op& op : p.ops) {
    if (op.sequence != sequence) continue;
    return op.kind == kind && op.state == Op::State::kPending ? &op : nullptr;
  }
  return nullptr;
}

void TcpFabric::on_cell(Peer& p, const Frame& frame) noexcept {
  on_answer(p, Plane::kBackground, frame.head.sequence);
  Op* const op = pending_op(p, frame.head.sequence, Op::Kind::kCell);
  if (op == nullptr) return;
  op->cell = body_of<CellValue>(frame);
  settle(p, *op, true);
}

bool TcpFabric::on_read(Peer& p, const Frame& frame) noexcept {
  const auto head = body_of<tcp::ReadHead>(frame);
  if (p.jobs.size() >= kReadJobsMax || head.size > kReadBytesMax) return false;
  const std::uint64_t log_bytes = log_.size();
  if (head.offset > log_bytes || head.size > log_bytes - head.offset) {
    put(p, Plane::kBackground, head_of(FrameKind::kReadPart, frame.head.sequence, tcp::kRefused));
    return true;
  }
  p.jobs.push_back({frame.head.sequence, head.offset, head.size});
  return true;
}

bool TcpFabric::on_part(Peer& p, const Frame& frame) noexcept {
  on_answer(p, Plane::kBackground, frame.head.sequence);
  Op* const op = pending_op(p, frame.head.sequence, Op::Kind::kRead);
  if (op == nullptr) return true;
  if (frame.body.size() > op->size - op->data.size()) return false;
  if (op->data.capacity() < op->size) op->data.reserve(op->size);
  op->data.insert(op->data.end(), frame.body.begin(), frame.body.end());
  if (frame.head.flag == tcp::kMoreParts) return true;
  settle(p, *op, frame.head.flag == tcp::kOk && op->data.size() == op->size);
  return true;
}

// Sends parts of the peer's reads while little else is queued.
void TcpFabric::serve_reads(Peer& p) noexcept {
  const Connection* const connection = p.connections[static_cast<std::size_t>(Plane::kBackground)];
  for (int i = 0; i < kPartsPerPoll && !p.jobs.empty(); ++i) {
    if (connection == nullptr || connection->link->unsent() > kPartsPerPoll * tcp::kPartBytes)
      return;
    ReadJob& job = p.jobs.front();
    const std::uint64_t n = std::min<std::uint64_t>(job.left, tcp::kPartBytes);
    const std::uint8_t flag = n == job.left ? tcp::kOk : tcp::kMoreParts;
    put(p, Plane::kBackground, head_of(FrameKind::kReadPart, job.sequence, flag),
        log_memory().subspan(job.offset, n));
    job.offset += n;
    job.left -= n;
    if (job.left == 0) p.jobs.pop_front();
  }
}

// --- probes -------------------------------------------------------------------------------------

void TcpFabric::expect_answer(Peer& p, Plane plane, std::uint64_t sequence) noexcept {
  p.clocks[static_cast<std::size_t>(plane)].sent(sequence);
}

void TcpFabric::on_answer(Peer& p, Plane plane, std::uint64_t sequence) noexcept {
  p.clocks[static_cast<std::size_t>(plane)].answered(sequence, now_ns_);
}

void TcpFabric::on_ping(Peer& p, Plane plane, const FrameHead& head) noexcept {
  if (head.flag == tcp::kProbe) {
    put(p, plane, head_of(FrameKind::kPing, head.sequence, tcp::kProbed));
  } else if (head.flag == tcp::kProbed) {
    on_answer(p, plane, head.sequence);
  }
}

// Returns the time when the next answer is late.  The wait for frames sent since the last call
// starts now.
std::uint64_t TcpFabric::probe_due_ns() noexcept {
  std::uint64_t due = AnswerClock::kNever;
  for (Peer& p : peers_) {
    if (!p.up) continue;
    for (AnswerClock& clock : p.clocks) {
      clock.look_at(now_ns_);
      due = std::min(due, clock.due_ns());
    }
  }
  return due;
}

void TcpFabric::probe_late_answers() noexcept {
  if (now_ns_ < probe_due_ns()) return;
  for (Peer& p : peers_) {
    for (const Plane plane : {Plane::kLog, Plane::kBackground}) {
      const auto at = static_cast<std::size_t>(plane);
      const Connection* const connection = p.connections[at];
      AnswerClock& clock = p.clocks[at];
      if (!p.up || now_ns_ < clock.due_ns()) continue;
      clock.probed(++p.sequence, now_ns_);
      ++probes_;
      // Bytes that wait for room in the socket will serve as later segments.
      if (connection == nullptr || !connection->greeted || connection->link->unsent() > 0) continue;
      put(p, plane, head_of(FrameKind::kPing, p.sequence, tcp::kProbe));
    }
  }
}

// --- events -------------------------------------------------------------------------------------

void TcpFabric::report_event(const FabricEvent& event, std::span<const std::byte> data) noexcept {
  Waiting w{event, arena_.size(), data.size(), data.data() != nullptr};
  arena_.insert(arena_.end(), data.begin(), data.end());
  waiting_.push_back(w);
}

// FABRIC-F4: in the order of the calls.  Called only by poll(): data handed out earlier must stay.
void TcpFabric::collect_ops() noexcept {
  if (!ops_ready_) return;
  ops_ready_ = false;
  for (std::uint8_t i = 0; i < options_.replicas; ++i) {
    std::deque<Op>& ops = peers_[i].ops;
    while (!ops.empty() && ops.front().state != Op::State::kPending) {
      Op& op = ops.front();
      const bool ok = op.state == Op::State::kOk;
      FabricEvent e{FabricEvent::Kind::kCompletion, ReplicaId{i}, ok, op.token, {}};
      if (ok && op.kind == Op::Kind::kCell) {
        report_event(e, bytes_of(op.cell));
      } else if (ok && op.kind == Op::Kind::kRead && !op.data.empty()) {
        e.data = op.data;
        read_data_.push_back(std::move(op.data));  // the bytes do not move
        report_event(e);
      } else {
        report_event(e);
      }
      ops.pop_front();
    }
  }
}

std::size_t TcpFabric::hand_out(std::span<FabricEvent> out) noexcept {
  std::size_t n = 0;
  while (next_waiting_ < waiting_.size() && n < out.size()) {
    const Waiting& w = waiting_[next_waiting_++];
    out[n] = w.event;
    if (w.in_arena) {
      out[n].data = std::span<const std::byte>(arena_).subspan(w.at, w.size);
    } else if (w.event.data.data() != nullptr) {
      handed_.push_back(std::move(read_data_.front()));
      read_data_.pop_front();
    }
    ++n;
  }
  for (std::uint8_t i = 0; i < options_.replicas && n < out.size(); ++i) {
    if (!peers_[i].landed) continue;
    peers_[i].landed = false;
    out[n++] = {FabricEvent::Kind::kLanded, ReplicaId{i}, true, {}, {}};
  }
  return n;
}

std::size_t TcpFabric::poll(std::span<FabricEvent> out) noexcept {
  CRANE_ASSERT(!out.empty());
  now_ns_ = monotonic_ns();
  handed_.clear();
  graveyard_.clear();
  if (next_waiting_ == waiting_.size()) {
    waiting_.clear();
    next_waiting_ = 0;
    arena_.clear();
  }
  flush_all();
  const bool drained = std::exchange(drained_, false);
  if (!drained && waiting_.size() - next_waiting_ < kEventsWaitingMax) {
    const bool late = was_late();
    const bool took = take_socket_events();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = *connections_[i];
      if (!connection.dead &&
          (connection.more || connection.link->state() == SecureLink::State::kFailed))
        pump(connection);
    }
    const auto has_more = [](const std::unique_ptr<Connection>& c) { return c->more; };
    drained_ = took && std::none_of(connections_.begin(), connections_.end(), has_more);
    probe_late_answers();
    if (late || now_ns_ >= quiet_due_ns()) look_for_quiet_links(late);
    if (now_ns_ >= due_ns_) housekeeping();
    for (Peer& p : peers_) serve_reads(p);
    flush_all();
  }
  collect_ops();
  return hand_out(out);
}

void TcpFabric::flush(Connection& connection) noexcept {
  if (connection.dead || connection.link->state() != SecureLink::State::kOpen) return;
  if (connection.link->unsent() > 0) connection.link->flush();
  if (connection.greeted && connection.plane == Plane::kBackground &&
      connection.link->unsent() == 0) {
    peers_[connection.peer].requests = 0;
  }
}

void TcpFabric::ring_doorbell(ReplicaId id) noexcept {
  Peer& p = peer(id);
  put_ack(p);
  for (Connection* const connection : p.connections) {
    if (connection != nullptr) flush(*connection);
  }
}

// --- for tests ----------------------------------------------------------------------------------

std::size_t TcpFabric::test_only_outstanding() const noexcept {
  std::size_t n = 0;
  for (const Peer& p : peers_) {
    n += static_cast<std::size_t>(std::count_if(
        p.ops.begin(), p.ops.end(), [](const Op& op) { return op.state == Op::State::kPending; }));
  }
  return n;
}

void TcpFabric::test_only_half_write(ReplicaId id, Key key, std::uint64_t offset,
                                     std::span<const std::byte> bytes, Token token) noexcept {
  Peer& p = peer(id);
  p.used_key = key;
  Op& op = add_op(p, token, Op::Kind::kLog, true);
  op.key = key;
  const tcp::WriteHead head{value(key), offset};
  std::vector<std::byte> frame;
  tcp::encode(frame, head_of(FrameKind::kWrite, op.sequence), bytes_of(head), bytes);
  std::vector<std::byte>* const out = out_of(p, Plane::kLog);
  CRANE_ASSERT(out != nullptr);
  const auto half = frame.begin() + static_cast<std::ptrdiff_t>(frame.size() - bytes.size() / 2);
  out->insert(out->end(), frame.begin(), half);
  p.test_held.assign(half, frame.end());
  ring_doorbell(id);
}

void TcpFabric::test_only_other_half(ReplicaId id) noexcept {
  Peer& p = peer(id);
  if (std::vector<std::byte>* const out = out_of(p, Plane::kLog); out != nullptr) {
    out->insert(out->end(), p.test_held.begin(), p.test_held.end());
  }
  p.test_held.clear();
  ring_doorbell(id);
}

}  // namespace crane::consensus
