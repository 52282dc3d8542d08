// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint's description: manifest.json, one JSON object whose last member is the CRC32C of all
// text before it.
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

// How a server recovers: kCriu restores its processes, kRestart starts it on its files.
enum class Tier { kCriu, kRestart };
const char* name_of(Tier tier);

struct Manifest {
  std::string group;
  std::string log_digest;    // digest_of_log(): the log's id is secret
  Viewstamp at;              // the CHECKPOINT entry
  std::uint64_t cursor = 0;  // consensus' position after that entry
  int replica = 0;           // the replica that made it
  std::int64_t time = 0;     // when it was made, in seconds since 1970
  std::uint32_t layout_version = 0;
  std::string library_digest;  // of libcrane.so, if there is one; set by publish()
  std::string kernel;          // uname -r
  std::string criu;            // CRIU's version
  std::string program;         // the server's program
  Tier tier = Tier::kCriu;
  std::uint64_t schedule_hash = 0;
  std::uint64_t clock = 0;  // the logical clock
  std::string output_digest;
  std::string node_state = "{}";  // a JSON object of the node
  std::vector<PackedFile> files;  // set by publish()
  std::uint64_t bytes() const;    // of all files
};

// The viewstamp as the name of a checkpoint: "<view's counter>.<index>" with leading zeros.
std::string name_of(const Viewstamp& at);
// Parses such a name.  False: it is no checkpoint's name.
bool parse_name(const std::string& name, std::uint64_t& counter, std::uint64_t& index);

// Whether a pack may have this name: names from a manifest become paths.
bool is_pack_name(const std::string& name);

std::string to_text(const Manifest& manifest);
// kDamaged, kWrongVersion (another format); `path` is for the sentence.
Result<Manifest> parse_manifest(const std::string& text, const std::string& path);
// The CRC in the text of a manifest that parse_manifest() accepted.
std::string crc_of(const std::string& text);

// A one-way digest, so that a manifest can be shown.  `log_id` is the group's.
std::string digest_of_log(std::string_view group, std::uint64_t log_id);
// A digest of a file's content; empty when it cannot be read.
std::string digest_of_file(const std::string& path);

// The reader's properties.  Empty or 0: any.
struct Expected {
  std::string group;
  std::string log_digest;
  std::uint32_t layout_version = 0;
  std::string program;
  friend bool operator==(const Expected&, const Expected&) = default;
};
// Whether a checkpoint fits the reader. kBadArgument: it is foreign (another group, log or
// program). kWrongVersion: the segment of a running server has another layout.  Each error contains
// the remedy. versions.h and the node's state contain what else must be equal between builds.
Outcome compare(const Manifest& manifest, const Expected& expected, const std::string& name);

}  // namespace crane::checkpoint
