// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/start_progress.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "dmt/base/clock.h"
#include "proxy/host/status.h"
#include "runtime/control/start_file.h"

namespace crane::node {

StartProgress::StartProgress(const Config& config, std::string name, std::string step)
    : path_(config.replica_dir() + "/" + control::kStartFile), replica_(config.replica) {
  operation_.name = std::move(name);
  operation_.step = std::move(step);
  write(monotonic_ns());
}

StartProgress::~StartProgress() { (void)::unlink(path_.c_str()); }

checkpoint::Checkpoints::Options StartProgress::reported(const std::string& directory) {
  return {directory, 1, {}, [this](std::uint64_t done, std::uint64_t of) { step(done, of); }};
}

void StartProgress::step(std::uint64_t done, std::uint64_t of) {
  const std::int64_t now_ns = monotonic_ns();
  meter_.step(done, of, now_ns);
  if (now_ns - written_ns_ >= kEveryNs) write(now_ns);
}

void StartProgress::write(std::int64_t now_ns) {
  written_ns_ = now_ns;
  operation_.progress = meter_.progress();
  const Outcome written = write_file(path_, control::start_text(::getpid(), replica_, operation_));
  if (written.ok() || std::exchange(complained_, true)) return;
  spdlog::warn("{}: crane-ctl cannot show how far this node is: {}", path_,
               written.error().message());
}

}  // namespace crane::node
