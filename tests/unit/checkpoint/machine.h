// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine in a directory, whose files groups use.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "checkpoint/machine_files.h"
#include "tests/unit/checkpoint/image_harness.h"

namespace crane::test {

inline void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Replaces a file like dpkg.
inline void replace(const fs::path& path, const std::string& text) {
  write(path.native() + ".dpkg-new", text);
  fs::rename(path.native() + ".dpkg-new", path);
}

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Machine {
  Machine() {
    write(root + "/usr/bin/server", "one");
    write(root + "/usr/lib/a/library.so", "one");
    write(root + "/etc/server.conf", "one");
    write(root + "/opt/tool/tool", "one");
    fs::create_directories(root + "/var/lib");
    fs::create_symlink("usr/bin", root + "/bin");
    fs::create_symlink("/etc/alternatives/editor", root + "/usr/bin/editor");
    write(root + "/etc/alternatives/ignored", "");
    fs::create_symlink("/usr/bin/server", root + "/etc/alternatives/editor");
  }
  checkpoint::GroupFiles hold(const std::string& group, std::size_t generation = 0) const {
    const auto held = checkpoint::ensure_files(record(group), generation, root);
    REQUIRE(held.ok());
    return held.value();
  }
  std::string record(const std::string& group) const { return directory.path() + "/" + group; }
  static std::string seen(const checkpoint::GroupFiles& files, const std::string& path) {
    return text_of(checkpoint::located(files, path));
  }

  std::string store() const { return root + "/var/lib/crane/.files"; }
  // The names in the store.
  std::set<std::string> stored() const {
    std::set<std::string> found;
    for (const auto& one : fs::directory_iterator(store())) found.insert(one.path().filename());
    return found;
  }

  Scratch directory;
  std::string root = directory.path() + "/machine";
};

}  // namespace crane::test
