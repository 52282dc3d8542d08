// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every replica keeps of its server's output and schedule, leader or not: hashes (DESIGN
// section 8), and the bytes and points themselves when they are recorded for crane-diff.
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
  // `record`: the directory for recordings; empty: none are kept.  `about`: what the recorded
  // history says of the server.
  static Result<std::unique_ptr<Outputs>> open(const std::string& record, std::uint8_t replica,
                                               const std::string& about);

  // An entry of the log, of consensus' own too, in the order of the log.
  void committed(const consensus::EntryView& entry);

  void connected(ConnId conn, const ConnectBody& body);
  void output(const OutputHeader& header, std::span<const std::byte> bytes);
  // Hands recorded bytes to the kernel: they survive this process.  tick() does it now and then.
  void flush();
  // The replica stops in order: its recordings are whole.
  void finish();
  // When turns are traced: what the last record of them left out, the names of operations, and the
  // maps of the server's main process.
  void turns(std::uint64_t first, std::span<const std::byte> records);
  void names(std::string_view names, std::string_view maps);
  // No thread has the turn, and nothing follows.
  void at_rest(const proxy::SchedulePoint& point);
  void tick(std::int64_t now_ns);

  // For a checkpoint; restore() makes what was before it unknown to evidence().
  struct State {
    proxy::OutputHash::State hash;
    std::uint64_t bytes = 0;
  };
  State state() const { return {hash_.state(), bytes_}; }
  void restore(const State& state, const proxy::SchedulePoint& point);

  std::uint64_t bytes() const noexcept { return bytes_; }
  // Records of bytes since this node began.
  std::uint64_t writes() const noexcept { return writes_; }
  std::uint64_t digest() const noexcept;
  // Outputs and schedule since the last verified(), at a cut; without its turns.
  proxy::Evidence evidence(const proxy::SchedulePoint& cut) const;
  // All replicas were equal where this evidence was taken.
  void verified(const proxy::Evidence& evidence);
  // Nothing before this point is compared any more.
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
