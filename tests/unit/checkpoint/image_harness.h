// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trees with everything that a file can have, and checkpoints made from them.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/fault_points.h"
#include "checkpoint/image.h"
#include "dmt/base/crc.h"
#include "tests/unit/waiting.h"

namespace crane::test {

using checkpoint::ByteSource;
using checkpoint::Checkpoints;
using checkpoint::copy_tree;
using checkpoint::decode;
using checkpoint::Descriptor;
using checkpoint::die_at;
using checkpoint::digest_of_file;
using checkpoint::digest_of_log;
using checkpoint::Expected;
using checkpoint::Extractor;
using checkpoint::fault_hook;
using checkpoint::Incoming;
using checkpoint::kFaultPoints;
using checkpoint::Leftovers;
using checkpoint::Listed;
using checkpoint::Manifest;
using checkpoint::name_of;
using checkpoint::NullSink;
using checkpoint::pack;
using checkpoint::PackedFile;
using checkpoint::parse_manifest;
using checkpoint::read_pack;
using checkpoint::Staging;
using checkpoint::Tier;
using checkpoint::to_text;
namespace fs = std::filesystem;

// The sentence of an error; empty on success.
template <typename T>
std::string reason(const Result<T>& result) {
  return result.ok() ? "" : result.error().message();
}
// Whether it is the error `code` with `text` in its sentence.
template <typename T>
bool fails(const Result<T>& result, Code code, const std::string& text) {
  return !result && result.error().code == code && reason(result).find(text) != std::string::npos;
}

class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/crane-image-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void spill(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// The extents of a file with data, from the file system, and their content.
inline std::string content_of(const std::string& path) {
  std::string found, bytes;
  const Descriptor fd(::open(path.c_str(), O_RDONLY));
  struct stat s {};
  ::fstat(fd.get(), &s);
  for (off_t at = 0; at < s.st_size;) {
    const off_t data = ::lseek(fd.get(), at, SEEK_DATA);
    if (data < 0) break;
    at = ::lseek(fd.get(), data, SEEK_HOLE);
    bytes.resize(static_cast<std::size_t>(at - data));
    REQUIRE(::pread(fd.get(), bytes.data(), bytes.size(), data) == at - data);
    found += std::to_string(data) + "+" + std::to_string(at - data) + "=" +
             std::to_string(std::hash<std::string>{}(bytes)) + " ";
  }
  return found;
}

// Everything that must be preserved of a file, as text.
inline std::string describe(const std::string& path) {
  struct stat s {};
  REQUIRE(::lstat(path.c_str(), &s) == 0);
  std::ostringstream out;
  out << std::oct << s.st_mode << std::dec << " " << s.st_uid << ":" << s.st_gid << " "
      << s.st_mtim.tv_sec << "." << s.st_mtim.tv_nsec;
  if (!S_ISDIR(s.st_mode)) out << " links " << s.st_nlink << " size " << s.st_size;
  if (S_ISCHR(s.st_mode) || S_ISBLK(s.st_mode)) out << " device " << s.st_rdev;
  if (S_ISLNK(s.st_mode)) out << " -> " << fs::read_symlink(path).string();
  if (S_ISREG(s.st_mode)) {
    out << " content " << content_of(path);
  }
  char names[4096];
  const ssize_t n = ::llistxattr(path.c_str(), names, sizeof names);
  std::map<std::string, std::string> attributes;
  for (ssize_t i = 0; i < n;) {
    const std::string name = names + i;
    char value[70000];
    const ssize_t size = ::lgetxattr(path.c_str(), name.c_str(), value, sizeof value);
    REQUIRE(size >= 0);
    attributes[name] = std::string(value, static_cast<std::size_t>(size));
    i += static_cast<ssize_t>(name.size()) + 1;
  }
  for (const auto& [name, value] : attributes) {
    out << " " << name << "=" << std::hash<std::string>{}(value) << "/" << value.size();
  }
  return out.str();
}

// Every file below `root`: relative name -> description, which includes the names of the same
// inode.
inline std::map<std::string, std::string> snapshot(const std::string& root) {
  std::map<std::string, std::string> all;
  std::map<ino_t, std::string> first;
  const auto add = [&](const fs::path& path) {
    const std::string name = path.lexically_relative(root).string();
    struct stat s {};
    REQUIRE(::lstat(path.c_str(), &s) == 0);
    all[name] = describe(path.string());
  };
  all["."] = describe(root);
  if (!fs::is_directory(root)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) add(entry.path());
  for (const auto& [name, text] : all) {
    struct stat s {};
    if (::lstat((root + "/" + name).c_str(), &s) != 0 || S_ISDIR(s.st_mode)) continue;
    const auto [where, fresh] = first.try_emplace(s.st_ino, name);
    if (!fresh) all[name] += " same as " + where->second;
  }
  return all;
}

inline void set_time(const std::string& path, std::mt19937_64& random) {
  const timespec times[2] = {
      {0, UTIME_OMIT},
      {static_cast<time_t>(random() % 2'000'000'000), static_cast<long>(random() % 1'000'000'000)}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0);
}

inline void set_attribute(const std::string& path, const char* name, const std::string& value) {
  INFO(path << " " << name);
  REQUIRE(::lsetxattr(path.c_str(), name, value.data(), value.size(), 0) == 0);
}

// A POSIX ACL in the kernel's format: rw- for the owner, r-- for user 1000, the rest as given.
inline std::string acl() {
  const std::uint16_t entries[][2] = {{0x01, 6}, {0x02, 4}, {0x04, 5}, {0x10, 5}, {0x20, 4}};
  std::string text("\2\0\0\0", 4);
  for (const auto& [tag, bits] : entries) {
    const std::uint16_t both[] = {tag, bits};
    const std::uint32_t id = tag == 0x02 ? 1000 : ~0U;
    text.append(reinterpret_cast<const char*>(both), sizeof both);
    text.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  return text;
}

// A file of `size` bytes with `pieces` scattered pages of data.
inline void make_sparse(const std::string& path, std::uint64_t size, int pieces,
                        std::mt19937_64& random) {
  const Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(size)) == 0);
  for (int i = 0; i < pieces; ++i) {
    const std::string page = random_bytes(random, 4096 * (1 + random() % 3));
    const auto at = static_cast<off_t>(random() % (size / 4096 - 3) * 4096);
    REQUIRE(::pwrite(fd.get(), page.data(), page.size(), at) == static_cast<ssize_t>(page.size()));
  }
}

inline void make_device(const std::string& path, mode_t mode, dev_t device) {
  REQUIRE(::mknod(path.c_str(), mode, device) == 0);
}

// An overlay's upper directory with all special cases.
inline void make_hostile_tree(const std::string& root, std::mt19937_64& random) {
  fs::create_directories(root + "/var/lib/deep/er");
  fs::create_directories(root + "/var/opaque");
  fs::create_directories(root + "/empty");
  spill(root + "/plain", "text\n");
  spill(root + "/none", "");
  spill(root + "/var/lib/large", random_bytes(random, 700'000));
  spill(root + "/name with\n newline \xff\xfe and bytes", "x");
  spill(root + "/var/" + std::string(255, 'n'), "a long name");
  spill(root + "/setuid", "program");
  spill(root + "/locked", "nobody may");
  make_sparse(root + "/var/lib/sparse", 3 << 20, 5, random);
  make_sparse(root + "/var/lib/holes", 1 << 20, 0, random);
  fs::create_hard_link(root + "/plain", root + "/var/lib/plain again");
  fs::create_hard_link(root + "/plain", root + "/zz");
  fs::create_symlink("../" + std::string(1000, 'x') + "/nowhere", root + "/var/dangling");
  fs::create_symlink("/etc/passwd", root + "/absolute");
  make_device(root + "/whiteout", S_IFCHR, 0);
  fs::create_hard_link(root + "/whiteout", root + "/var/whiteout again");
  make_device(root + "/null", S_IFCHR | 0666, makedev(1, 3));
  make_device(root + "/fifo", S_IFIFO | 0640, 0);
  make_device(root + "/socket", S_IFSOCK | 0755, 0);
  REQUIRE(::chown((root + "/setuid").c_str(), 33, 34) == 0);
  REQUIRE(::chmod((root + "/setuid").c_str(), 06755) == 0);
  REQUIRE(::chmod((root + "/locked").c_str(), 0) == 0);
  REQUIRE(::lchown((root + "/absolute").c_str(), 7, 8) == 0);
  REQUIRE(::chown((root + "/socket").c_str(), 65534, 4'000'000'000U) == 0);
  set_attribute(root + "/var/opaque", "trusted.overlay.opaque", "y");
  set_attribute(root + "/var/lib", "trusted.overlay.origin", random_bytes(random, 29));
  set_attribute(root + "/whiteout", "trusted.overlay.nothing", "");
  set_attribute(root + "/absolute", "trusted.link", "of the link itself");
  set_attribute(root + "/plain", "user.colour", "blue");
  set_attribute(root + "/plain", "user.large", random_bytes(random, 2000));
  set_attribute(root + "/var/lib/large", "system.posix_acl_access", acl());
  set_attribute(root + "/var/lib/deep", "system.posix_acl_default", acl());
  // cap_net_bind_service, revision 2
  const std::string capability("\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  set_attribute(root + "/setuid", "security.capability", capability);
  spill(root + "/var/lib/deep/er/leaf", "below a default ACL");
  REQUIRE(::chmod((root + "/empty").c_str(), 01777) == 0);
  REQUIRE(::chmod((root + "/var/opaque").c_str(), 0) == 0);
  REQUIRE(::chmod(root.c_str(), 0751) == 0);
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) all.push_back(entry.path());
  for (const std::string& path : all) set_time(path, random);
  set_time(root, random);
}

inline Manifest manifest_at(std::uint64_t counter, std::uint64_t index) {
  Manifest m;
  m.group = "web";
  m.log_digest = digest_of_log("web", 4711);
  m.at = {make_view(counter, ReplicaId{2}), Index{index}};
  m.cursor = 123'456'789'012;
  m.replica = 1;
  m.layout_version = 9;
  m.kernel = "6.1.0";
  m.criu = "4.1.1";
  m.program = "/usr/sbin/apache2";
  m.schedule_hash = 0xfedcba9876543210;
  m.clock = 1ULL << 63;
  m.output_digest = "00ff";
  m.node_state = R"({"connections":[1,2,{"id":18446744073709551615}],"text":"ü\n"})";
  return m;
}

inline const Expected kOurs{"web", digest_of_log("web", 4711), 9, "/usr/sbin/apache2"};

// Makes small parts quickly; `salt` makes them differ.
inline void fill(const Staging& staging, std::mt19937_64& random) {
  spill(staging.images() + "/core-1.img", random_bytes(random, 3000));
  spill(staging.images() + "/dump.log", std::string(5000, 'l'));
  fs::create_directories(staging.upper() + "/var");
  spill(staging.upper() + "/var/data", random_bytes(random, 100 + random() % 5000));
  make_sparse(staging.segment(), 1 << 20, 3, random);
  spill(staging.library(),
        "\x7f"
        "ELF the library");
}

inline Checkpoints checkpoints_in(const std::string& scratch) {
  return Checkpoints({scratch + "/checkpoints", 1, {}});
}

// Publishes one checkpoint; returns its name.
inline std::string publish_one(Checkpoints& all, std::uint64_t counter, std::uint64_t index,
                               std::mt19937_64& random) {
  auto staging = all.begin(Index{index});
  INFO(reason(staging));
  REQUIRE(staging.ok());
  fill(staging.value(), random);
  const auto name = all.publish(staging.value(), manifest_at(counter, index));
  INFO(reason(name));
  REQUIRE(name.ok());
  return name.value();
}

// The names in a directory.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  if (!fs::exists(path)) return names;
  for (const auto& entry : fs::directory_iterator(path)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace crane::test
