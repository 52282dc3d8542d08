// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/sizes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "runtime/control/progress.h"
#include "runtime/control/schema.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using checkpoint::Kept;

constexpr std::int64_t kHour = 3600;

Json number_or_null(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Json(*bytes) : Json(nullptr);
}

std::int64_t files_of(const Kept& kept) {
  for (const checkpoint::PackedFile& file : kept.listed.manifest.files) {
    if (file.part() == "upper") return static_cast<std::int64_t>(file.unpacked);
  }
  return 0;
}

// Bytes of the files of a running server, of one that has ended, and of one that recovers.
std::optional<std::uint64_t> files_on_disk(const std::string& replica) {
  std::uint64_t sum = 0;
  for (const char* part : {"/upper", "/left"}) {
    const auto bytes = bytes_on_disk(replica + part);
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

std::string cell_of(const Json& disk, const char* key) {
  return disk[key].is_number() ? control::size_text(disk[key].get<std::uint64_t>()) : "unknown";
}

std::string signed_text(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "+") + control::size_text(static_cast<std::uint64_t>(std::abs(bytes)));
}

}  // namespace

std::optional<std::uint64_t> bytes_on_disk(const std::string& path, std::uint64_t most) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  auto sum = static_cast<std::uint64_t>(info.st_blocks) * 512;
  std::error_code failed;
  std::uint64_t files = 0;
  for (auto it = fs::recursive_directory_iterator(path, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    if (++files > most) return std::nullopt;
    if (lstat(it->path().c_str(), &info) != 0) continue;  // removed meanwhile
    const auto names = S_ISDIR(info.st_mode) ? 1 : std::max<std::uint64_t>(info.st_nlink, 1);
    sum += static_cast<std::uint64_t>(info.st_blocks) * 512 / names;
  }
  // A file that the server removes meanwhile is no error.
  if (failed && failed != std::errc::no_such_file_or_directory) return std::nullopt;
  return sum;
}

std::optional<Growth> growth_of(const std::vector<Kept>& kept) {
  std::vector<const Kept*> usable;
  for (const Kept& one : kept) {
    if (one.listed.damage.empty()) usable.push_back(&one);
  }
  if (usable.empty()) return std::nullopt;
  const auto& log = usable.front()->listed.manifest.log_digest;  // the newest comes first
  std::erase_if(usable, [&](const Kept* one) { return one->listed.manifest.log_digest != log; });
  const auto& newest = usable.front()->listed.manifest;
  const auto& oldest = usable.back()->listed.manifest;
  const std::int64_t seconds = newest.time - oldest.time;
  if (seconds <= 0) return std::nullopt;
  Growth growth;
  growth.seconds = seconds;
  growth.files_bytes = (files_of(*usable.front()) - files_of(*usable.back())) * kHour / seconds;
  growth.log_bytes = static_cast<std::int64_t>(newest.cursor - oldest.cursor) * kHour / seconds;
  return growth;
}

void add_sizes(Json& summary, const std::string& home) {
  std::error_code unknown;
  if (const auto room = fs::space(home, unknown); !unknown) summary["free_bytes"] = room.available;
  const auto kept = checkpoint::find_kept(home).checkpoints;
  if (const auto growth = growth_of(kept)) {
    summary["growth"] = {{"over_seconds", growth->seconds},
                         {"files_bytes_per_hour", growth->files_bytes},
                         {"log_bytes_per_hour", growth->log_bytes}};
  }
  for (Json& row : summary["replicas"]) {
    const std::string number = std::to_string(control::replica_in(row));
    const std::string replica = home + "/r" + number;
    std::error_code ignored;
    if (!fs::is_directory(replica, ignored)) continue;  // it is on another host
    row["disk"] = {{"files_bytes", number_or_null(files_on_disk(replica))},
                   {"checkpoints_bytes", number_or_null(bytes_on_disk(replica + "/checkpoints"))},
                   {"store_bytes", number_or_null(bytes_on_disk(home + "/store/r" + number))}};
  }
}

std::string sizes_text(const Json& summary) {
  std::string text;
  for (const Json& row : control::list_in(summary, "replicas")) {
    const Json& disk = control::object_in(row, "disk");
    if (disk.empty()) continue;
    text += fmt::format("{}replica {}: files {}, checkpoints {}, store {}",
                        text.empty() ? "disk: " : "; ", control::replica_in(row),
                        cell_of(disk, "files_bytes"), cell_of(disk, "checkpoints_bytes"),
                        cell_of(disk, "store_bytes"));
  }
  if (!text.empty()) text += "\n";
  const auto room = summary.find("free_bytes");
  if (room != summary.end() && control::number_in(summary, "free_bytes") < kRoomLeast) {
    text += fmt::format(
        "room: only {} are free in the group's directory: a lost replica may not begin again\n",
        control::size_text(control::number_in(summary, "free_bytes")));
  }
  const Json& growth = control::object_in(summary, "growth");
  if (growth.empty()) return text;
  return text + fmt::format("growth: files {}, log {} an hour, by checkpoints of {} s\n",
                            signed_text(growth["files_bytes_per_hour"].get<std::int64_t>()),
                            signed_text(growth["log_bytes_per_hour"].get<std::int64_t>()),
                            growth["over_seconds"].get<std::int64_t>());
}

}  // namespace crane::launcher
