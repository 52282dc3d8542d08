// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a checkpoint says of itself: manifest.json, one JSON object whose last member is the CRC32C
// of all text before it.
//
// Threads: plain values, pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/pack.h"
#include "dmt/base/ids.h"
#include "dmt/base/versions.h"

namespace crane::checkpoint {

inline constexpr int kManifestVersion = versions::kCheckpoint;
inline constexpr char kManifestName[] = "manifest.json";
inline constexpr std::size_t kManifestMax = 16U << 20;

// How a server recovers: its processes as they were, or a start on its files.
enum class Tier { kCriu, kRestart };
const char* name_of(Tier tier);

struct Manifest {
  std::string group;
  std::string log_digest;    // digest_of_log(): the log's id itself is secret
  Viewstamp at;              // the CHECKPOINT entry
  std::uint64_t cursor = 0;  // consensus' position behind that entry
  int replica = 0;           // that made it
  std::int64_t time = 0;     // when, seconds since 1970
  std::uint32_t layout_version = 0;
  std::string library_digest;  // of libcrane.so; publish() fills it in when it is part of it
  std::string kernel;          // uname -r
  std::string criu;            // its version
  std::string program;         // the server's
  Tier tier = Tier::kCriu;
  std::uint64_t schedule_hash = 0;
  std::uint64_t clock = 0;  // logical
  std::string output_digest;
  std::string node_state = "{}";  // a JSON object that only the node understands
  std::vector<PackedFile> files;  // publish() fills it in
};

// The viewstamp as the name of a checkpoint: "<view's counter>.<index>" with leading zeros.
std::string name_of(const Viewstamp& at);
// Of such a name: counter and index.  False: it is none.
bool parse_name(const std::string& name, std::uint64_t& counter, std::uint64_t& index);

// Whether a pack may have this name: names from a manifest become paths.
bool is_pack_name(const std::string& name);

std::string to_text(const Manifest& manifest);
// kDamaged, kWrongVersion (of the format); `path` is for the sentence.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);
// The CRC that stands in a manifest's text, which parse_manifest() accepted.
std::string crc_of(const std::string& text);

// One-way, so that a manifest can be shown.  `log_id` is the group's.
std::string digest_of_log(std::string_view group, std::uint64_t log_id);
// Of a file's content; empty when it cannot be read.
std::string digest_of_file(const std::string& path);

// What the reader is.  Empty or 0: any.
struct Expected {
  std::string group;
  std::string log_digest;
  std::uint32_t layout_version = 0;
  std::string program;
  friend bool operator==(const Expected&, const Expected&) = default;
};
// Whether a checkpoint is one of ours: kBadArgument foreign (another group, log or program),
// kWrongVersion (the segment of a running server has another layout), each with what to do.  What
// else builds must have equal stands in versions.h and in the node's state.
Outcome compare(const Manifest& manifest, const Expected& expected, const std::string& name);

}  // namespace crane::checkpoint
