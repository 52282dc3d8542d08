// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/run/unsaved.h"
#include "dmt/base/join.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFleeting[] = {"/run",     "/tmp",       "/dev",
                                     "/var/run", "/var/lock",  "/var/tmp",
                                     "/var/log", "/var/cache", "/etc/ld.so.preload"};
constexpr std::size_t kPlacesMost = 3;  // directories named at the end

std::string size_of(std::uint64_t bytes) {
  if (bytes < 10'000) return std::to_string(bytes) + " bytes";
  if (bytes < 10'000'000) return std::to_string(bytes / 1000) + " KB";
  return std::to_string(bytes / 1'000'000) + " MB";
}

std::string files_of(std::uint64_t files) {
  return std::to_string(files) + (files == 1 ? " file" : " files");
}

}  // namespace

// With durability disk the log restores all files.
Unsaved::Unsaved(const Options& options)
    : wanted_(options.container && !options.on_disk()),
      kept_(std::begin(kFleeting), std::end(kFleeting)) {
  kept_.insert(kept_.end(), options.data.begin(), options.data.end());
}

Unsaved::~Unsaved() {
  if (fd_ >= 0) close(fd_);
}

bool Unsaved::lasts(const std::string& path) const {
  return std::any_of(kept_.begin(), kept_.end(), [&](const std::string& kept) {
    return path == kept || path.rfind(kept + "/", 0) == 0;
  });
}

Unsaved::Written Unsaved::look_through(const std::string& upper, int watch) const {
  Written written;
  constexpr std::uint32_t kNews = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR;
  const bool only_first = watch >= 0;
  if (only_first) inotify_add_watch(watch, upper.c_str(), kNews);
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(upper, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    const std::string path = it->path().native().substr(upper.size());
    struct stat info {};
    if (lstat(it->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      if (lasts(path)) {
        it.disable_recursion_pending();
      } else if (only_first) {
        inotify_add_watch(watch, it->path().c_str(), kNews);
      }
      continue;
    }
    if (!S_ISREG(info.st_mode) || lasts(path)) continue;
    if (written.first.empty()) written.first = path;
    if (only_first) break;
    ++written.files;
    written.bytes += static_cast<std::uint64_t>(info.st_size);
    ++written.places[fs::path(path).parent_path().string()];
  }
  return written;
}

void Unsaved::begin(const std::string& upper) {
  if (!wanted_ || !upper_.empty()) return;
  fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd_ < 0) return;  // end() still reports
  upper_ = upper;
  look();
}

void Unsaved::look() {
  if (fd_ < 0) return;
  char events[4096];
  while (read(fd_, events, sizeof events) > 0) {
  }
  const Written written = look_through(upper_, fd_);
  if (written.first.empty()) return;
  close(fd_);
  fd_ = -1;
  print_message("the server writes to " + written.first +
                ", which is gone when the group ends; to keep it: --data " +
                fs::path(written.first).parent_path().string());
}

// Reports the replica that wrote the most: the others may have died earlier.
void Unsaved::end(const std::string& dir, int places) const {
  if (!wanted_) return;
  Written written;
  for (int i = 0; i < places; ++i) {
    for (const char* name : {"/left", "/upper"}) {
      Written one = look_through(dir + "/r" + std::to_string(i) + name, -1);
      if (one.bytes > written.bytes || written.files == 0) written = std::move(one);
    }
  }
  if (written.files == 0) return;
  std::vector<std::pair<std::uint64_t, std::string>> ranked;
  for (const auto& [place, files] : written.places) ranked.emplace_back(files, place);
  std::stable_sort(ranked.rbegin(), ranked.rend());
  const std::span most = std::span(ranked).first(std::min(ranked.size(), kPlacesMost));
  std::string named = joined(most, [](const auto& place) { return place.second; });
  if (ranked.size() > kPlacesMost) named += ", ...";
  print_message("gone with the group: " + files_of(written.files) + ", " + size_of(written.bytes) +
                ", that the server wrote in " + named + "; --data DIR keeps a directory");
}

}  // namespace crane::launcher
