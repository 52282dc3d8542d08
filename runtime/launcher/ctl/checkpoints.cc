// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/checkpoints.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>

#include "runtime/control/progress.h"
#include "runtime/launcher/ctl/archives.h"
#include "runtime/launcher/ctl/sizes.h"
#include "runtime/launcher/text_table.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoints;
using checkpoint::is_denied;
using Json = nlohmann::json;

// The time in UTC, because the hosts of a group may have different time zones.
std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&time, &parts) == nullptr) return "?";
  return std::string(text, std::strftime(text, sizeof text, "%F %T", &parts));
}

bool read_number(const std::string& text, std::uint64_t& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

Json checkpoints_json(const std::string& group, const std::vector<Kept>& all) {
  Json rows = Json::array();
  for (const auto& [replica, listed] : all) {
    std::uint64_t view = 0, index = 0;
    checkpoint::parse_name(listed.name, view, index);
    Json row{{"replica", replica},
             {"name", listed.name},
             {"view", view},
             {"index", index},
             {"verified", listed.verified},
             {"damage", nullptr},
             {"time", nullptr},
             {"bytes", nullptr},
             {"tier", nullptr},
             {"path", listed.path}};
    if (listed.damage.empty()) {
      row["time"] = listed.manifest.time;
      row["bytes"] = listed.bytes();
      row["tier"] = checkpoint::name_of(listed.manifest.tier);
    } else {
      row["damage"] = listed.damage;
    }
    rows.push_back(std::move(row));
  }
  return {{"group", group}, {"checkpoints", std::move(rows)}};
}

std::string checkpoints_table(const Json& listed) {
  static constexpr Column kColumns[] = {
      {"REPLICA", "replica", false}, {"CHECKPOINT", "name", false}, {"WHEN (UTC)", "when", false},
      {"SIZE", "size", true},        {"TIER", "tier", false},       {"STATE", "state", false}};
  const std::string group = listed.at("group").get<std::string>();
  Json rows = listed.at("checkpoints");
  if (rows.empty()) return group + ": no checkpoint here; crane-ctl checkpoint now takes one\n";
  std::string damages;
  for (Json& row : rows) {
    const Json& damage = row.at("damage");
    row["state"] = row.at("verified").get<bool>() ? "verified" : "not verified";
    if (damage.is_null()) {
      row["when"] = time_text(row.at("time").get<std::int64_t>());
      row["size"] = control::size_text(row.at("bytes").get<std::uint64_t>());
    } else {
      row["state"] = "damaged";
      damages += "damaged: " + damage.get<std::string>() + "\n";
    }
  }
  return group + ":\n" + table(kColumns, rows) + damages;
}

std::string checkpoint_name(const std::string& given) {
  const std::size_t dot = given.find('.');
  std::uint64_t view = 0, index = 0;
  if (dot == std::string::npos || !read_number(given.substr(0, dot), view) ||
      !read_number(given.substr(dot + 1), index) || (view >> 56) != 0) {
    return "";
  }
  return checkpoint::name_of(Viewstamp{make_view(view, ReplicaId{0}), Index{index}});
}

Verdict verify_checkpoint(const Kept& kept, const std::string& log_digest, std::string& sentence) {
  const std::string& path = kept.listed.path;
  const Outcome verified = verify(fs::path(path).parent_path().string(), kept.listed.name);
  const std::string prefix =
      fmt::format("replica {}, checkpoint {}: ", kept.replica, kept.listed.name);
  const std::string& theirs = kept.listed.manifest.log_digest;
  if (verified && !log_digest.empty() && theirs != log_digest) {
    sentence =
        prefix +
        "correct, but it belongs to another group with another log: no replica of this group "
        "can begin at it; remove " +
        path;
    return Verdict::kForeign;
  }
  if (verified) {
    sentence = prefix + "correct, " + control::size_text(kept.listed.bytes()) + " read";
    return Verdict::kWell;
  }
  sentence = prefix + verified.error().message();
  if (verified.error().code == Code::kDenied || is_denied(path)) return Verdict::kDenied;
  // The node may remove an old checkpoint meanwhile; it keeps it locked until it is removed.
  const bool gone = ::access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  if (gone || verified.error().code == Code::kBusy) {
    sentence = prefix + "removed meanwhile";
    return Verdict::kRemoved;
  }
  return verified.error().code == Code::kDamaged ? Verdict::kDamaged : Verdict::kFailed;
}

}  // namespace crane::launcher
