// SPDX-License-Identifier: Apache-2.0
#pragma once
// The recorded schedule of one replica, for crane-diff --schedule (DESIGN D14): logical clock and
// schedule hash at every log entry that its server admitted.  A log index names the same moment on
// every replica, whatever the physical time.  One file per replica, `<dir>/replica-<i>.schedule`.
//
// Format: record_file.h, magic "CRANESCH", version 1; a record's number is the index of its first
// point.
//   body    kPoints: points of three u64, log index, clock, hash, in ascending order of index;
//           kAtRest: one point: where the replica came to rest after that index, before it stopped;
//           kTurns: the turns from `number` on, as TurnRecords (crane-run --trace);
//           kNames: names of operations by code, each terminated by a 0;
//           kMaps: the server's /proc/PID/maps, for the callers of turns; the last one counts
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dmt/base/result.h"
#include "dmt/sequence/turn_record.h"
#include "proxy/record/record_file.h"
#include "proxy/record/turn_names.h"

namespace crane::proxy {

inline constexpr std::uint32_t kScheduleVersion = 1;

enum class ScheduleKind : std::uint8_t {
  kPoints = 1,
  kAtRest = 2,
  kTurns = 3,
  kNames = 4,
  kMaps = 5,
};

// The state of a replica's schedule directly after it admitted the entry `index`.
struct SchedulePoint {
  std::uint64_t index;
  std::uint64_t clock;
  std::uint64_t hash;
  bool operator==(const SchedulePoint&) const = default;
};
static_assert(sizeof(SchedulePoint) == 24);

class ScheduleRecorder final : public Recorder {
 public:
  static Result<std::unique_ptr<ScheduleRecorder>> open(const std::string& dir,
                                                        std::uint8_t replica);
  ~ScheduleRecorder() { flush(); }

  void admitted(const SchedulePoint& point);
  // No thread has the turn; nothing follows.  The point is recorded only if it belongs to the last
  // admitted point.
  void at_rest(const SchedulePoint& point);

  // The turns `first`, `first` + 1, ... as whole TurnRecords.
  void turns(std::uint64_t first, std::span<const std::byte> records);
  void names(std::string_view names);
  void maps(std::string_view maps);

  // Also writes the points that are not in the file's buffer yet.
  void flush();
  void finish();

 private:
  using Recorder::Recorder;
  void append_points();
  void append(ScheduleKind kind, std::uint64_t number, std::span<const std::byte> body);

  std::vector<SchedulePoint> points_;  // not yet in the file's buffer
  std::uint64_t last_ = 0;
};

// A recorded schedule, read from its file.  The points stay in the mapped file.
class RecordedSchedule {
 public:
  // kSystem: cannot be opened; kDamaged: not a schedule, a record is broken, or its indexes do not
  // ascend; kWrongVersion.
  static Result<RecordedSchedule> open(const std::string& path);
  // For a replica without a recording: nothing is known about it.
  static RecordedSchedule none() { return {}; }

  const RecordFile& file() const noexcept { return file_; }
  std::uint64_t size() const noexcept { return size_; }  // number of points
  std::uint64_t last() const noexcept { return last_; }  // index of the last point; 0: none
  const std::optional<SchedulePoint>& at_rest() const noexcept { return at_rest_; }

  bool traced() const noexcept { return !turns_.empty(); }
  // Turn `number` (1 is the first); nullopt: it is not recorded.
  std::optional<TurnRecord> turn(std::uint64_t number) const;
  const TurnNames& names() const noexcept { return names_; }

  // Iterates over the points in order.
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
  bool take(ScheduleKind kind, std::uint64_t number, std::span<const std::byte> body);
  bool take_points(std::span<const std::byte> body);

  RecordFile file_;
  std::vector<std::span<const std::byte>> pieces_;  // none is empty
  std::uint64_t size_ = 0, last_ = 0;
  std::optional<SchedulePoint> at_rest_;
  std::map<std::uint64_t, std::span<const std::byte>> turns_;  // by the number of the first turn
  TurnNames names_;
};

}  // namespace crane::proxy
