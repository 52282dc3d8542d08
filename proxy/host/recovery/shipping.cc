// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/shipping.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "dmt/layout.h"
#include "runtime/control/schema.h"

namespace crane::node {
namespace {

constexpr std::size_t kServingMax = 2;  // at the same time
constexpr std::size_t kWaitingMax = 8;
constexpr std::int64_t kTryAgainNs = 1'000'000'000;
// A receiver that verifies what has arrived sends nothing for long.
constexpr int kReceiverSilenceMs = 60'000;

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Runs in the worker's process.
Result<std::string> give(std::unique_ptr<consensus::SecureLink> link, const std::string& from,
                         bool known, const checkpoint::Worker::Report& report) {
  ShipLink wire(std::move(link), kReceiverSilenceMs);
  checkpoint::Checkpoints here({from, 1, {}, report.bytes});
  const auto served = checkpoint::serve(wire, here, known);
  if (!served) return served.error();
  return nlohmann::json{{"name", served.value().name},
                        {"bytes", served.value().bytes},
                        {"lacks", served.value().lacks},
                        {"behind", value(served.value().behind)}}
      .dump();
}

}  // namespace

bool ships(const Config& config) {
  return config.host && config.host->fabric != "shm" && config.replicas > 1;
}

checkpoint::Expected expected_of(const Config& config) {
  checkpoint::Expected expected;
  expected.group = config.group;
  expected.log_digest =
      config.replays ? config.log_digest : checkpoint::digest_of_log(config.group, config.log_id);
  expected.layout_version = dmt::kLayoutVersion;
  expected.program = config.program;
  return expected;
}

ShipParty party_of(const Config& config) {
  ShipParty party;
  party.self = ReplicaId{config.replica};
  for (const setup::HostReplica& r : config.host->replicas) {
    party.endpoints.push_back({r.address, r.port});
  }
  party.secret = config.links;
  return party;
}

std::string sentence_of(const checkpoint::Fetched& f) {
  return fmt::format(
      "fetched the checkpoint at entry {} from replica {}: {:.1f} MB in {} ms{}", value(f.index),
      f.from, megabytes(f.bytes), f.ms,
      f.had > 0 ? fmt::format(", {:.1f} MB were already here", megabytes(f.had)) : "");
}

bool Shipping::watch(Job& job) {
  job.owner = this;
  event_assign(
      &job.event_, base_, job.worker.event_fd(), EV_READ | EV_PERSIST,
      [](int, short, void* argument) {
        auto* that = static_cast<Job*>(argument);
        that->owner->advance(*that);
      },
      &job);
  return event_add(&job.event_, nullptr) == 0;
}

void Shipping::advance(Job& job) {
  owner_.woke();
  // The event would watch a descriptor that the worker closes.
  event_del(&job.event_);
  if (!job.worker.advance()) {
    job.meter.step(job.worker.bytes_done(), job.worker.bytes_in_all(), monotonic_ns());
    event_add(&job.event_, nullptr);
    return;
  }
  if (&job == &fetching_) return fetched();
  served(job);
  std::erase_if(serving_, [&](const auto& one) { return one.get() == &job; });
}

// --- giving -------------------------------------------------------------------------------------

void Shipping::take_visitor(ReplicaId from, std::unique_ptr<consensus::SecureLink> link) {
  if (waiting_.size() >= kWaitingMax) waiting_.pop_front();
  waiting_.push_back({from, std::move(link)});
}

void Shipping::step() {
  while (!waiting_.empty() && serving_.size() < kServingMax) {
    Visitor visitor = std::move(waiting_.front());
    waiting_.pop_front();
    begin_serving(std::move(visitor));
  }
}

void Shipping::begin_serving(Visitor visitor) {
  auto job = std::make_unique<Job>();
  job->peer = visitor.from;
  const std::string from = config_.checkpoints_dir();
  const bool known = owner_.knows(visitor.from);
  const Outcome begun = job->worker.start(
      [&](const checkpoint::Worker::Report& report) {
        report.line("giving it");
        return give(std::move(visitor.link), from, known, report);
      },
      {}, visitor.link->fd());
  if (!begun.ok()) {
    spdlog::warn("cannot serve a checkpoint to replica {}: {}", value(visitor.from),
                 begun.error().message());
    return;
  }
  job->worker.hurry();  // a replica waits for it
  visitor.link->hand_over();
  watch(*job);
  serving_.push_back(std::move(job));
}

void Shipping::served(const Job& job) {
  if (!job.worker.result().ok()) {
    spdlog::warn("the transfer of a checkpoint to replica {} failed: {}", value(job.peer),
                 job.worker.result().error().message());
    return;
  }
  const auto result = nlohmann::json::parse(job.worker.result().value(), nullptr, false);
  if (const std::string name = control::text_in(result, "name"); !name.empty()) {
    spdlog::info("gave checkpoint {} to replica {}: {:.1f} MB", name, value(job.peer),
                 megabytes(control::number_in(result, "bytes")));
  }
  if (control::flag_in(result, "lacks")) {
    owner_.lacked(job.peer, Index{control::number_in(result, "behind")});
  }
}

// --- fetching -----------------------------------------------------------------------------------

void Shipping::fetch(Index behind, std::int64_t now_ns) {
  if (!fetching_.worker.idle() || now_ns < fetch_at_ns_) return;
  fetch_at_ns_ = now_ns + kTryAgainNs;
  const Outcome begun = fetching_.worker.start(
      [&](const checkpoint::Worker::Report& report) -> Result<std::string> {
        checkpoint::Checkpoints here({config_.checkpoints_dir(), 1, {}, report.bytes});
        const auto got = checkpoint::fetch_newest(others_of(party_of(config_)),
                                                  expected_of(config_), behind, here, report.line);
        if (!got) return got.error();
        return sentence_of(got.value());
      },
      [](const std::string& line) { spdlog::info("{}", line); });
  fetching_.meter = {};
  if (begun.ok()) {
    fetching_.worker.hurry();  // this replica waits for it
    watch(fetching_);
  } else {
    spdlog::warn("cannot begin to fetch a checkpoint: {}", begun.error().message());
  }
}

void Shipping::fetched() {
  const auto& result = fetching_.worker.result();
  if (result.ok()) {
    last_failure_.clear();
    spdlog::info("{}", result.value());
  } else if (const std::string reason = result.error().message();
             std::exchange(last_failure_, reason) != reason) {
    spdlog::warn("no checkpoint was fetched, trying again: {}", last_failure_);
  }
}

std::vector<control::Operation> Shipping::operations() const {
  std::vector<control::Operation> all;
  if (fetches()) {
    all.push_back({"fetch", fetching_.worker.progress(), fetching_.meter.progress()});
  }
  for (const auto& job : serving_) {
    all.push_back({"give", fmt::format("to replica {}", value(job->peer)), job->meter.progress()});
  }
  return all;
}

void Shipping::stop() {
  waiting_.clear();
  for (const auto& job : serving_) event_del(&job->event_);
  serving_.clear();
  if (!fetching_.worker.idle()) event_del(&fetching_.event_);
  fetching_.worker.stop();
}

}  // namespace crane::node
