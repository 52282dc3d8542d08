// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/output_record.h"

#include <algorithm>

#include "dmt/base/codec.h"

namespace crane::proxy {
namespace {

constexpr RecordFormat kFormat{"CRANEOUT", ".out", kRecordingVersion, 3,
                               "not a recording of outputs"};

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::uint8_t number(RecordKind kind) noexcept { return static_cast<std::uint8_t>(kind); }

}  // namespace

Result<std::unique_ptr<OutputRecorder>> OutputRecorder::open(const std::string& dir,
                                                             std::uint8_t replica) {
  auto file = RecordWriter::open(kFormat, dir, replica);
  if (!file.ok()) return file.error();
  return std::unique_ptr<OutputRecorder>(new OutputRecorder(std::move(file).value()));
}

void OutputRecorder::connected(ConnId conn, std::uint16_t port, std::string_view peer) {
  file_->append(number(RecordKind::kConnected), value(conn), std::as_bytes(std::span(&port, 1)),
                as_bytes(peer));
}

void OutputRecorder::bytes(ConnId conn, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), RecordWriter::kBodyMax));
    file_->append(number(RecordKind::kBytes), value(conn), {}, piece);
    bytes = bytes.subspan(piece.size());
  }
}

void OutputRecorder::closed(ConnId conn, std::string_view how) {
  file_->append(number(RecordKind::kClosed), value(conn), {}, as_bytes(how));
}

Result<Recording> Recording::open(const std::string& path) {
  auto file = RecordFile::open(kFormat, path);
  if (!file.ok()) return file.error();
  Recording recording;
  recording.file_ = std::move(file).value();
  const Outcome read = recording.file_.for_each(
      [&](std::uint8_t kind, std::uint64_t conn, std::span<const std::byte> body) {
        return recording.take(static_cast<RecordKind>(kind), conn, body);
      });
  if (!read.ok()) return read.error();
  return recording;
}

std::string name_of(ConnId conn) {
  return is_outbound(conn)
             ? "outbound connection of clock " + std::to_string(value(conn) & ~kOutboundBit)
             : "connection " + std::to_string(value(conn));
}

std::string Recording::name_of(std::uint64_t conn) const {
  const std::string number = proxy::name_of(ConnId{conn});
  const auto found = connections_.find(conn);
  if (found == connections_.end() || !found->second.connected) return number;
  const Connection& c = found->second;
  if (is_outbound(ConnId{conn})) return number + " (to " + c.peer + ")";
  return number + " (port " + std::to_string(c.port) + ", client " + c.peer + ")";
}

bool Recording::take(RecordKind kind, std::uint64_t conn, std::span<const std::byte> body) {
  auto& connection = connections_[conn];
  switch (kind) {
    case RecordKind::kConnected: {
      Reader reader(body);
      connection.connected = true;
      connection.port = reader.get<std::uint16_t>();
      connection.peer = as_text(reader.get_bytes(reader.left()));
      return reader.ok();
    }
    case RecordKind::kBytes:
      connection.pieces.push_back(body);
      connection.size += body.size();
      bytes_ += body.size();
      return true;
    case RecordKind::kClosed:
      connection.closed = true;
      connection.how = as_text(body);
      return true;
  }
  return false;
}

}  // namespace crane::proxy
