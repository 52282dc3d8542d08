// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/log_copy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "dmt/base/clock.h"
#include "dmt/base/versions.h"
#include "runtime/launcher/known_group.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::Descriptor;
using setup::print_message;
using Json = nlohmann::json;

constexpr char kPrefix[] = "log-";  // proxy/host/operator_requests.cc
constexpr int kLookForMs = 20;
// Limit for a replica that copies nothing, and for a group without a leader.
constexpr std::int64_t kPatienceNs = 10'000'000'000;

consensus::LogPlace place_of(const checkpoint::Manifest& m) { return {m.at, m.cursor}; }

bool answers(const NodeAnswer& answer) { return answer.reply == Reply::kAnswer; }

// Removes copies that killed processes left.
void remove_dead(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    const Descriptor fd(open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

std::uint64_t committed_at_least(const std::map<int, NodeAnswer>& all) {
  std::uint64_t most = 0, newest = 0, led = 0;
  for (const auto& [replica, answer] : all) {
    if (!answers(answer)) continue;
    const std::uint64_t view = control::number_in(answer.status, "view");
    newest = std::max(newest, view);
    if (control::text_in(answer.status, "role") == "leader") led = std::max(led, view);
    most = std::max(most, control::number_in(answer.status, "commit"));
  }
  return led == newest ? most : 0;
}

std::vector<int> able_to_copy(const std::map<int, NodeAnswer>& all, int preferred) {
  std::vector<int> able;
  for (const char* role : {"follower", "leader"}) {
    for (const auto& [replica, answer] : all) {
      if (!answers(answer) || control::text_in(answer.status, "role") != role) continue;
      able.insert(replica == preferred && role[0] == 'f' ? able.begin() : able.end(), replica);
    }
  }
  return able;
}

LogCopy::~LogCopy() { remove(); }

void LogCopy::remove() {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
  fd_ = Descriptor();
}

int LogCopy::make_file(const std::string& home, int replica) {
  remove();
  const std::string directory = home + "/r" + std::to_string(replica);
  remove_dead(directory);
  const std::string path = directory + "/" + kPrefix + std::to_string(getpid());
  fd_ = Descriptor(open(path.c_str(), O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0600));
  if (!fd_) return print_error(checkpoint::file_error("create", path));
  path_ = path;
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return 0;
  return print_error(checkpoint::file_error("lock", path));
}

// Waits until the replica has copied the log.  Returns 0, or an exit status and the reason, `why`.
int LogCopy::ask(const Request& request, const Source& source, int replica, std::uint64_t through,
                 std::string& why, bool& gone) {
  const checkpoint::Manifest& m = source.listed.manifest;
  const Json what{{"do", "copy_log"},     {"view", value(m.at.view)}, {"index", value(m.at.index)},
                  {"position", m.cursor}, {"through", through},       {"file", getpid()}};
  const std::uint64_t begin = value(m.at.index);
  setup::ProgressLine line("copies the log", through - std::min(begin, through),
                           control::Unit::kEntries);
  std::uint64_t last = 0;
  for (std::int64_t moved_ns = monotonic_ns();; poll(nullptr, 0, kLookForMs)) {
    const RequestResult result = ask_replica(request, source.group, replica, what);
    why = result.message;
    gone = result.error == "gone";
    if (result.error == "full") return static_cast<int>(setup::Status::kDiskFull);
    if (result.status != 0 && !result.busy) return result.status;
    if (result.status == 0 && control::flag_in(result.answer, "done")) return 0;
    const std::uint64_t now = control::number_in(result.answer, "last");
    if (now > last) moved_ns = monotonic_ns();
    last = std::max(last, now);
    line.set(std::max(last, begin) - begin, through - std::min(begin, through));
    if (monotonic_ns() < moved_ns + kPatienceNs) continue;
    if (result.status == 0) {
      why = "no answer: " + source.group + ": replica " + std::to_string(replica) +
            " does not reach log index " + std::to_string(through) +
            ", which is committed; see its node.log";
    }
    return result.status != 0 ? result.status : static_cast<int>(Health::kDegraded);
  }
}

Outcome LogCopy::check(const Source& source, const std::string& log_id) {
  auto read = consensus::check_log_tail(path_);
  if (!read) {
    return failure(Code::kDamaged, "copy the log",
                   path_ + ": the copy of the log: " + read.error().message() + "; try again");
  }
  tail_ = read.value();
  if (tail_.log_id == number_of_log(log_id) && tail_.begin == place_of(source.listed.manifest)) {
    return Done{};
  }
  return failure(Code::kDamaged, "copy the log",
                 source.listed.path + " is a checkpoint of a log that is not the group's");
}

int LogCopy::take(const Request& request, const Source& source, const std::string& log_id,
                  bool& gone) {
  gone = false;
  const std::string home = request.home_of(source.group);
  std::map<int, NodeAnswer> all;
  std::uint64_t through = 0;
  const std::int64_t begun_ns = monotonic_ns();
  for (; through == 0; poll(nullptr, 0, kLookForMs)) {
    all = ask_all(request, source.group);
    through = committed_at_least(all);
    if (through != 0 || monotonic_ns() < begun_ns + kPatienceNs) continue;
    print_message("no leader: " + source.group +
                  ": no replica leads now, so none knows where its log ends; see crane-ctl status");
    return static_cast<int>(Health::kNoLeader);
  }
  std::string why;
  int status = static_cast<int>(Health::kDegraded);
  for (const int replica : able_to_copy(all, source.listed.manifest.replica)) {
    if (const int bad = make_file(home, replica); bad != 0) return bad;
    status = ask(request, source, replica, through, why, gone);
    if (gone) return status;
    if (status != 0) continue;
    const auto checked = check(source, log_id);
    return checked ? 0 : print_error(checked.error());
  }
  print_message(why);
  return status;
}

// --- restore ------------------------------------------------------------------------------------

Outcome check_tail(const std::string& path, const std::string& file, const About& about,
                   const checkpoint::Manifest& m, const std::string& log_id) {
  const auto bad = [&file](const std::string& how) {
    return failure(Code::kDamaged, "read an archive",
                   file + " is damaged (the log in it: " + how + "); use another copy of it");
  };
  const auto read = consensus::check_log_tail(path);
  if (!read) return bad(read.error().message());
  const consensus::LogTail& tail = read.value();
  if (tail.log_id != number_of_log(log_id)) return bad("it belongs to another group");
  if (tail.begin != place_of(m)) return bad("it does not begin right after the checkpoint");
  if (value(tail.end.at.index) != about.last) {
    return bad("it ends at log index " + std::to_string(value(tail.end.at.index)) + ", not " +
               std::to_string(about.last));
  }
  return Done{};
}

Outcome check_versions(const About& about, const std::string& file) {
  for (const AgreedVersion& ours : kAgreedVersions) {
    if (std::string(ours.name) == "checkpoint") continue;  // the checkpoint has its own version
    const auto theirs = about.versions.find(ours.name);
    const std::uint32_t number = theirs == about.versions.end() ? 0 : theirs->second;
    if (number == ours.number) continue;
    return failure(Code::kWrongVersion, "restore",
                   file + " contains a log with " + ours.name + " version " +
                       std::to_string(number) + " (" + about.crane + "), but this Crane has " +
                       std::to_string(ours.number) +
                       " and cannot replay it; restore the group with that version of Crane, or "
                       "only its server's files: crane-ctl restore --tier restart");
  }
  return Done{};
}

}  // namespace crane::launcher
