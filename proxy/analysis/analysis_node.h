// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node of an analysis replica, which is always a learner (CORE-M7 of consensus/core/replica.h).
// It stores the log that it gets on disk (spool.h).  Another process runs the log with the server
// in a tool of valgrind (analysis_engine.h).
//
//   leader's writes -> consensus -> Spool -> crane-replay --follow -> (server in valgrind)
//
// It takes entries at once, so that no client waits for its server: for the log's flow control it
// is always up to date.  The node itself has no server and no clients, takes no checkpoints, and
// takes no part in comparisons of replicas.
//
// Threads: one.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "consensus/consensus.h"
#include "proxy/analysis/analysis_engine.h"
#include "proxy/analysis/analysis_status.h"
#include "proxy/analysis/spool.h"
#include "proxy/host/config.h"
#include "proxy/host/control.h"
#include "runtime/setup/exit_status.h"

namespace crane::node {

class AnalysisNode {
 public:
  AnalysisNode(const Config& config, int control_fd);
  ~AnalysisNode();
  AnalysisNode(const AnalysisNode&) = delete;
  AnalysisNode& operator=(const AnalysisNode&) = delete;

  // Runs until it is stopped or cannot continue.
  ExitStatus run();

 private:
  bool open();
  bool open_spool();
  bool open_consensus();
  void open_control_socket();
  void wait(std::uint64_t until_ns);
  void on_signals();
  void on_control();
  void accept_client();
  void answer(int fd);
  std::string reply_to(const std::string& text) const;
  std::string status() const;

  void on_committed(const consensus::EntryView& entry);
  void too_late(const std::string& how);
  void start_engine();
  void on_engine_output();
  void look_after_log(std::uint64_t now_ns);
  void shut_down();

  void log_and_send(const std::string& text);
  void fail(ExitStatus status, const std::string& why);

  const Config config_;
  Control control_;
  std::unique_ptr<consensus::Consensus> consensus_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Engine> engine_;
  AnalysisStatus engine_status_;
  int signals_ = -1;
  int socket_ = -1;
  std::vector<int> clients_;
  std::uint64_t flush_ns_ = 0, look_ns_ = 0;
  std::uint64_t accept_ns_ = 0;  // no accept before this time: no free descriptor
  bool done_ = false;
  ExitStatus result_ = ExitStatus::kStopped;
};

}  // namespace crane::node
