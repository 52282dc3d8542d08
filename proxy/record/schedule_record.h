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
//           kAtRest: one point: where the replica came to rest after that index, before it stopped;
//           kTurns: the turns from `number` on, as TurnRecord has them (crane-run --trace);
//           kNames: names of operations by code, each ended by a 0;
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

// The state of a replica's schedule right after it admitted the entry `index`.
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
  // No thread has the turn; nothing follows.  Left out unless it belongs to the last point
  // admitted.
  void at_rest(const SchedulePoint& point);

  // Turns `first`, `first` + 1, ...: whole TurnRecords.
  void turns(std::uint64_t first, std::span<const std::byte> records);
  void names(std::string_view names);
  void maps(std::string_view maps);

  // With the points that are not in the file's buffer yet.
  void flush();
  void finish();

 private:
  using Recorder::Recorder;
  void append_points();
  void append(ScheduleKind kind, std::uint64_t number, std::span<const std::byte> body);

  std::vector<SchedulePoint> points_;  // not yet in the file's buffer
  std::uint64_t last_ = 0;
};

// A recorded schedule, read back.  The points stay in the mapped file.
class RecordedSchedule {
 public:
  // kSystem: cannot be opened; kDamaged: not a schedule, a record inside it is broken, or its
  // indexes do not rise; kWrongVersion.
  static Result<RecordedSchedule> open(const std::string& path);
  // Of a replica that has not recorded any: nothing is known of it.
  static RecordedSchedule none() { return {}; }

  const RecordFile& file() const noexcept { return file_; }
  std::uint64_t size() const noexcept { return size_; }  // points
  std::uint64_t last() const noexcept { return last_; }  // index of the last one; 0: none
  const std::optional<SchedulePoint>& at_rest() const noexcept { return at_rest_; }

  bool traced() const noexcept { return !turns_.empty(); }
  // Turn `number` (1 is the first); nullopt: it is not recorded.
  std::optional<TurnRecord> turn(std::uint64_t number) const;
  const TurnNames& names() const noexcept { return names_; }

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
  bool take(ScheduleKind kind, std::uint64_t number, std::span<const std::byte> body);
  bool take_points(std::span<const std::byte> body);

  RecordFile file_;
  std::vector<std::span<const std::byte>> pieces_;  // none is empty
  std::uint64_t size_ = 0, last_ = 0;
  std::optional<SchedulePoint> at_rest_;
  std::map<std::uint64_t, std::span<const std::byte>> turns_;  // by the first one's number
  TurnNames names_;
};

}  // namespace crane::proxy
