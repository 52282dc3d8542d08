// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/run_directories.h"

#include <pwd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace crane::setup {
namespace {

namespace fs = std::filesystem;

using Lines = std::vector<std::string>;
using Words = std::vector<std::string>;

Lines lines_of(const std::string& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

bool begins_with(const std::string& text, const char* head) { return text.rfind(head, 0) == 0; }
bool ends_with(const std::string& text, const std::string& tail) {
  return text.size() >= tail.size() &&
         text.compare(text.size() - tail.size(), tail.size(), tail) == 0;
}

// The files of the package of `program`.  The package's list may name it with or without /usr.
Lines package_of(const std::string& program, const std::string& root) {
  const std::string other = begins_with(program, "/usr/") ? program.substr(4) : "/usr" + program;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root + "/var/lib/dpkg/info", failed)) {
    if (entry.path().extension() != ".list") continue;
    Lines files = lines_of(entry.path().native());
    if (std::find(files.begin(), files.end(), program) != files.end() ||
        std::find(files.begin(), files.end(), other) != files.end()) {
      return files;
    }
  }
  return {};
}

// Adds "USER:/run/..", unless the path is elsewhere or contains a specifier.
void add(std::string path, const std::string& user, std::vector<std::string>& out) {
  if (begins_with(path, "/var/run/")) path.erase(0, 4);
  if (!begins_with(path, "/run/") || path.find('%') != std::string::npos) return;
  const bool owned = !user.empty() && user != "root" && getpwnam(user.c_str()) != nullptr;
  const std::string directory = owned ? user + ":" + path : path;
  if (std::find(out.begin(), out.end(), directory) == out.end()) out.push_back(directory);
}

void read_tmpfiles(const std::string& path, std::vector<std::string>& out) {
  for (const std::string& line : lines_of(path)) {
    const Words words = words_of(line);
    if (words.size() < 2 || std::string("dDvqQ").find(words[0][0]) == std::string::npos) continue;
    add(words[1], words.size() > 3 ? words[3] : "", out);
  }
}

void read_unit(const std::string& path, std::vector<std::string>& out) {
  const Lines lines = lines_of(path);
  std::string user;
  for (const std::string& line : lines) {
    if (begins_with(line, "User=")) user = line.substr(5);
  }
  constexpr const char *kRuntime = "RuntimeDirectory=", *kBefore = "ExecStartPre=";
  for (const std::string& line : lines) {
    if (begins_with(line, kRuntime)) {
      for (const std::string& name : words_of(line.substr(std::string(kRuntime).size()))) {
        add("/run/" + name, user, out);
      }
    } else if (begins_with(line, kBefore) && line.find("mkdir") != std::string::npos) {
      for (const std::string& word : words_of(line)) add(word, "", out);
    }
  }
}

}  // namespace

std::vector<std::string> run_directories_of(const std::string& program, const std::string& root) {
  std::vector<std::string> directories;
  if (program.empty() || program[0] != '/') return directories;
  std::error_code unresolved;
  const fs::path real = root.empty() ? fs::canonical(program, unresolved) : fs::path(program);
  if (unresolved) return directories;
  for (const std::string& file : package_of(real.native(), root)) {
    if (begins_with(file, "/usr/lib/tmpfiles.d/") && ends_with(file, ".conf")) {
      read_tmpfiles(root + file, directories);
    } else if (file.find("/systemd/system/") != std::string::npos && ends_with(file, ".service")) {
      read_unit(root + file, directories);
    }
  }
  return directories;
}

}  // namespace crane::setup
