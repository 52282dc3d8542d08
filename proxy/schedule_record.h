// SPDX-License-Identifier: Apache-2.0
#pragma once
// The recorded schedule of one replica, kept for crane-diff --schedule (DESIGN D14): logical clock
// and schedule hash at every entry of the log that its server admitted.  A log index names the same
// moment on every replica, whatever the physical time.  One file per replica,
// `<dir>/replica-<i>.schedule`.
//
// Format: record_file.h, magic "CRANESCH", version 1; a record's number is the index of its first
// point.
//   body    kPoints: points of three u64, log index, clock, hash, by rising index;
//           kAtRest: one point: where the replica came to rest after that index, before it stopped
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "proxy/record_file.h"

namespace crane::proxy {

inline constexpr std::uint32_t kScheduleVersion = 1;

enum class ScheduleKind : std::uint8_t { kPoints = 1, kAtRest = 2 };

// The state of a replica's schedule right after it admitted the entry `index`.
struct SchedulePoint {
  std::uint64_t index;
  std::uint64_t clock;
  std::uint64_t hash;
  bool operator==(const SchedulePoint&) const = default;
};
static_assert(sizeof(SchedulePoint) == 24);

class ScheduleRecorder {
 public:
  static Result<std::unique_ptr<ScheduleRecorder>> open(const std::string& dir,
                                                        std::uint8_t replica);
  ~ScheduleRecorder() { flush(); }
  ScheduleRecorder(const ScheduleRecorder&) = delete;
  ScheduleRecorder& operator=(const ScheduleRecorder&) = delete;

  void admitted(const SchedulePoint& point);
  // Nobody has the turn; nothing follows.  Left out unless it belongs to the last point admitted.
  void at_rest(const SchedulePoint& point);

  // As of RecordWriter.
  void flush();
  void finish();
  bool recording() const noexcept { return file_->recording(); }
  std::string take_message() { return file_->take_message(); }
  void test_only_room(std::uint64_t bytes) noexcept { file_->test_only_room(bytes); }

 private:
  explicit ScheduleRecorder(std::unique_ptr<RecordWriter> file) : file_(std::move(file)) {}
  void append_points();

  std::unique_ptr<RecordWriter> file_;
  std::vector<SchedulePoint> points_;  // not yet in the file's buffer
  std::uint64_t last_ = 0;
};

// A recorded schedule, read back.  The points stay in the mapped file.
class RecordedSchedule {
 public:
  // kSystem: cannot be opened; kDamaged: not a schedule, a record inside it is broken, or its
  // indexes do not rise; kWrongVersion.
  static Result<RecordedSchedule> open(const std::string& path);

  const RecordFile& file() const noexcept { return file_; }
  std::uint64_t size() const noexcept { return size_; }  // points
  std::uint64_t last() const noexcept { return last_; }  // index of the last one; 0: none
  const std::optional<SchedulePoint>& at_rest() const noexcept { return at_rest_; }

  // Walks through the points in order.
  class Cursor {
   public:
    explicit Cursor(const RecordedSchedule& schedule) noexcept : schedule_(&schedule) {}
    // The next point; false at the end.
    bool peek(SchedulePoint& point) const noexcept;
    void advance() noexcept;

   private:
    const RecordedSchedule* schedule_;
    std::size_t piece_ = 0, offset_ = 0;
  };

 private:
  RecordedSchedule() = default;
  bool take(ScheduleKind kind, std::span<const std::byte> body);

  RecordFile file_;
  std::vector<std::span<const std::byte>> pieces_;  // none is empty
  std::uint64_t size_ = 0, last_ = 0;
  std::optional<SchedulePoint> at_rest_;
};

}  // namespace crane::proxy
