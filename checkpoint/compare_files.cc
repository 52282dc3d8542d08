// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/machine_files.h"

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;

// Trees of links share an unchanged file; an unchanged copy has the same size and time.
bool is_same(const struct stat& a, const struct stat& b) {
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return true;
  if ((a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) return false;
  const bool same_time =
      a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
  return S_ISDIR(a.st_mode) || (a.st_size == b.st_size && same_time);
}

void add(std::vector<std::string>& names, const std::string& name, std::size_t most,
         std::size_t& all) {
  ++all;
  if (names.size() < most) names.push_back(name);
}

// Compares the names below `from` with `to`.  `alone` gets those that `to` lacks; `both`, if not
// null, gets those that are different files in `to`.
void compare(const std::string& from, const std::string& to, std::size_t most,
             std::vector<std::string>* both, std::vector<std::string>& alone, std::size_t& all) {
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(from, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    const std::string name = it->path().native().substr(from.size());
    struct stat ours {
    }, theirs{};
    if (lstat(it->path().c_str(), &ours) != 0) continue;
    if (lstat((to + name).c_str(), &theirs) != 0) {
      add(alone, name, most, all);
      if (S_ISDIR(ours.st_mode)) it.disable_recursion_pending();
    } else if (both != nullptr && !is_same(ours, theirs)) {
      add(*both, name, most, all);
    }
  }
}

}  // namespace

ChangedFiles compare_files(const GroupFiles& before, const GroupFiles& after, std::size_t most) {
  ChangedFiles found;
  for (std::size_t i = 0; i < before.layers.size() && i < after.layers.size(); ++i) {
    if (before.layers[i] == after.layers[i]) continue;
    compare(before.layers[i], after.layers[i], most, &found.changed, found.removed, found.all);
    compare(after.layers[i], before.layers[i], most, nullptr, found.added, found.all);
  }
  return found;
}

}  // namespace crane::checkpoint
