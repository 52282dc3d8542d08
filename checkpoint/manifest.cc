// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "checkpoint/json_members.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

using Json = nlohmann::json;

std::string hexadecimal(std::uint64_t v, int digits) { return fmt::format("{:0{}x}", v, digits); }

// The end of every manifest: the CRC of the text before it.
std::string seal_of(std::string_view body) {
  return ",\n \"crc32c\": \"" + hexadecimal(crc32c(body.data(), body.size()), 8) + "\"\n}\n";
}
const std::size_t kSealBytes = seal_of("").size();

bool take_files(const Json& array, std::vector<PackedFile>& files) {
  for (const Json& one : array) {
    if (!one.is_object()) return false;
    PackedFile file;
    JsonMembers m(one);
    std::uint64_t crc = 0;
    m.get("name", file.name);
    m.get("bytes", file.bytes);
    m.get("unpacked", file.unpacked);
    m.get_hexadecimal("crc32c", crc);
    file.crc = static_cast<std::uint32_t>(crc);
    if (!m.ok() || !is_pack_name(file.name) || crc > UINT32_MAX) return false;
    for (const PackedFile& other : files) {
      if (other.name == file.name) return false;
    }
    files.push_back(std::move(file));
  }
  return true;
}

bool take_all(const Json& json, Manifest& to) {
  JsonMembers m(json);
  std::uint64_t view = 0, index = 0;
  std::string tier;
  m.get("group", to.group);
  m.get("log", to.log_digest);
  m.get("view", view);
  m.get("index", index);
  m.get("cursor", to.cursor);
  m.get("replica", to.replica);
  m.get("time", to.time);
  m.get("layout_version", to.layout_version);
  m.get("libcrane", to.library_digest);
  m.get("kernel", to.kernel);
  m.get("criu", to.criu);
  m.get("program", to.program);
  m.get("tier", tier);
  m.get_hexadecimal("schedule_hash", to.schedule_hash);
  m.get("clock", to.clock);
  m.get("output", to.output_digest);
  const Json* node = m.object("node");
  const Json* files = m.array("files");
  if (!m.ok() || (tier != "criu" && tier != "restart")) return false;
  to.at = {View{view}, Index{index}};
  to.tier = tier == "criu" ? Tier::kCriu : Tier::kRestart;
  to.node_state = node->dump();
  return take_files(*files, to.files);
}

Error foreign(const std::string& name, const std::string& what, const std::string& theirs,
              const std::string& ours) {
  return failure(Code::kBadArgument, "compare a checkpoint",
                 "checkpoint " + name + " belongs to another " + what + " (" + theirs +
                     ", this is " + ours + "); name a checkpoint of this group");
}

Error other_version(const std::string& name, const std::string& what, const std::string& theirs,
                    const std::string& ours) {
  return failure(Code::kWrongVersion, "compare a checkpoint",
                 "checkpoint " + name + " was made with another " + what + " (" + theirs +
                     ", this is " + ours +
                     "); restore it with the version of Crane that made it, or start without it");
}

}  // namespace

bool is_pack_name(const std::string& name) {
  const std::string ending = kPackEnding;
  return name.size() > ending.size() && name.size() <= 100 && name[0] != '.' &&
         name.compare(name.size() - ending.size(), ending.size(), ending) == 0 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "._-") == std::string::npos;
}

const char* name_of(Tier tier) { return tier == Tier::kCriu ? "criu" : "restart"; }

std::string name_of(const Viewstamp& at) {
  return fmt::format("{:08}.{:012}", view_counter(at.view), value(at.index));
}

bool parse_name(const std::string& name, std::uint64_t& counter, std::uint64_t& index) {
  unsigned long long c = 0, i = 0;
  if (std::sscanf(name.c_str(), "%llu.%llu", &c, &i) != 2 || (c >> 56) != 0) return false;
  counter = c;
  index = i;
  return name == name_of(Viewstamp{make_view(c, ReplicaId{0}), Index{i}});
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const PackedFile& file : files) sum += file.bytes;
  return sum;
}

std::string to_text(const Manifest& m) {
  // In the order that suits a reader.
  nlohmann::ordered_json json = {{"crane_checkpoint", kManifestVersion},
                                 {"group", m.group},
                                 {"log", m.log_digest},
                                 {"view", value(m.at.view)},
                                 {"index", value(m.at.index)},
                                 {"cursor", m.cursor},
                                 {"replica", m.replica},
                                 {"time", m.time},
                                 {"tier", name_of(m.tier)},
                                 {"program", m.program},
                                 {"layout_version", m.layout_version},
                                 {"libcrane", m.library_digest},
                                 {"kernel", m.kernel},
                                 {"criu", m.criu},
                                 {"schedule_hash", hexadecimal(m.schedule_hash, 16)},
                                 {"clock", m.clock},
                                 {"output", m.output_digest}};
  auto node = nlohmann::ordered_json::parse(m.node_state, nullptr, false);
  CRANE_ASSERT(node.is_object());
  json["node"] = std::move(node);
  json["files"] = nlohmann::ordered_json::array();
  for (const PackedFile& f : m.files) {
    json["files"].push_back({{"name", f.name},
                             {"bytes", f.bytes},
                             {"crc32c", hexadecimal(f.crc, 8)},
                             {"unpacked", f.unpacked}});
  }
  // Text from the system that is not UTF-8 must not stop a checkpoint.
  std::string body = json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  body.resize(body.size() - 2);  // "\n}"
  return body + seal_of(body);
}

Result<Manifest> parse_manifest(const std::string& text, const std::string& path) {
  const auto damaged = [&](const std::string& how) {
    return failure(
        Code::kDamaged, "read a manifest",
        path + " is damaged (" + how + "); use another checkpoint, or another replica's");
  };
  if (text.size() < kSealBytes) return damaged("it is too short");
  const std::string_view body(text.data(), text.size() - kSealBytes);
  if (text.compare(body.size(), kSealBytes, seal_of(body)) != 0) {
    return damaged("its checksum differs");
  }
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return damaged("it is not JSON");
  int version = 0;
  JsonMembers head(json);
  head.get("crane_checkpoint", version);
  if (!head.ok()) return damaged("it has no version");
  if (version != kManifestVersion) {
    return other_version(path, "format", "version " + std::to_string(version),
                         std::to_string(kManifestVersion));
  }
  Manifest manifest;
  if (!take_all(json, manifest)) return damaged("a field is missing or invalid");
  return manifest;
}

std::string crc_of(const std::string& text) {
  CRANE_ASSERT(text.size() >= kSealBytes);
  return text.substr(text.size() - 12, 8);
}

std::string digest_of_log(std::string_view group, std::uint64_t log_id) {
  std::string text = "crane checkpoint log\n";
  text += group;
  text += '\n' + hexadecimal(log_id, 16);
  unsigned char digest[EVP_MAX_MD_SIZE];
  CRANE_ASSERT(EVP_Digest(text.data(), text.size(), digest, nullptr, EVP_sha256(), nullptr) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + 16, ""));
}

std::string digest_of_file(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::vector<char> piece(1 << 16);
  std::uint64_t crc = 0;
  for (;;) {
    const ssize_t n = read_all(fd.get(), piece.data(), piece.size());
    if (n < 0) return {};
    if (n == 0) return hexadecimal(crc, 16);
    crc = crc64(piece.data(), static_cast<std::size_t>(n), crc);
  }
}

Outcome compare(const Manifest& m, const Expected& e, const std::string& name) {
  if (!e.group.empty() && e.group != m.group) return foreign(name, "group", m.group, e.group);
  if (!e.log_digest.empty() && e.log_digest != m.log_digest) {
    return foreign(name, "log", m.log_digest, e.log_digest);
  }
  if (!e.program.empty() && e.program != m.program) {
    return foreign(name, "program", m.program, e.program);
  }
  const bool has_segment = m.tier == Tier::kCriu;
  if (has_segment && e.layout_version != 0 && e.layout_version != m.layout_version) {
    return other_version(name, "layout of the segment", std::to_string(m.layout_version),
                         std::to_string(e.layout_version));
  }
  return Done{};
}

}  // namespace crane::checkpoint
