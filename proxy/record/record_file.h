// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of checksummed records, one per replica: recorded outputs (output_record.h) and schedules
// (schedule_record.h).
//
// Format, little-endian:
//   file    header, record*
//   header  8 bytes of magic, u32 version, u32 replica, u32 0, u32 CRC32C of the 20 bytes before,
//           u32 end (RecordingEnd), u32 errno of what stopped it
//   record  u32 CRC32C of all that follows, u32 body bytes, u8 kind, 7 x 0, u64 number, body
// The two words after the header's checksum are rewritten in place when the recording ends.  That
// needs no room, so even a full disk can be reported.  A process that is killed leaves `end` at
// kEndsEarly and at most one torn record, which a reader drops.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dmt/base/result.h"

namespace crane::proxy {

// Sizes of the file header and of the head before a record's body; offset of `end` in the header.
inline constexpr std::size_t kRecordingHeaderBytes = 32;
inline constexpr std::size_t kRecordingEndOffset = 24;
inline constexpr std::size_t kRecordHeadBytes = 24;

enum class RecordingEnd : std::uint32_t {
  kEndsEarly = 0,  // still being written, or its writer was killed
  kWhole = 1,      // the replica stopped cleanly
  kStopped = 2,    // writing failed (disk full); all earlier records are in the file
};

struct RecordFormat {
  const char* magic;   // 8 characters
  const char* suffix;  // of the file name
  std::uint32_t version;
  std::uint8_t kinds;   // record kinds are 1 .. kinds
  const char* not_one;  // message for a file of another format
};

class RecordWriter {
 public:
  // The largest body of a record.
  static constexpr std::uint32_t kBodyMax = 1u << 20;

  // Creates `dir` if it is missing and replaces an older recording of this replica.
  static Result<std::unique_ptr<RecordWriter>> open(const RecordFormat& format,
                                                    const std::string& dir, std::uint8_t replica);
  // Without finish() the recording ends early, like that of a replica that failed.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // Appends a record whose body is `head` followed by `rest`.
  void append(std::uint8_t kind, std::uint64_t number, std::span<const std::byte> head,
              std::span<const std::byte> rest);
  // Writes the buffer to the kernel, so that it survives the death of this process.
  void flush();
  // Ends the recording in order: the replica stopped, and everything that it did is in the file.
  void finish();

  // False after a failure to write; the service continues, and the file records the error.
  bool recording() const noexcept { return fd_ >= 0 && !stopped_; }
  // Returns the text to log, once after recording stopped; otherwise empty.
  std::string take_message();

  // Acts as if the file system had room for only `bytes` more.
  void test_only_room(std::uint64_t bytes) noexcept { test_room_ = bytes; }

 private:
  RecordWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  bool write_all(const std::byte* data, std::size_t size);
  void stop(int error);
  void mark(RecordingEnd end, int error);

  int fd_;
  const std::string path_;
  std::vector<std::byte> buffer_;  // whole records
  std::uint64_t written_ = 0;      // file size after the last whole record
  bool stopped_ = false;
  std::string message_;
  std::uint64_t test_room_ = UINT64_MAX;
};

// Writes one kind of record file.  The owner calls finish() and take_message(), as for
// RecordWriter.
class Recorder {
 public:
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void flush() { file_->flush(); }
  void finish() { file_->finish(); }
  bool recording() const noexcept { return file_->recording(); }
  std::string take_message() { return file_->take_message(); }
  void test_only_room(std::uint64_t bytes) noexcept { file_->test_only_room(bytes); }

 protected:
  explicit Recorder(std::unique_ptr<RecordWriter> file) : file_(std::move(file)) {}
  ~Recorder() = default;

  std::unique_ptr<RecordWriter> file_;
};

// A mapped file of records.  What it returns is valid as long as the object.
class RecordFile {
 public:
  RecordFile() = default;
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&& other) noexcept;
  ~RecordFile();

  // kSystem: cannot be opened; kDamaged: not such a file, or its header is broken; kWrongVersion.
  static Result<RecordFile> open(const RecordFormat& format, const std::string& path);

  // Calls take(kind, number, body) -> bool for each record; kDamaged: a record is broken, or take()
  // returned false.
  template <typename Take>
  Outcome for_each(Take&& take) {
    Record record;
    for (std::size_t at = kRecordingHeaderBytes;;) {
      const Result<bool> more = next(at, record);
      if (!more.ok()) return more.error();
      if (!more.value()) return Done{};
      if (!take(record.kind, record.number, record.body)) {
        return Error{Code::kDamaged, 0, "a record of an unknown kind"};
      }
    }
  }

  const std::string& path() const noexcept { return path_; }
  std::uint32_t replica() const noexcept { return replica_; }
  RecordingEnd end() const noexcept { return end_; }
  int stop_error() const noexcept { return stop_error_; }
  // A torn record at the end was left out.  Known after for_each().
  bool torn() const noexcept { return torn_; }
  // The file ends before the replica did, so it may contain less than the others.
  bool ends_early() const noexcept { return end_ != RecordingEnd::kWhole || torn_; }

 private:
  struct Record {
    std::uint8_t kind = 0;
    std::uint64_t number = 0;
    std::span<const std::byte> body;
  };

  Outcome read_header(const RecordFormat& format);
  Result<bool> next(std::size_t& at, Record& record);
  bool record_follows(std::size_t at) const;

  std::string path_;
  std::span<const std::byte> file_;
  std::uint8_t kinds_ = 0;
  std::uint32_t replica_ = 0;
  RecordingEnd end_ = RecordingEnd::kEndsEarly;
  int stop_error_ = 0;
  bool torn_ = false;
};

}  // namespace crane::proxy
