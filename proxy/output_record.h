// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorded outputs: what one replica's server wrote to its clients, kept for crane-diff (DESIGN
// section 8).  One file per replica, `<dir>/replica-<i>.out`.
//
// Format, little-endian, version 1:
//   file    header, record*
//   header  "CRANEOUT", u32 version, u32 replica, u32 0, u32 CRC32C of the 20 bytes before,
//           u32 end (RecordingEnd), u32 errno of what stopped it
//   record  u32 CRC32C of all that follows, u32 body bytes, u8 kind, 7 x 0, u64 connection, body
//   body    kConnected: u16 port, peer as text; kBytes: the bytes; kClosed: how, as text
// Records follow each other in turn order.  The two words after the header's checksum are rewritten
// in place when the recording ends: that needs no room, so a full disk can still be told.  A
// process that is killed leaves `end` at kEndsEarly and at most one torn record, which a reader
// drops.
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

namespace crane::proxy {

inline constexpr std::uint32_t kRecordingVersion = 1;

enum class RecordingEnd : std::uint32_t {
  kEndsEarly = 0,  // still being written, or its writer was killed
  kWhole = 1,      // the replica stopped in order
  kStopped = 2,    // writing failed (disk full): all before that is there
};

enum class RecordKind : std::uint8_t { kConnected = 1, kBytes = 2, kClosed = 3 };

class OutputRecorder {
 public:
  // Creates `dir` if it is missing and replaces an older recording of this replica.
  static Result<std::unique_ptr<OutputRecorder>> open(const std::string& dir, std::uint8_t replica);
  // Without finish() before, the recording ends early: so does one whose replica failed.
  ~OutputRecorder();
  OutputRecorder(const OutputRecorder&) = delete;
  OutputRecorder& operator=(const OutputRecorder&) = delete;

  void connected(ConnId conn, std::uint16_t port, std::string_view peer);
  void bytes(ConnId conn, std::span<const std::byte> bytes);
  void closed(ConnId conn, std::string_view how);

  // Hands what is buffered to the kernel: it then survives the death of this process.
  void flush();

  // Ends the recording in order: the replica stopped, and wrote nothing that is not here.
  void finish();

  // False after a failure to write; the service goes on, the file says why it ends.
  bool recording() const noexcept { return fd_ >= 0 && !stopped_; }
  // Once after recording stopped: the text to log; else empty.
  std::string take_message();

  // As if the file system had room for `bytes` more only.
  void test_only_room(std::uint64_t bytes) noexcept { test_room_ = bytes; }

 private:
  OutputRecorder(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  void append(RecordKind kind, ConnId conn, std::span<const std::byte> head,
              std::span<const std::byte> rest);
  bool write_all(const std::byte* data, std::size_t size);
  void stop(int error);
  void mark(RecordingEnd end, int error);

  int fd_;
  const std::string path_;
  std::vector<std::byte> buffer_;  // whole records
  std::uint64_t written_ = 0;      // file size up to the last whole record
  bool stopped_ = false;
  std::string message_;
  std::uint64_t test_room_ = UINT64_MAX;
};

// A recording, read back and indexed by connection.  The bytes stay in the mapped file.
class Recording {
 public:
  struct Connection {
    bool connected = false;  // its CONNECT was recorded
    std::uint16_t port = 0;
    std::string peer;
    std::vector<std::span<const std::byte>> pieces;  // output in order
    std::uint64_t size = 0;                          // bytes in all pieces
    bool closed = false;
    std::string how;  // "closed", "reset", "refused"
  };

  // kSystem: cannot be opened; kDamaged: not a recording, or a record inside it is broken;
  // kWrongVersion.
  static Result<Recording> open(const std::string& path);
  Recording(Recording&& other) noexcept;
  Recording& operator=(Recording&&) = delete;
  ~Recording();

  const std::string& path() const noexcept { return path_; }
  std::uint32_t replica() const noexcept { return replica_; }
  RecordingEnd end() const noexcept { return end_; }
  int stop_error() const noexcept { return stop_error_; }
  // A record at the end was cut off and left out.
  bool torn() const noexcept { return torn_; }
  // Ends before the replica did: it may hold less than the others.
  bool ends_early() const noexcept { return end_ != RecordingEnd::kWhole || torn_; }
  const std::map<std::uint64_t, Connection>& connections() const noexcept { return connections_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  Recording() = default;
  Outcome index();
  bool take(RecordKind kind, std::uint64_t conn, std::span<const std::byte> body);

  std::string path_;
  std::span<const std::byte> file_;
  std::uint32_t replica_ = 0;
  RecordingEnd end_ = RecordingEnd::kEndsEarly;
  int stop_error_ = 0;
  bool torn_ = false;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t bytes_ = 0;
};

}  // namespace crane::proxy
