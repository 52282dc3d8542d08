// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/recovery/node_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace crane::node {
namespace {

using Json = nlohmann::json;

Json bytes_json(const std::vector<std::byte>& bytes) {
  Json all = Json::array();
  for (const std::byte b : bytes) all.push_back(std::to_integer<unsigned>(b));
  return all;
}

Json streams_json(const std::vector<proxy::OutputStream>& streams) {
  Json all = Json::array();
  for (const proxy::OutputStream& s : streams) {
    all.push_back({s.conn, s.chain, s.buckets, s.crc, s.filled});
  }
  return all;
}

proxy::OutputStream stream_of(const Json& json) {
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>(),
          json.at(2).get<std::uint64_t>(), json.at(3).get<std::uint64_t>(),
          json.at(4).get<std::uint64_t>()};
}

NodeState parse(const Json& json) {
  NodeState s;
  s.at.view = View{json.at("view").get<std::uint64_t>()};
  s.at.index = Index{json.at("index").get<std::uint64_t>()};
  s.position = json.at("position");
  for (const Json& one : json.at("facts")) s.facts.push_back(std::byte{one.get<std::uint8_t>()});
  s.stamp_ns = json.at("stamp_ns");
  s.clock = json.at("clock");
  s.hash = json.at("hash");
  s.last_pid = json.at("last_pid");
  s.first_start = Index{json.at("first_start").get<std::uint64_t>()};
  s.passed = json.at("passed");
  s.verified = json.at("verified");
  s.restarted_from = json.at("anew_from");
  s.log_bytes = json.at("log_bytes");
  // The state of an earlier version has fewer types.
  const Json& entries = json.at("entries");
  for (std::size_t type = 0; type < std::min(entries.size(), s.entries.size()); ++type) {
    s.entries[type] = entries.at(type);
  }
  if (json.contains("command")) json.at("command").get_to(s.server.command);
  s.server.files = json.value("machine_files", 0U);
  s.handed_over = json.value("handed_over", false);
  if (json.contains("early")) s.early = early_points(json.at("early"));  // absent before
  const Json& outputs = json.at("outputs");
  s.outputs.bytes = outputs.at("bytes");
  s.outputs.hash.closed_sum = outputs.at("closed_sum");
  for (const Json& one : outputs.at("open")) s.outputs.hash.open.push_back(stream_of(one));
  return s;
}

}  // namespace

Json early_json(std::span<const EarlyPoint> points) {
  Json all = Json::array();
  for (const auto& [p, clock] : points) {
    all.push_back({clock, p.build, p.offset, p.weight_ps, p.bytes, p.dead_flags});
  }
  return all;
}

std::vector<EarlyPoint> early_points(const Json& json) {
  std::vector<EarlyPoint> points;
  for (const Json& one : json) {
    EarlyPoint& early = points.emplace_back();
    early.clock = one.at(0);
    early.point = {one.at(1), one.at(2), one.at(3), one.at(4), one.at(5)};
  }
  return points;
}

Json to_json(const NodeState& s) {
  return {{"view", value(s.at.view)},
          {"index", value(s.at.index)},
          {"position", s.position},
          {"facts", bytes_json(s.facts)},
          {"stamp_ns", s.stamp_ns},
          {"clock", s.clock},
          {"hash", s.hash},
          {"last_pid", s.last_pid},
          {"first_start", value(s.first_start)},
          {"passed", s.passed},
          {"verified", s.verified},
          {"anew_from", s.restarted_from},
          {"log_bytes", s.log_bytes},
          {"entries", s.entries},
          {"command", s.server.command},
          {"machine_files", s.server.files},
          {"handed_over", s.handed_over},
          {"early", early_json(s.early)},
          {"outputs",
           {{"bytes", s.outputs.bytes},
            {"closed_sum", s.outputs.hash.closed_sum},
            {"open", streams_json(s.outputs.hash.open)}}}};
}

Result<NodeState> node_state(const Json& json) {
  try {
    NodeState state = parse(json);
    for (const proxy::OutputStream& s : state.outputs.hash.open) {
      if (s.filled >= proxy::kHashBucketBytes) {
        return Error{Code::kDamaged, 0, "the node's state: a connection's output"};
      }
    }
    return state;
  } catch (const Json::exception&) {
    return Error{Code::kDamaged, 0, "the node's state in a checkpoint"};
  }
}

}  // namespace crane::node
