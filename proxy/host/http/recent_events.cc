// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/recent_events.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "checkpoint/descriptor.h"
#include "checkpoint/kept.h"
#include "runtime/control/journal.h"

namespace crane::node {

const std::vector<nlohmann::json>& RecentEvents::events_in(const std::string& path) {
  File& file = files_[path];
  struct stat found {};
  const checkpoint::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fstat(fd.get(), &found) != 0) return (file = {}).events;
  if (found.st_ino == file.inode && found.st_size == file.size) return file.events;
  file = {found.st_ino, found.st_size, {}};
  std::string text(std::min<std::size_t>(kTailBytes, static_cast<std::size_t>(found.st_size)), 0);
  const ssize_t n =
      ::pread(fd.get(), text.data(), text.size(), found.st_size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  control::add_events(text, file.events);
  return file.events;
}

nlohmann::json RecentEvents::look(const std::string& group_directory) {
  std::vector<nlohmann::json> all;
  bool denied = false;
  for (const auto& [replica, directory] :
       checkpoint::replica_directories(group_directory, denied)) {
    for (const char* name : {"/events.jsonl.1", "/events.jsonl"}) {
      const auto& events = events_in(directory + name);
      all.insert(all.end(), events.begin(), events.end());
    }
  }
  return control::last_of(control::by_time(std::move(all)), kCount);
}

}  // namespace crane::node
