// SPDX-License-Identifier: Apache-2.0
#include "proxy/record/record_file.h"

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

#include "dmt/base/assert.h"
#include "dmt/base/codec.h"
#include "dmt/base/crc.h"

namespace crane::proxy {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kBufferBytes = 256 * 1024;

}  // namespace

// --- writing -------------------------------------------------------------------------------------

Result<std::unique_ptr<RecordWriter>> RecordWriter::open(const RecordFormat& format,
                                                         const std::string& dir,
                                                         std::uint8_t replica) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Error{Code::kSystem, error.value(), "create the directory for recordings"};
  const std::string path = dir + "/replica-" + std::to_string(replica) + format.suffix;
  // A new file instead of a truncated one: a reader may still have the older recording open.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("create a recording");
  std::array<std::byte, kRecordingHeaderBytes> header{};
  Writer writer(header);
  writer.put_bytes(format.magic, kMagicBytes);
  writer.put(format.version);
  writer.put(std::uint32_t{replica});
  writer.put(std::uint32_t{0});
  writer.put(crc32c(header.data(), writer.used()));
  CRANE_ASSERT(writer.ok() && writer.used() == kRecordingEndOffset);
  std::unique_ptr<RecordWriter> recorder(new RecordWriter(fd, path));
  if (!recorder->write_all(header.data(), header.size())) {
    recorder->stopped_ = true;
    return system_error("write a recording");
  }
  recorder->written_ = header.size();
  recorder->buffer_.reserve(kBufferBytes + kBodyMax / 8);
  return recorder;
}

RecordWriter::~RecordWriter() {
  if (fd_ < 0) return;
  flush();
  ::close(fd_);
}

void RecordWriter::finish() {
  flush();
  if (recording()) mark(RecordingEnd::kWhole, 0);
}

void RecordWriter::append(std::uint8_t kind, std::uint64_t number, std::span<const std::byte> head,
                          std::span<const std::byte> rest) {
  if (!recording()) return;
  const std::size_t body = head.size() + rest.size();
  CRANE_ASSERT(body <= kBodyMax);
  const std::size_t at = buffer_.size();
  buffer_.resize(at + kRecordHeadBytes + body);
  const std::span<std::byte> record(buffer_.data() + at, kRecordHeadBytes + body);
  Writer writer(record.subspan(4));
  writer.put(static_cast<std::uint32_t>(body));
  writer.put(std::uint64_t{kind});
  writer.put(number);
  writer.put_bytes(head.data(), head.size());
  writer.put_bytes(rest.data(), rest.size());
  CRANE_ASSERT(writer.ok() && writer.used() == record.size() - 4);
  const std::uint32_t crc = crc32c(record.data() + 4, record.size() - 4);
  std::memcpy(record.data(), &crc, sizeof crc);
  if (buffer_.size() >= kBufferBytes) flush();
}

void RecordWriter::flush() {
  if (!recording() || buffer_.empty()) return;
  if (!write_all(buffer_.data(), buffer_.size())) {
    stop(errno);
    return;
  }
  written_ += buffer_.size();
  buffer_.clear();
}

bool RecordWriter::write_all(const std::byte* data, std::size_t size) {
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

// Keeps the whole records: cuts the file after the last buffer that was written completely.
void RecordWriter::stop(int error) {
  (void)!::ftruncate(fd_, static_cast<off_t>(written_));
  mark(RecordingEnd::kStopped, error);
  stopped_ = true;
  buffer_.clear();
  buffer_.shrink_to_fit();
  message_ = "recording stopped: " + path_ + ": " + std::generic_category().message(error) +
             "; the service continues: free some space and start the group again to record";
}

void RecordWriter::mark(RecordingEnd end, int error) {
  const std::uint32_t words[2] = {static_cast<std::uint32_t>(end),
                                  static_cast<std::uint32_t>(error)};
  (void)!::pwrite(fd_, words, sizeof words, kRecordingEndOffset);
}

std::string RecordWriter::take_message() { return std::exchange(message_, {}); }

// --- reading -------------------------------------------------------------------------------------

Result<RecordFile> RecordFile::open(const RecordFormat& format, const std::string& path) {
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
  RecordFile file;
  file.path_ = path;
  file.file_ = {static_cast<const std::byte*>(memory), size};
  const Outcome read = file.read_header(format);
  if (!read.ok()) return read.error();
  return file;
}

RecordFile::RecordFile(RecordFile&& other) noexcept { *this = std::move(other); }

RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  path_ = std::move(other.path_);
  std::swap(file_, other.file_);
  kinds_ = other.kinds_;
  replica_ = other.replica_;
  end_ = other.end_;
  stop_error_ = other.stop_error_;
  torn_ = other.torn_;
  return *this;
}

RecordFile::~RecordFile() {
  if (!file_.empty()) ::munmap(const_cast<std::byte*>(file_.data()), file_.size());
}

Outcome RecordFile::read_header(const RecordFormat& format) {
  Reader header(file_);
  const auto magic = header.get_bytes(kMagicBytes);
  const auto version = header.get<std::uint32_t>();
  replica_ = header.get<std::uint32_t>();
  header.get<std::uint32_t>();
  const auto header_crc = header.get<std::uint32_t>();
  const auto end = header.get<std::uint32_t>();
  stop_error_ = static_cast<int>(header.get<std::uint32_t>());
  if (!header.ok() || std::memcmp(magic.data(), format.magic, kMagicBytes) != 0) {
    return Error{Code::kDamaged, 0, format.not_one};
  }
  if (version != format.version) {
    return Error{Code::kWrongVersion, static_cast<int>(version), "recording of another version"};
  }
  if (crc32c(file_.data(), kRecordingEndOffset - 4) != header_crc || end > 2) {
    return Error{Code::kDamaged, 0, "the header is damaged"};
  }
  end_ = static_cast<RecordingEnd>(end);
  kinds_ = format.kinds;
  return Done{};
}

// Reads the record at `at` and moves `at` after it; false: there is none, or only a torn one.
Result<bool> RecordFile::next(std::size_t& at, Record& record) {
  if (at >= file_.size()) return false;
  Reader reader(file_.subspan(at));
  const auto crc = reader.get<std::uint32_t>();
  const auto body_bytes = reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint64_t>();
  record.number = reader.get<std::uint64_t>();
  record.body = reader.get_bytes(body_bytes);
  if (!reader.ok() || crc32c(file_.data() + at + 4, kRecordHeadBytes - 4 + body_bytes) != crc) {
    if (record_follows(at + 1)) return Error{Code::kDamaged, 0, "a record is damaged"};
    torn_ = true;
    return false;
  }
  if (kind < 1 || kind > kinds_) return Error{Code::kDamaged, 0, "a record of an unknown kind"};
  record.kind = static_cast<std::uint8_t>(kind);
  at += kRecordHeadBytes + body_bytes;
  return true;
}

// Whether a whole, correct record starts at or after `at`: distinguishes damage inside a file from
// a torn end.
bool RecordFile::record_follows(std::size_t at) const {
  for (; at + kRecordHeadBytes <= file_.size(); ++at) {
    Reader reader(file_.subspan(at));
    const auto crc = reader.get<std::uint32_t>();
    const auto body = reader.get<std::uint32_t>();
    const auto kind = reader.get<std::uint64_t>();
    if (kind < 1 || kind > kinds_ || body > RecordWriter::kBodyMax ||
        at + kRecordHeadBytes + body > file_.size()) {
      continue;
    }
    if (crc32c(file_.data() + at + 4, kRecordHeadBytes - 4 + body) == crc) return true;
  }
  return false;
}

}  // namespace crane::proxy
