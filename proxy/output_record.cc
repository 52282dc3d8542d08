// SPDX-License-Identifier: Apache-2.0
#include "proxy/output_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "dmt/base/assert.h"
#include "dmt/base/codec.h"
#include "dmt/base/crc.h"

namespace crane::proxy {
namespace {

constexpr char kMagic[] = "CRANEOUT";
constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kEndOffset = 24;
constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kBufferBytes = 256 * 1024;
// A record's body holds one output record (64 KiB); anything far beyond is damage.
constexpr std::uint32_t kBodyMax = 1u << 20;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Whether a whole, correct record starts anywhere at or after `at`: tells damage inside a file from
// a torn end.
bool record_follows(std::span<const std::byte> file, std::size_t at) {
  for (; at + kRecordBytes <= file.size(); ++at) {
    Reader reader(file.subspan(at));
    const auto crc = reader.get<std::uint32_t>();
    const auto body = reader.get<std::uint32_t>();
    const auto kind = reader.get<std::uint64_t>();
    if (kind < 1 || kind > 3 || body > kBodyMax || at + kRecordBytes + body > file.size()) continue;
    if (crc32c(file.data() + at + 4, kRecordBytes - 4 + body) == crc) return true;
  }
  return false;
}

}  // namespace

// --- writing
// --------------------------------------------------------------------------------------

Result<std::unique_ptr<OutputRecorder>> OutputRecorder::open(const std::string& dir,
                                                             std::uint8_t replica) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Error{Code::kSystem, error.value(), "create the directory for recordings"};
  const std::string path = dir + "/replica-" + std::to_string(replica) + ".out";
  // A fresh file, not a truncated one: somebody may still read the older recording.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("create a recording");
  std::array<std::byte, kHeaderBytes> header{};
  Writer writer(header);
  writer.put_bytes(kMagic, kMagicBytes);
  writer.put(kRecordingVersion);
  writer.put(std::uint32_t{replica});
  writer.put(std::uint32_t{0});
  writer.put(crc32c(header.data(), writer.used()));
  CRANE_ASSERT(writer.ok() && writer.used() == kEndOffset);
  std::unique_ptr<OutputRecorder> recorder(new OutputRecorder(fd, path));
  if (!recorder->write_all(header.data(), header.size())) {
    recorder->stopped_ = true;
    return system_error("write a recording");
  }
  recorder->written_ = header.size();
  recorder->buffer_.reserve(kBufferBytes + kBodyMax / 8);
  return recorder;
}

OutputRecorder::~OutputRecorder() {
  if (fd_ < 0) return;
  flush();
  ::close(fd_);
}

void OutputRecorder::finish() {
  flush();
  if (recording()) mark(RecordingEnd::kWhole, 0);
}

void OutputRecorder::connected(ConnId conn, std::uint16_t port, std::string_view peer) {
  append(RecordKind::kConnected, conn, std::as_bytes(std::span(&port, 1)), as_bytes(peer));
}

void OutputRecorder::bytes(ConnId conn, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), kBodyMax));
    append(RecordKind::kBytes, conn, {}, piece);
    bytes = bytes.subspan(piece.size());
  }
}

void OutputRecorder::closed(ConnId conn, std::string_view how) {
  append(RecordKind::kClosed, conn, {}, as_bytes(how));
}

void OutputRecorder::append(RecordKind kind, ConnId conn, std::span<const std::byte> head,
                            std::span<const std::byte> rest) {
  if (!recording()) return;
  const std::size_t body = head.size() + rest.size();
  CRANE_ASSERT(body <= kBodyMax);
  const std::size_t at = buffer_.size();
  buffer_.resize(at + kRecordBytes + body);
  const std::span<std::byte> record(buffer_.data() + at, kRecordBytes + body);
  Writer writer(record.subspan(4));
  writer.put(static_cast<std::uint32_t>(body));
  writer.put(std::uint64_t{static_cast<std::uint8_t>(kind)});
  writer.put(value(conn));
  writer.put_bytes(head.data(), head.size());
  writer.put_bytes(rest.data(), rest.size());
  CRANE_ASSERT(writer.ok() && writer.used() == record.size() - 4);
  const std::uint32_t crc = crc32c(record.data() + 4, record.size() - 4);
  std::memcpy(record.data(), &crc, sizeof crc);
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputRecorder::flush() {
  if (!recording() || buffer_.empty()) return;
  if (!write_all(buffer_.data(), buffer_.size())) {
    stop(errno);
    return;
  }
  written_ += buffer_.size();
  buffer_.clear();
}

bool OutputRecorder::write_all(const std::byte* data, std::size_t size) {
  while (size > 0) {
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(size, test_room_));
    if (room == 0) {
      errno = ENOSPC;
      return false;
    }
    const ssize_t n = ::write(fd_, data, room);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      return false;
    }
    if (test_room_ != UINT64_MAX) test_room_ -= static_cast<std::uint64_t>(n);
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Keeps what is whole: cuts the file after the last buffer that went out completely.
void OutputRecorder::stop(int error) {
  (void)!::ftruncate(fd_, static_cast<off_t>(written_));
  mark(RecordingEnd::kStopped, error);
  stopped_ = true;
  buffer_.clear();
  buffer_.shrink_to_fit();
  message_ = "recording stopped: " + path_ + ": " + std::generic_category().message(error) +
             "; the service goes on, free some space and start the group again to record";
}

void OutputRecorder::mark(RecordingEnd end, int error) {
  const std::uint32_t words[2] = {static_cast<std::uint32_t>(end),
                                  static_cast<std::uint32_t>(error)};
  (void)!::pwrite(fd_, words, sizeof words, kEndOffset);
}

std::string OutputRecorder::take_message() { return std::exchange(message_, {}); }

// --- reading
// --------------------------------------------------------------------------------------

Result<Recording> Recording::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open");
  struct stat about {};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(fd);
    return Error{Code::kDamaged, 0, "not a file"};
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  void* memory = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return system_error("map");
  Recording recording;
  recording.path_ = path;
  recording.file_ = {static_cast<const std::byte*>(memory), size};
  const auto indexed = recording.index();
  if (!indexed.ok()) return indexed.error();
  return recording;
}

Recording::Recording(Recording&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, {})),
      replica_(other.replica_),
      end_(other.end_),
      stop_error_(other.stop_error_),
      torn_(other.torn_),
      connections_(std::move(other.connections_)),
      bytes_(other.bytes_) {}

Recording::~Recording() {
  if (!file_.empty()) ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

Outcome Recording::index() {
  Reader header(file_);
  const auto magic = header.get_bytes(kMagicBytes);
  const auto version = header.get<std::uint32_t>();
  replica_ = header.get<std::uint32_t>();
  header.get<std::uint32_t>();
  const auto header_crc = header.get<std::uint32_t>();
  const auto end = header.get<std::uint32_t>();
  stop_error_ = static_cast<int>(header.get<std::uint32_t>());
  if (!header.ok() || std::memcmp(magic.data(), kMagic, kMagicBytes) != 0) {
    return Error{Code::kDamaged, 0, "not a recording of outputs"};
  }
  if (version != kRecordingVersion) {
    return Error{Code::kWrongVersion, static_cast<int>(version), "recording of another version"};
  }
  if (crc32c(file_.data(), kEndOffset - 4) != header_crc || end > 2) {
    return Error{Code::kDamaged, 0, "the header is damaged"};
  }
  end_ = static_cast<RecordingEnd>(end);
  for (std::size_t at = kHeaderBytes; at < file_.size();) {
    Reader reader(file_.subspan(at));
    const auto crc = reader.get<std::uint32_t>();
    const auto body_bytes = reader.get<std::uint32_t>();
    const auto kind = reader.get<std::uint64_t>();
    const auto conn = reader.get<std::uint64_t>();
    const auto body = reader.get_bytes(body_bytes);
    if (!reader.ok() || crc32c(file_.data() + at + 4, kRecordBytes - 4 + body_bytes) != crc) {
      if (record_follows(file_, at + 1)) return Error{Code::kDamaged, 0, "a record is damaged"};
      torn_ = true;
      return Done{};
    }
    if (kind > 0xff || !take(static_cast<RecordKind>(kind), conn, body)) {
      return Error{Code::kDamaged, 0, "a record of an unknown kind"};
    }
    at += kRecordBytes + body_bytes;
  }
  return Done{};
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
