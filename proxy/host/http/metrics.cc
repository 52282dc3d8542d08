// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proxy/clients/encode.h"
#include "runtime/setup/version.h"

namespace crane::node {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Collects metric families; every value has the labels group and replica.
class Families {
 public:
  explicit Families(const NodeStatus& s)
      : common_{{"group", s.group}, {"replica", std::to_string(s.replica)}} {}

  void gauge(const char* name, const char* help, double value, Labels labels = {}) {
    add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void gauge(const char* name, const char* help, bool value) {
    gauge(name, help, value ? 1.0 : 0.0);
  }
  void counter(const char* name, const char* help, double value, Labels labels = {}) {
    add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
  }
  void counter(const char* name, const char* help, std::uint64_t value, Labels labels = {}) {
    counter(name, help, static_cast<double>(value), std::move(labels));
  }
  void gauge(const char* name, const char* help, std::uint64_t value, Labels labels = {}) {
    gauge(name, help, static_cast<double>(value), std::move(labels));
  }
  void histogram(const char* name, const char* help, const LatencyHistogram& taken) {
    ClientMetric::Histogram& h = add(name, help, MetricType::Histogram, {}).histogram;
    h.sample_count = taken.total();
    h.sample_sum = static_cast<double>(taken.sum_ns) / 1e9;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < LatencyHistogram::kBounds.size(); ++i) {
      seen += taken.counts[i];
      h.bucket.push_back({seen, static_cast<double>(LatencyHistogram::kBounds[i]) / 1e9});
    }
  }

  const std::vector<MetricFamily>& all() const noexcept { return families_; }

 private:
  ClientMetric& add(const char* name, const char* help, MetricType type, Labels labels) {
    auto family = std::find_if(families_.begin(), families_.end(),
                               [&](const MetricFamily& f) { return f.name == name; });
    if (family == families_.end()) {
      families_.push_back({name, help, type, {}});
      family = std::prev(families_.end());
    }
    ClientMetric& metric = family->metric.emplace_back();
    metric.label = common_;
    metric.label.insert(metric.label.end(), labels.begin(), labels.end());
    return metric;
  }

  const Labels common_;
  std::vector<MetricFamily> families_;
};

void add_group(Families& f, const NodeStatus& s) {
  const auto& members = s.log.members;
  const auto voters = std::count_if(members.begin(), members.end(), [](const auto& m) {
    return m.role == consensus::MemberRole::kVoter;
  });
  f.gauge("crane_has_leader", "Whether this replica knows a leader.", s.leader < kReplicasMax);
  f.gauge("crane_is_leader", "Whether this replica leads.", s.role == "leader");
  f.gauge("crane_takes_clients", "Whether this replica leads and takes clients.",
          s.readiness.takes_clients);
  f.gauge("crane_has_quorum", "Whether a majority answers this replica.", s.no_quorum.empty());
  f.gauge("crane_serving", "Whether the server of this replica runs.", s.not_serving.empty());
  f.counter("crane_leader_changes_total", "Reigns whose leader this replica knew.", s.reigns);
  f.gauge("crane_voters", "Voters of the group.", static_cast<double>(voters));
  f.gauge("crane_peers_connected", "Other replicas whose process is connected.",
          std::uint64_t{s.connected});
  const control::Verdict verdict = verdict_of(s);
  f.gauge("crane_group_serving",
          "Whether a client that connects now is answered, as known to this replica.",
          verdict.serving);
  f.gauge("crane_group_well",
          "Whether crane-ctl status would report the group as well, as known to this replica.",
          verdict.health == control::Health::kWell);
  f.gauge("crane_supervised",
          "Whether its crane-run lives, which starts a lost replica again, or it needs none.",
          !s.unsupervised);
  if (verdict.may_lose) {
    f.gauge("crane_losses_tolerated",
            "Replicas that may be lost now so that another one still leads and serves at once.",
            static_cast<double>(*verdict.may_lose));
  }
  if (s.readiness.recovers) {
    const control::Progress& p = s.readiness.progress;
    f.gauge("crane_recovery_entries_done", "Missed entries that this replica has run.", p.done);
    f.gauge("crane_recovery_entries_left", "Missed entries that this replica has still to run.",
            p.of - std::min(p.of, p.done));
    f.gauge("crane_recovery_entries_per_second", "Missed entries that it runs per second.",
            p.per_s);
    if (p.left_ms >= 0) {
      f.gauge("crane_recovery_seconds_left", "Time until it has run all missed entries.",
              static_cast<double>(p.left_ms) / 1e3);
    }
  }
  for (const control::Operation& one : s.recovery.operations) {
    const Labels labels{{"operation", one.name}};
    f.gauge("crane_operation_bytes_done", "Bytes of a long operation's present step that are done.",
            one.progress.done, labels);
    f.gauge("crane_operation_bytes", "Bytes of a long operation's present step; 0: not known.",
            one.progress.of, labels);
  }
  f.counter("crane_links_lost_total", "Connections to other replicas that were lost.",
            s.log.fabric.links_lost);
}

void add_log(Families& f, const NodeStatus& s) {
  f.counter("crane_proposals_committed_total", "Log index of the last committed entry.",
            s.committed);
  f.counter("crane_proposals_applied_total", "Log index of the last entry that its server took.",
            s.applied);
  f.gauge(
      "crane_has_room",
      "Whether its log and its server's files can grow: neither a disk nor shared memory is full.",
      s.log.no_room.empty());
  const std::uint64_t pending = s.role == "leader" ? s.last - std::min(s.last, s.committed) : 0;
  f.gauge("crane_proposals_pending", "Entries proposed by this leader and not committed yet.",
          pending);
  f.histogram("crane_commit_duration_seconds",
              "From proposing an entry to its commit, on the leader.", s.commit_times);
  if (s.durability == "disk") {
    f.histogram("crane_store_sync_duration_seconds",
                "Time that the own store took to write entries to disk.", s.log.synced);
    f.gauge("crane_durable_index", "Log index up to which the log is on its disk.",
            value(s.log.durable));
  }
  f.gauge("crane_lag_entries", "Committed entries that its server has not taken.",
          s.committed - std::min(s.committed, s.applied));
  f.gauge("crane_lag_seconds", "Age of the oldest entry that its server has not taken.",
          static_cast<double>(s.lag_ns) / 1e9);
  for (const consensus::MemberStatus& m : s.log.members) {
    if (s.role != "leader" || value(m.id) == s.replica) continue;
    const Labels follower{{"follower", std::to_string(value(m.id))}};
    f.gauge("crane_follower_connected",
            "Whether the follower's process is connected (leader only).", m.connected ? 1.0 : 0.0,
            follower);
    if (!m.connected) continue;
    const replica::FollowerLag lag = s.lag_of(m.id);
    f.gauge("crane_follower_lag_entries",
            "Entries that the leader's server took and the follower's did not (leader only).",
            static_cast<double>(lag.entries), follower);
    f.gauge("crane_follower_lag_seconds",
            "Age of the oldest of these; 0: less than 0.02 (leader only).",
            static_cast<double>(lag.ns) / 1e9, follower);
  }
  for (std::size_t type = 1; type < s.entries.size(); ++type) {
    const char* const name = proxy::name(static_cast<EntryType>(type));
    if (std::strcmp(name, "unknown") == 0) continue;
    f.counter("crane_entries_total", "Committed entries by type; BUBBLE grants only turns.",
              s.entries[type], {{"type", name}});
  }
  f.gauge("crane_spool_bytes", "Bytes committed but not yet in the server's memory.",
          s.spooled_bytes);
}

void add_clients(Families& f, const NodeStatus& s) {
  f.gauge("crane_connections", "Current clients.", s.connections);
  f.counter("crane_connections_accepted_total", "Clients taken since the node began.", s.accepted);
  f.counter("crane_connections_refused_total", "Clients that the server did not take.", s.refused);
  f.counter("crane_connections_adopted_total",
            "Connections that this replica kept when it became the leader.", s.adopted);
  const char* const reset = "Connections that were reset, by cause.";
  f.counter("crane_connections_reset_total", reset, s.reset_leader, {{"cause", "leader_lost"}});
  f.counter("crane_connections_reset_total", reset, s.reset_slow, {{"cause", "slow_client"}});
  f.gauge("crane_connections_forwarded", "Clients forwarded to the leader's host.", s.forwarded);
  f.counter("crane_client_received_bytes_total", "Bytes from clients.", s.bytes_in);
  f.counter("crane_client_sent_bytes_total", "Bytes to clients.", s.bytes_out);
  f.counter("crane_clients_waited_seconds_total", "Time that clients waited for slow followers.",
            static_cast<double>(s.waited_ns) / 1e9);
}

void add_schedule(Families& f, const NodeStatus& s) {
  f.counter("crane_turns_total", "Turns that the server's threads took.", s.clock);
  f.counter("crane_preemptions_total", "How often a spinning thread was preempted.", s.preempted);
  f.counter("crane_slices_total", "Time slices of computations that ended.", s.slices);
  f.counter("crane_wakeups_total", "How often the node slept.", s.wakeups);
  if (s.watched) {
    f.counter("crane_unhooked_calls_total", "System calls that bypassed libcrane.so.",
              s.unhooked_calls);
  }
  f.counter("crane_divergences_total", "Comparisons of replicas that found a difference.",
            s.divergences);
  f.gauge("crane_verified_index", "Log index up to which a majority's outputs were equal.",
          s.verified);
}

void add_checkpoints(Families& f, const NodeStatus& s, const NewestCheckpoint& newest) {
  f.counter("crane_checkpoints_total", "Checkpoints that this replica published.",
            s.checkpoint.taken);
  f.counter("crane_checkpoint_failures_total", "Checkpoints that this replica gave up.",
            s.checkpoint.failed);
  f.gauge("crane_checkpoints_wanted", "Whether checkpoints are taken at all.",
          s.no_checkpoints.empty());
  if (newest.index != 0) {
    f.gauge("crane_checkpoint_timestamp_seconds", "Time of the newest checkpoint on this machine.",
            static_cast<double>(newest.unix_seconds));
    f.gauge("crane_checkpoint_bytes", "Size of the newest checkpoint on this machine.",
            newest.bytes);
    f.gauge("crane_checkpoint_index", "Log index of the newest checkpoint on this machine.",
            newest.index);
  }
  if (s.checkpoint.taken == 0) return;
  f.gauge("crane_checkpoint_hold_seconds",
          "How long this replica's last checkpoint held its server.",
          static_cast<double>(s.checkpoint.held_ns) / 1e9);
  f.gauge("crane_checkpoint_duration_seconds",
          "How long this replica's last checkpoint took in total.",
          static_cast<double>(s.checkpoint.prepare_ns + s.checkpoint.rest_ns +
                              s.checkpoint.held_ns + s.checkpoint.pack_ns) /
              1e9);
}

void add_machine(Families& f, const Surroundings& around) {
  for (const FileSystem& one : around.file_systems) {
    const Labels labels{{"holds", one.holds}, {"path", one.path}};
    f.gauge("crane_filesystem_size_bytes", "Size of the file systems that hold the group.",
            one.bytes, labels);
    f.gauge("crane_filesystem_free_bytes", "Free bytes of these file systems.", one.free_bytes,
            labels);
  }
  f.counter("process_cpu_seconds_total", "Processor time of the node.", around.process.cpu_seconds);
  f.gauge("process_resident_memory_bytes",
          "Memory of the node, including the shared memory it uses.",
          around.process.resident_bytes);
  f.gauge("process_open_fds", "Open descriptors of the node.", around.process.open_descriptors);
  f.gauge("process_start_time_seconds", "When the node started.",
          around.process.start_unix_seconds);
}

void add_http(Families& f, const HttpFacts& http) {
  f.gauge("crane_http_connections", "Open HTTP connections.", http.connections.open);
  f.counter("crane_http_connections_refused_total", "HTTP connections that found no place.",
            http.connections.refused);
  f.counter("crane_http_connections_timed_out_total",
            "HTTP connections whose request or answer took too long.", http.connections.timed_out);
  f.counter("crane_http_requests_malformed_total", "HTTP requests that are malformed or too large.",
            http.connections.malformed);
  f.counter("crane_http_logins_failed_total", "HTTP requests with a wrong name or password.",
            http.failed_logins);
  if (http.certificate_expires_unix_s == 0) return;
  f.gauge("crane_http_certificate_expiry_timestamp_seconds",
          "When the certificate of HTTP expires.",
          static_cast<double>(http.certificate_expires_unix_s));
}

}  // namespace

std::string metrics_text(const NodeStatus& status, const Surroundings& around) {
  Families families(status);
  families.gauge("crane_build_info", "Always 1; the labels describe the build.", 1.0,
                 {{"version", setup::version_text()}});
  add_group(families, status);
  add_log(families, status);
  add_clients(families, status);
  add_schedule(families, status);
  add_checkpoints(families, status, around.checkpoint);
  add_machine(families, around);
  add_http(families, around.http);
  return prometheus::TextSerializer().Serialize(families.all());
}

}  // namespace crane::node
