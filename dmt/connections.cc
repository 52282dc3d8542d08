// SPDX-License-Identifier: Apache-2.0
#include "dmt/connections.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dmt/base/assert.h"
#include "dmt/base/bound.h"
#include "dmt/blocks.h"
#include "dmt/files.h"
#include "dmt/loopback.h"
#include "dmt/node_link.h"
#include "dmt/sequence/output.h"
#include "dmt/urgent.h"
#include "dmt/wait_queues.h"

namespace crane::dmt {
namespace {

std::size_t bucket_of(ConnId conn) noexcept {
  return (value(conn) * 0x9E3779B97F4A7C15 >> 40) & (kConnectionBuckets - 1);
}

// --- inbound bytes -----------------------------------------------------------------------------

void free_input(Layout& w, ConnectionState& c) noexcept {
  while (c.head_block != 0) {
    const std::uint32_t following = w.block_next[c.head_block];
    free_block(w, c.head_block);
    c.head_block = following;
  }
  c.tail_block = c.head_offset = c.tail_used = 0;
}

// Copies from the front of the input.  A peek keeps the bytes and begins after `skip` bytes.
std::size_t copy_input(Layout& w, ConnectionState& c, std::byte* out, std::size_t size, bool peek,
                       std::size_t skip) noexcept {
  std::uint32_t block = c.head_block;
  std::uint32_t offset = c.head_offset;
  std::size_t done = 0;
  while (done < size && block != 0) {
    const std::uint32_t end = block == c.tail_block ? c.tail_used : kBlockBytes;
    const auto skipped = static_cast<std::uint32_t>(std::min<std::size_t>(skip, end - offset));
    skip -= skipped;
    offset += skipped;
    const std::size_t n = std::min<std::size_t>(size - done, end - offset);
    std::memcpy(out + done, block_bytes(w, block) + offset, n);
    done += n;
    offset += static_cast<std::uint32_t>(n);
    if (offset < end) break;
    const std::uint32_t following = block == c.tail_block ? 0 : w.block_next[block];
    if (!peek) free_block(w, block);
    block = following;
    offset = 0;
  }
  if (peek || done == 0) return done;
  c.head_block = block;
  c.head_offset = offset;
  if (block == 0) c.tail_block = c.tail_used = 0;
  c.consumed += done;
  forget_passed_mark(c);
  return done;
}

// Reports to the proxies how far the server has read, in steps that keep the client's window open.
// The first read, which opens the window, is reported at once.
void report_consumed(Layout& w, ConnectionState& c) noexcept {
  if (c.reported != 0 && c.consumed - c.reported < kReceiveWindow / 4) return;
  c.reported = c.consumed;
  emit(w, OutputType::kConsumed, value(c.conn), c.consumed, nullptr, 0);
}

void note_consumed(Layout& w, std::uint32_t file, std::size_t bytes) noexcept {
  ConnectionState& c = w.files[file].connection;
  c.loopback ? note_read(w, file, bytes) : report_consumed(w, c);
  w.files[file].readiness = connection_readiness(w, w.files[file]);
}

// Whether a client could mean both.  The wildcard of IPv6 includes IPv4, unless it is IPv6-only.
bool overlap(const ListenerState& a, const ListenerState& b) noexcept {
  const bool wild = ((a.any_address | b.any_address) & kWildcardAddress) != 0;
  if (a.bound.family == b.bound.family) return wild || same_ip(a.bound, b.bound);
  const ListenerState& six = a.bound.family == AF_INET6 ? a : b;
  return (six.any_address & kWildcardAddress) != 0 && (six.any_address & kOnlyIpv6) == 0;
}

std::uint64_t send_limit(const Layout& w, const ConnectionState& c) noexcept {
  return c.loopback ? loopback_limit(w) : w.header.configuration.send_buffer;
}

constexpr std::uint16_t kPlaceBits = kWildcardAddress | kOnlyIpv6 | kLoopbackDevice;

bool same_place(const ListenerState& a, const ListenerState& b) noexcept {
  if (a.bound.port != b.bound.port || a.bound.family != b.bound.family) return false;
  return same_ip(a.bound, b.bound) && ((a.any_address ^ b.any_address) & kPlaceBits) == 0;
}

// Whether another listener than `file` listens at the same place.
bool is_shared(const Layout& w, std::uint32_t file) noexcept {
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    if (f != file && same_place(w.files[f].listener, w.files[file].listener)) return true;
  }
  return false;
}

void emit_place(Layout& w, OutputType type, std::uint32_t file, std::uint64_t argument) noexcept {
  const ListenPlace place = place_of(w.files[file].listener);
  emit(w, type, place.bound.port, argument, reinterpret_cast<const std::byte*>(&place),
       sizeof place);
}

bool listens_on(const Layout& w, std::uint16_t port) noexcept {
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    if (w.files[f].listener.port == port) return true;
  }
  return false;
}

// How well a listener fits: 4 its exact address, 3 a wildcard of the family, 2 another address of
// the family, 1 the other family (the outside reaches them all by one published port).
unsigned fitness(const ListenerState& l, const VirtualAddress& local) noexcept {
  if (same_ip(l.bound, local)) return 4;
  if (l.bound.family != local.family) return 1;
  return (l.any_address & kWildcardAddress) != 0 ? 3 : 2;
}

// The listener for a connection.  Among equals (SO_REUSEPORT) the connection's number decides (rule
// 21).
std::uint32_t find_listener(const Layout& w, const ConnectBody& body, Index conn) noexcept {
  unsigned best = 0;
  std::uint64_t equals = 0;
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    const ListenerState& l = w.files[f].listener;
    if (l.port != body.port) continue;
    const unsigned fit = fitness(l, body.local);
    if (fit > best) equals = 0;
    if (fit >= best) ++equals;
    best = std::max(best, fit);
  }
  std::uint64_t skip = equals == 0 ? 0 : value(conn) % equals;
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    const ListenerState& l = w.files[f].listener;
    if (l.port == body.port && fitness(l, body.local) == best && skip-- == 0) return f;
  }
  return 0;
}

}  // namespace

// --- for loopback.cc and outbound.cc ------------------------------------------------------------

std::uint32_t find_connection(const Layout& w, ConnId conn) noexcept {
  std::uint32_t f = w.connection_buckets[bucket_of(conn)];
  while (f != 0 && w.files[f].connection.conn != conn) f = w.files[f].connection.bucket_next;
  return f;
}

void link_connection(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  std::uint32_t* bucket = &w.connection_buckets[bucket_of(c.conn)];
  c.bucket_next = *bucket;
  *bucket = file;
}

void unlink_connection(Layout& w, std::uint32_t file) noexcept {
  std::uint32_t* at = &w.connection_buckets[bucket_of(w.files[file].connection.conn)];
  while (*at != file) {
    CRANE_ASSERT(*at != 0);
    at = &w.files[*at].connection.bucket_next;
  }
  *at = w.files[file].connection.bucket_next;
}

// Commits the record with `size` bytes at `bytes`; its header goes directly before them.
void commit_record(Layout& w, OutputType type, std::uint64_t conn, std::uint64_t argument,
                   std::byte* bytes, std::uint32_t size, OutputMarks marks = {}) noexcept {
  const OutputHeader header{type, marks, conn, argument, w.scheduler.clock};
  std::memcpy(bytes - sizeof header, &header, sizeof header);
  commit_output(w, static_cast<std::uint32_t>(sizeof header + size));
}

void emit(Layout& w, OutputType type, std::uint64_t conn, std::uint64_t argument,
          const std::byte* data, std::uint32_t size, OutputMarks marks) noexcept {
  const auto total = static_cast<std::uint32_t>(sizeof(OutputHeader) + size);
  std::byte* const bytes = reserve_output(w, total).data() + sizeof(OutputHeader);
  if (size > 0) std::memcpy(bytes, data, size);
  commit_record(w, type, conn, argument, bytes, size, marks);
}

std::byte input_byte(Layout& w, std::uint32_t file, std::size_t before) noexcept {
  std::byte byte;
  const std::size_t n = copy_input(w, w.files[file].connection, &byte, 1, true, before);
  CRANE_ASSERT(n == 1);
  return byte;
}

void append_input(Layout& w, ConnectionState& c, const std::byte* data, std::size_t size) noexcept {
  while (size > 0) {
    if (c.tail_block == 0 || c.tail_used == kBlockBytes) {
      const std::uint32_t block = allocate_block(w);
      if (c.tail_block != 0) {
        w.block_next[c.tail_block] = block;
      } else {
        c.head_block = block;
        c.head_offset = 0;
      }
      c.tail_block = block;
      c.tail_used = 0;
    }
    const std::size_t n = std::min<std::size_t>(size, kBlockBytes - c.tail_used);
    std::memcpy(block_bytes(w, c.tail_block) + c.tail_used, data, n);
    c.tail_used += static_cast<std::uint32_t>(n);
    data += n;
    size -= n;
  }
}

void reset_connection(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  if (c.reset) return;
  c.reset = true;
  // As Linux: a reset after the client's FIN is a broken pipe, otherwise a reset by peer.
  c.socket_error = c.fin_received ? EPIPE : ECONNRESET;
  refresh_readiness(w, file, true);
}

void queue_for_accept(Layout& w, std::uint32_t listener, std::uint32_t file) noexcept {
  ListenerState& l = w.files[listener].listener;
  (l.tail != 0 ? w.files[l.tail].chain : l.head) = file;
  l.tail = file;
  ++l.queued;
  refresh_readiness(w, listener, true);
}

// --- the server's side -------------------------------------------------------------------------

bool may_listen(const Layout& w, std::uint32_t file) noexcept {
  const ListenerState& own_state = w.files[file].listener;
  for (std::uint32_t f = w.scheduler.listeners; f != 0; f = w.files[f].listener.next) {
    const ListenerState& l = w.files[f].listener;
    if (f == file || l.port != own_state.bound.port) continue;
    const bool both_reuse = (l.any_address & own_state.any_address & kReusesPort) != 0;
    if (overlap(l, own_state) && !both_reuse) return false;
  }
  return true;
}

ListenPlace place_of(const ListenerState& listener) noexcept {
  ListenPlace place{};
  place.bound = listener.bound;
  place.only_ipv6 = (listener.any_address & kOnlyIpv6) != 0;
  place.loopback_device = (listener.any_address & kLoopbackDevice) != 0;
  return place;
}

std::uint64_t ask_for_port(Layout& w, Slot me, std::uint32_t file, bool elsewhere) noexcept {
  ListenerState& l = w.files[file].listener;
  if (!elsewhere && (!w.scheduler.served || listens_on(w, l.bound.port))) return 0;
  l.question = new_object(w, me);
  emit_place(w, OutputType::kPortWanted, file, l.question);
  return l.question;
}

bool start_listening(Layout& w, std::uint32_t file, std::uint32_t backlog) noexcept {
  FileRecord& f = w.files[file];
  const std::uint32_t wanted = std::clamp<std::uint32_t>(backlog, 1, kBacklogMax);
  if (f.kind == FileKind::kListener) {  // listen() again only changes the backlog
    f.listener.backlog = wanted;
    return true;
  }
  CRANE_ASSERT(f.kind == FileKind::kSocket);
  if (!may_listen(w, file)) return false;
  f.kind = FileKind::kListener;
  f.listener.port = f.listener.bound.port;
  f.listener.backlog = wanted;
  f.listener.next = w.scheduler.listeners;
  w.scheduler.listeners = file;
  refresh_readiness(w, file, false);
  if (!is_shared(w, file)) emit_place(w, OutputType::kListen, file, wanted);
  return true;
}

std::uint32_t accept_connection(Layout& w, std::uint32_t listener) noexcept {
  ListenerState& l = w.files[listener].listener;
  const std::uint32_t file = l.head;
  if (file == 0) return 0;
  l.head = w.files[file].chain;
  if (l.head == 0) l.tail = 0;
  --l.queued;
  w.files[file].chain = 0;
  if (w.files[file].kind == FileKind::kConnection) w.files[file].connection.accepted = true;
  refresh_readiness(w, listener, false);
  // The queue was full, so no thread waits in accept: this wakes the threads that wait in connect
  // for room.
  if (l.queued == l.backlog) signal(w, w.files[listener].object, kAll);
  return file;
}

std::uint64_t readable_bytes(const Layout& w, std::uint32_t file) noexcept {
  const ConnectionState& c = w.files[file].connection;
  const std::uint64_t there = c.received - c.consumed;
  if (!has_mark(c)) return there;
  return is_at_mark(c) ? there - (is_at_hidden_byte(c) ? 1 : 0) : bytes_to_mark(c);
}

void drop_hidden_byte(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  CRANE_ASSERT(is_at_hidden_byte(c));
  std::byte hidden;
  note_consumed(w, file, copy_input(w, c, &hidden, 1, false, 0));
}

std::size_t read_connection(Layout& w, std::uint32_t file, std::byte* out, std::size_t size,
                            bool peek) noexcept {
  ConnectionState& c = w.files[file].connection;
  const auto most =
      static_cast<std::size_t>(std::min<std::uint64_t>(size, readable_bytes(w, file)));
  const bool hidden = is_at_hidden_byte(c);
  if (peek) return copy_input(w, c, out, most, true, hidden ? 1 : 0);
  if (hidden) drop_hidden_byte(w, file);
  const std::size_t done = copy_input(w, c, out, most, false, 0);
  if (done > 0) note_consumed(w, file, done);
  return done;
}

std::uint64_t send_space(const Layout& w, std::uint32_t file) noexcept {
  const ConnectionState& c = w.files[file].connection;
  if (c.connecting) return 0;
  const std::uint64_t used = c.sent - c.drained;
  const std::uint64_t limit = send_limit(w, c);
  return used < limit ? limit - used : 0;
}

std::size_t write_connection(Layout& w, std::uint32_t file, const std::byte* data, std::size_t size,
                             bool ends_urgent) noexcept {
  ConnectionState& c = w.files[file].connection;
  const std::size_t total = std::min<std::size_t>(size, send_space(w, file));
  const bool marks = ends_urgent && total == size && total > 0;
  if (c.loopback) pass_to_other_end(w, file, data, total, marks);
  for (std::size_t done = 0; !c.loopback && done < total;) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(total - done, kOutputBytesMax));
    emit(w, OutputType::kBytes, value(c.conn), c.sent, data + done, n,
         {marks && done + n == total});
    c.sent += n;
    done += n;
  }
  w.files[file].readiness = connection_readiness(w, w.files[file]);
  return total;
}

std::span<std::byte> reserve_written(Layout& w, std::uint32_t file, std::size_t size) noexcept {
  const std::size_t n = std::min({size, static_cast<std::size_t>(send_space(w, file)),
                                  static_cast<std::size_t>(kOutputBytesMax)});
  CRANE_ASSERT(n > 0 && !w.files[file].connection.loopback);
  const auto total = static_cast<std::uint32_t>(sizeof(OutputHeader) + n);
  return reserve_output(w, total).subspan(sizeof(OutputHeader));
}

void commit_written(Layout& w, std::uint32_t file, std::span<std::byte> room,
                    std::size_t filled) noexcept {
  CRANE_ASSERT(filled <= room.size());
  if (filled == 0) return;
  ConnectionState& c = w.files[file].connection;
  commit_record(w, OutputType::kBytes, value(c.conn), c.sent, room.data(),
                static_cast<std::uint32_t>(filled));
  c.sent += filled;
  w.files[file].readiness = connection_readiness(w, w.files[file]);
}

void shutdown_read(Layout& w, std::uint32_t file) noexcept {
  w.files[file].connection.shut_read = true;
  refresh_readiness(w, file, true);
}

void shutdown_write(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  if (c.shut_write) return;
  c.shut_write = true;
  if (c.loopback) {
    pass_fin(w, file);
  } else if (!c.reset) {
    emit(w, OutputType::kShutdown, value(c.conn), 0, nullptr, 0);
  }
  refresh_readiness(w, file, true);
}

void close_connection(Layout& w, std::uint32_t file) noexcept {
  ConnectionState& c = w.files[file].connection;
  const bool rst = c.linger_reset || c.received > c.consumed;  // rule 16
  free_input(w, c);
  if (c.path_block != 0) free_block(w, c.path_block);
  if (c.loopback) return leave_other_end(w, file, rst);  // LOOPBACK-2
  unlink_connection(w, file);
  emit(w, OutputType::kClose, value(c.conn), rst ? 1 : 0, nullptr, 0);
}

void disconnect(Layout& w, std::uint32_t file) noexcept {
  FileRecord& f = w.files[file];
  f.connection.linger_reset = true;
  close_connection(w, file);
  f.kind = FileKind::kSocket;
  f.listener = {};
  f.listener.any_address = kDissolved;
  f.listener.connect_error = ECONNRESET;
  refresh_readiness(w, file, true);
  signal(w, f.object, kAll);
}

void close_listener(Layout& w, std::uint32_t file) noexcept {
  ListenerState& l = w.files[file].listener;
  while (l.head != 0) {
    const std::uint32_t queued = accept_connection(w, file);
    w.files[queued].connection.linger_reset = true;
    drop_reference(w, queued);
  }
  std::uint32_t* at = &w.scheduler.listeners;
  while (*at != file) {
    CRANE_ASSERT(*at != 0);
    at = &w.files[*at].listener.next;
  }
  *at = l.next;
  if (!is_shared(w, file)) emit_place(w, OutputType::kUnlisten, file, 0);
}

// --- admission's side ---------------------------------------------------------------------------

void admit_port(Layout& w, const PortBody& body) noexcept {
  if (body.file == 0 || body.file > w.scheduler.files_used || body.question == 0) return;
  FileRecord& f = w.files[body.file];
  if (f.kind != FileKind::kSocket || f.listener.question != body.question) return;
  f.listener.question = 0;
  f.listener.answer = body.error;
  signal(w, body.question, kAll);
}

void admit_connect(Layout& w, Index index, const ConnectBody& body) noexcept {
  w.scheduler.served = true;
  const std::uint32_t listener = find_listener(w, body, index);
  const bool room = listener != 0 && has_room(w.files[listener].listener);
  const std::uint32_t file = room ? create_file(w, kNodeSlot, FileKind::kConnection) : 0;
  if (file == 0) {
    emit(w, OutputType::kRefused, value(index), 0, nullptr, 0);  // rule 21
    return;
  }
  ConnectionState& c = w.files[file].connection;
  c.conn = ConnId{value(index)};
  c.peer = body.peer;
  c.local = body.local;
  c.socket = body.socket;
  c.table_slot = body.slot;
  c.tcp = body.tcp;
  link_connection(w, file);
  w.files[file].readiness = connection_readiness(w, w.files[file]);
  queue_for_accept(w, listener, file);
}

void admit_data(Layout& w, ConnId conn, const std::byte* data, std::size_t size,
                bool ends_urgent) noexcept {
  const std::uint32_t file = find_connection(w, conn);
  if (file == 0) return;
  ConnectionState& c = w.files[file].connection;
  if (c.reset || c.fin_received) return;
  if (c.shut_read) {  // read side shut: the bytes are dropped and the window stays open
    c.received += size;
    c.consumed += size;
    report_consumed(w, c);
    return;
  }
  if (!fits(w, size)) {  // a stream with a gap is worse than none
    static constinit Bound bound{kBlocksMax - 1, "blocks of unread input",
                                 "the server gets ECONNRESET from clients that send more"};
    bound.count_refusal();
    return reset_connection(w, file);
  }
  append_input(w, c, data, size);
  c.received += size;
  if (ends_urgent && size > 0) note_urgent(w, file);
  refresh_readiness(w, file, true);
}

void admit_shutdown(Layout& w, ConnId conn) noexcept {
  const std::uint32_t file = find_connection(w, conn);
  if (file == 0 || w.files[file].connection.fin_received) return;
  w.files[file].connection.fin_received = true;
  refresh_readiness(w, file, true);
}

void admit_reset(Layout& w, ConnId conn) noexcept {
  const std::uint32_t file = find_connection(w, conn);
  if (file != 0) reset_connection(w, file);
}

void admit_window(Layout& w, ConnId conn, std::uint64_t total) noexcept {
  const std::uint32_t file = find_connection(w, conn);
  if (file == 0) return;
  ConnectionState& c = w.files[file].connection;
  if (total <= c.drained || total > c.sent) return;
  c.drained = total;
  refresh_readiness(w, file, false);
}

void admit_taken(Layout& w, std::span<const std::byte> bodies) noexcept {
  TakenBody body;
  for (; bodies.size() >= sizeof body; bodies = bodies.subspan(sizeof body)) {
    std::memcpy(&body, bodies.data(), sizeof body);
    const std::uint32_t file = find_connection(w, body.conn);
    if (file == 0 || body.total == kTakenAll) continue;
    ConnectionState& c = w.files[file].connection;
    c.taken = std::max(c.taken, body.total);
  }
}

void reset_connections(Layout& w, Resets which) noexcept {
  if (which == Resets::kNone) return;
  // File numbers are assigned at turns, so their order is the same on every replica.
  for (std::uint32_t file = 1; file <= w.scheduler.files_used; ++file) {
    const FileRecord& f = w.files[file];
    if (f.kind != FileKind::kConnection || f.connection.loopback) continue;
    if (which == Resets::kThoseThatStay && f.connection.tcp.mss != 0) continue;
    if (!f.connection.connecting)
      reset_connection(w, file);  // the new leader opens the connecting
                                  // ones
  }
}

Readiness connection_readiness(const Layout& w, const FileRecord& file) noexcept {
  const ConnectionState& c = file.connection;
  if (c.connecting) return 0;
  if (is_host_fifo(file)) {
    return (c.received > c.consumed ? kIn : 0) | (c.fin_received || c.reset ? kHup : 0);
  }
  const Readiness urgent = (c.urgent & kUrgentUnread) != 0 ? kPri : 0;
  if (c.reset) return kIn | kOut | kHup | kRdHup | (c.socket_error != 0 ? kErr : 0) | urgent;
  Readiness now = urgent;
  const bool at_eof = c.fin_received || c.shut_read;
  const std::uint32_t hidden = is_at_hidden_byte(c) ? 1 : 0;
  if (c.received - c.consumed >= c.low_water + hidden || at_eof) now |= kIn;
  if (at_eof) now |= kRdHup;
  if (at_eof && c.shut_write) now |= kHup;
  // Writable when a third of the send buffer is free, as in Linux' TCP.
  const std::uint64_t used = c.sent - c.drained;
  const std::uint64_t limit = send_limit(w, c);
  if (c.shut_write || used * 3 <= limit * 2) now |= kOut;
  return now;
}

}  // namespace crane::dmt
