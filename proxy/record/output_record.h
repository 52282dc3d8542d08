// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorded outputs: what one replica's server wrote to its clients, for crane-diff.  One file per
// replica, `<dir>/replica-<i>.out`.
//
// Format: record_file.h, magic "CRANEOUT", version 1; a record's number is its connection.
//   body    kConnected: u16 port, peer as text; kBytes: the bytes; kClosed: how, as text
// Records are in turn order.  The bytes of a connection that the server has opened begin with its
// OutboundRequest.  A name query of the server is recorded as a separate connection to
// kResolverPeer, with its NameRequest and its end.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dmt/base/ids.h"
#include "dmt/base/result.h"
#include "proxy/record/record_file.h"

namespace crane::proxy {

inline constexpr std::uint32_t kRecordingVersion = 1;
inline constexpr const char* kResolverPeer = "the resolver";

enum class RecordKind : std::uint8_t { kConnected = 1, kBytes = 2, kClosed = 3 };

// "connection 17"; for a connection that the server has opened, "outbound connection of clock 17".
std::string name_of(ConnId conn);

class OutputRecorder final : public Recorder {
 public:
  // Creates `dir` if it is missing and replaces an older recording of this replica.
  static Result<std::unique_ptr<OutputRecorder>> open(const std::string& dir, std::uint8_t replica);
  void connected(ConnId conn, std::uint16_t port, std::string_view peer);
  void bytes(ConnId conn, std::span<const std::byte> bytes);
  void closed(ConnId conn, std::string_view how);

 private:
  using Recorder::Recorder;
};

// A recording, read from its file and indexed by connection.  The bytes stay in the mapped file.
class Recording {
 public:
  struct Connection {
    bool connected = false;  // its CONNECT was recorded
    std::uint16_t port = 0;
    std::string peer;
    std::vector<std::span<const std::byte>> pieces;  // the output, in order
    std::uint64_t size = 0;                          // total bytes of all pieces
    bool closed = false;
    std::string how;  // "closed", "reset", "refused"
  };

  // kSystem: cannot be opened; kDamaged: not a recording, or a record is broken; kWrongVersion.
  static Result<Recording> open(const std::string& path);
  // For a replica without a recording: nothing is known about it.
  static Recording none() { return {}; }

  // The connection's name for messages, with its port and client if they are known.
  std::string name_of(std::uint64_t conn) const;

  const std::string& path() const noexcept { return file_.path(); }
  std::uint32_t replica() const noexcept { return file_.replica(); }
  RecordingEnd end() const noexcept { return file_.end(); }
  int stop_error() const noexcept { return file_.stop_error(); }
  bool torn() const noexcept { return file_.torn(); }
  bool ends_early() const noexcept { return file_.ends_early(); }
  const std::map<std::uint64_t, Connection>& connections() const noexcept { return connections_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Recording() = default;
  bool take(RecordKind kind, std::uint64_t conn, std::span<const std::byte> body);

  RecordFile file_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t bytes_ = 0;
};

}  // namespace crane::proxy
