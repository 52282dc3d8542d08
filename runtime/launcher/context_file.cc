// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/context_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/setup/secret.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

constexpr char kDirectory[] = "/.contexts";
constexpr char kGroupFile[] = ".toml";
constexpr char kSecret[] = ".secret";

std::string path_of(const std::string& dir, const std::string& group, const char* kind) {
  return dir + kDirectory + "/" + group + kind;
}

Outcome not_written(const std::string& path, int why) {
  return setup::failure(setup::Status::kDirectory, "cannot write the group's context", path,
                        strerror(why), "crane-ctl --hosts still reaches the group");
}

}  // namespace

std::string context_path(const std::string& dir, const std::string& group) {
  return path_of(dir, group, kGroupFile);
}

bool has_context(const std::string& dir, const std::string& group) {
  return access(context_path(dir, group).c_str(), F_OK) == 0;
}

std::vector<std::string> contexts_in(const std::string& dir, bool& denied) {
  std::vector<std::string> groups;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(dir + kDirectory, failure)) {
    if (entry.path().extension() == kGroupFile) groups.push_back(entry.path().stem().string());
  }
  denied = denied || failure == std::errc::permission_denied;
  return groups;
}

Outcome write_context(const std::string& dir, setup::GroupFile file, const std::string& secret) {
  std::error_code failed;
  fs::create_directories(dir + kDirectory, failed);
  if (failed) return not_written(dir + kDirectory, failed.value());
  chmod((dir + kDirectory).c_str(), 0700);
  file.secret_file = path_of(dir, file.name, kSecret);
  unlink(file.secret_file.c_str());
  if (auto p = setup::write_secret(file.secret_file, secret); !p) return p;
  const std::string path = context_path(dir, file.name);
  std::ofstream out(path, std::ios::trunc);
  chmod(path.c_str(), 0600);
  out << setup::to_toml(file);
  return out.flush() ? Outcome(Done{}) : not_written(path, errno);
}

void remove_context(const std::string& dir, const std::string& group) {
  unlink(path_of(dir, group, kGroupFile).c_str());
  unlink(path_of(dir, group, kSecret).c_str());
  (void)rmdir((dir + kDirectory).c_str());  // fails if another group has a context
}

}  // namespace crane::launcher
