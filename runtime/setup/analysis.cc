// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/analysis.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace crane::setup {
namespace {

constexpr const char* kLibraries[] = {"/usr/libexec/valgrind", "/usr/lib/valgrind",
                                      "/usr/lib/x86_64-linux-gnu/valgrind"};
constexpr const char* kLaunchers[] = {"/usr/bin/valgrind.bin", "/usr/bin/valgrind"};

}  // namespace

bool find_valgrind(const std::string& tool, Valgrind& found) {
  for (const char* launcher : kLaunchers) {
    if (found.launcher.empty() && access(launcher, X_OK) == 0) found.launcher = launcher;
  }
  for (const char* library : kLibraries) {
    const std::string path = std::string(library) + "/" + tool + "-amd64-linux";
    if (!found.tool.empty() || access(path.c_str(), X_OK) != 0) continue;
    found.library = library;
    found.tool = path;
  }
  return !found.launcher.empty() && !found.tool.empty();
}

Outcome make_analysis_directory(const std::string& path) {
  const auto refused = [&](const std::string& cause) {
    return failure(Status::kDirectory, "cannot store an analysis in", path, cause,
                   "name another directory with --analysis-dir");
  };
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  if (failure) return refused(failure.message());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return refused(strerror(errno));
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return refused(strerror(errno));
  if (!S_ISDIR(there.st_mode)) return refused("it is not a directory");
  if (there.st_uid != geteuid()) return refused("it belongs to another user");
  if ((there.st_mode & 077) != 0) return refused("other users can access it (chmod 700)");
  return Done{};
}

}  // namespace crane::setup
