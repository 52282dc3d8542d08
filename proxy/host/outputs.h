// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every replica's record of its server's output and schedule: hashes, and the bytes and points
// themselves if they are recorded for crane-diff.  Rule: D14.
//
// Threads: one.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dmt/base/result.h"
#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"
#include "proxy/record/history_record.h"
#include "proxy/record/output_hash.h"
#include "proxy/record/output_record.h"
#include "proxy/record/schedule_record.h"
#include "proxy/record/verification.h"

namespace crane::node {

class Outputs {
 public:
  // `record`: the directory for recordings; empty: none.  `about`: the description of the server
  // in the recorded history.
  static Result<std::unique_ptr<Outputs>> open(const std::string& record, std::uint8_t replica,
                                               const std::string& about);

  // An entry of the log, including those of consensus, in log order.
  void committed(const consensus::EntryView& entry);

  void connected(ConnId conn, const ConnectBody& body);
  void output(const OutputHeader& header, std::span<const std::byte> bytes);
  // Writes recorded bytes to the kernel, so that they survive this process.  tick() also does it.
  void flush();
  // The replica stops cleanly: its recordings are complete.
  void finish();
  // If turns are traced: the turns that the last record left out, the names of operations, and the
  // maps of the server's main process.
  void turns(std::uint64_t first, std::span<const std::byte> records);
  void names(std::string_view names, std::string_view maps);
  // No thread has the turn, and no turn follows.
  void at_rest(const proxy::SchedulePoint& point);
  void tick(std::int64_t now_ns);

  // For a checkpoint.  After restore(), evidence() does not cover what came before the checkpoint.
  struct State {
    proxy::OutputHash::State hash;
    std::uint64_t bytes = 0;
  };
  State state() const { return {hash_.state(), bytes_}; }
  void restore(const State& state, const proxy::SchedulePoint& point);

  std::uint64_t bytes() const noexcept { return bytes_; }
  // The number of byte records since this node began.
  std::uint64_t writes() const noexcept { return writes_; }
  std::uint64_t digest() const noexcept;
  // Outputs and schedule from the last verified() to `cut`, without the turns.
  proxy::Evidence evidence(const proxy::SchedulePoint& cut) const;
  // All replicas were equal at the cut of this evidence.
  void verified(const proxy::Evidence& evidence);
  // Nothing before this point will be compared.
  void restart_from(const proxy::SchedulePoint& point);

 private:
  void asked(ConnId conn, std::span<const std::byte> bytes);
  void asked_name(ConnId number, std::span<const std::byte> bytes);

  proxy::OutputHash hash_;
  std::unique_ptr<proxy::OutputRecorder> recorder_;
  std::unique_ptr<proxy::ScheduleRecorder> schedule_;
  std::unique_ptr<proxy::HistoryRecorder> history_;
  std::vector<proxy::SchedulePoint> points_;  // since the last verified cut
  bool points_whole_ = true;
  proxy::SchedulePoint base_{};  // the last verified cut
  std::uint64_t bytes_ = 0;
  std::uint64_t writes_ = 0;
  std::int64_t flushed_ns_ = 0;
};

}  // namespace crane::node
