// SPDX-License-Identifier: Apache-2.0
#pragma once
// A replica's recorded history: every entry of the log as its node received it, and how its server
// was started.  It is kept for crane-replay, in one file per replica, `<dir>/replica-<i>.history`.
//
// Format: record_file.h, magic "CRANEHIS", version 1.
//   kAbout  number: 0, 1, ..: pieces of one JSON text (proxy/host/config.h); before the first entry
//   kEntry  number: index in the log; body: u64 view, u64 stamp, u64 end of the entry in the log,
//           u32 grant, u8 type, 3 x 0, payload
// The indexes of a history are consecutive.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "consensus/consensus.h"
#include "dmt/base/result.h"
#include "proxy/record/record_file.h"

namespace crane::proxy {

inline constexpr std::uint32_t kHistoryVersion = 1;
inline constexpr RecordFormat kHistoryFormat{"CRANEHIS", ".history", kHistoryVersion, 2,
                                             "not a recorded history"};
// Entry types from this one on belong to consensus, and are for no server.
inline constexpr std::uint8_t kConsensusTypes = 0xf0;

enum class HistoryKind : std::uint8_t { kAbout = 1, kEntry = 2 };

// The entry of a record, whose payload points into `body`; nullopt: the record is no entry.
std::optional<consensus::EntryView> history_entry(std::uint8_t kind, std::uint64_t number,
                                                  std::span<const std::byte> body);
// Size of an entry in the file.
std::uint64_t history_entry_bytes(const consensus::EntryView& entry) noexcept;
// Why a file could not be opened as a history, as text.
std::string why_no_history(const Error& error);

class HistoryRecorder final : public Recorder {
 public:
  static Result<std::unique_ptr<HistoryRecorder>> open(const std::string& dir,
                                                       std::uint8_t replica);

  // Called once, before the first entry.
  void about(std::string_view json);
  void committed(const consensus::EntryView& entry);

 private:
  using Recorder::Recorder;
};

// A recorded history, read from its file.  The payloads stay in the mapped file.
class History {
 public:
  // kSystem: cannot be opened; kDamaged: not a history, a record is broken, or the indexes have a
  // gap; kWrongVersion.  `why`: what is wrong, and after which entry.
  static Result<History> open(const std::string& path, std::string& why);

  const RecordFile& file() const noexcept { return file_; }
  const std::string& about() const noexcept { return about_; }
  std::uint64_t first() const noexcept { return first_; }  // index of the first entry; 0: none
  std::uint64_t last() const noexcept {
    return entries_.empty() ? 0 : first_ + entries_.size() - 1;
  }
  // REQUIRES: first() <= index <= last(), and the history is not empty.
  consensus::EntryView entry(std::uint64_t index) const;

 private:
  History() = default;
  bool take(HistoryKind kind, std::uint64_t number, std::span<const std::byte> body,
            std::string& why);

  RecordFile file_;
  std::string about_;
  std::uint64_t about_pieces_ = 0;
  std::uint64_t first_ = 0;
  std::vector<std::span<const std::byte>> entries_;  // bodies of the records
};

}  // namespace crane::proxy
