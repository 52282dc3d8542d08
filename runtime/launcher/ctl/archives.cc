// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/archives.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "checkpoint/base.h"
#include "checkpoint/container_supervisor.h"
#include "checkpoint/descriptor.h"
#include "checkpoint/kept.h"
#include "dmt/base/clock.h"
#include "runtime/launcher/ctl/starter.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/take_over.h"
#include "runtime/launcher/version.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoints;
using checkpoint::Descriptor;
using checkpoint::file_error;
using setup::print_message;
using setup::Status;
using Json = nlohmann::json;

constexpr int kVersion = 1, kVersionWithLog = 2;

bool is_directory_name(const std::string& path) {
  return path.size() > 1 && path[0] == '/' && path.back() != '/' &&
         fs::path(path).lexically_normal().string() == path &&
         path.find("/..") == std::string::npos && path.find('\0') == std::string::npos;
}

// The fields of each header, in the order of its text.
template <typename Header, typename Each>
void for_each_field(Header& a, Each each) {
  each("group", a.group);
  each("view", a.view);
  each("index", a.index);
  each("replica", a.replica);
  each("time", a.time);
  each("tier", a.tier);
  each("data", a.data);
  each("program", a.program);
  each("crane", a.crane);
  each("libcrane", a.libcrane);
  each("kernel", a.kernel);
  each("digest", a.digest);
  each("durability", a.durability);
  each("command", a.command);
}

// A follower of this machine that answers; -1: none.
int follower_here(const Json& summary) {
  for (const Json& row : control::list_in(summary, "replicas")) {
    if (control::text_in(row, "state") == "ok" && row["replica"] != summary["leader"]) {
      return control::replica_in(row);
    }
  }
  return -1;
}

bool all_here(const Json& summary) {
  const Json rows = control::list_in(summary, "replicas");
  return std::none_of(rows.begin(), rows.end(), [](const Json& row) {
    return control::text_in(row, "state") == "on another host";
  });
}

}  // namespace

// --- the header of an archive -------------------------------------------------------------------

About about_of(const checkpoint::Listed& listed, std::vector<std::string> data) {
  const checkpoint::Manifest& m = listed.manifest;
  About about;
  about.group = m.group;
  about.view = view_counter(m.at.view);
  about.index = value(m.at.index);
  about.replica = m.replica;
  about.time = m.time;
  about.tier = checkpoint::name_of(m.tier);
  about.data = std::move(data);
  about.program = m.program;
  about.crane = version_of_launcher();
  about.libcrane = m.library_digest;
  about.kernel = m.kernel;
  return about;
}

std::string text_of(const About& about, const char* head) {
  const int version = about.has_log() ? kVersionWithLog : kVersion;
  nlohmann::ordered_json json = {{"format", head}, {"version", version}};
  for_each_field(about, [&json](const char* name, const auto& value) { json[name] = value; });
  if (about.has_log()) {
    json["last"] = about.last;
    json["entries"] = about.last - about.index;
    json["versions"] = about.versions;
  }
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<About> parse_about(const std::string& text, const char* head, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  const bool is_one = json.is_object() && json.value("format", Json()) == head;
  const bool with_log = is_one && head == std::string(kBackupHead) &&
                        json.value("version", Json()) == kVersionWithLog;
  if (is_one && json.contains("version") && json["version"] != kVersion && !with_log) {
    return failure(Code::kWrongVersion, "read an archive",
                   path + " has version " + json["version"].dump() +
                       " of its format; use the version of Crane that made it");
  }
  try {
    About a;
    for_each_field(a, [&json](const char* name, auto& value) { json.at(name).get_to(value); });
    if (with_log) {
      json.at("last").get_to(a.last);
      json.at("versions").get_to(a.versions);
    }
    const bool names = (!with_log || a.last >= std::max<std::uint64_t>(a.index, 1)) &&
                       setup::good_group_name(a.group) &&
                       std::all_of(a.data.begin(), a.data.end(), is_directory_name);
    if (names && json.at("format") == head && (a.view >> 56) == 0) return a;
  } catch (const Json::exception&) {
  }
  return failure(Code::kDamaged, "read an archive",
                 path + " is damaged (" + head + " in it is invalid); use another copy of it");
}

namespace {

// The words of a command line, with their quotes.
std::vector<std::string> shell_words(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' && !quoted) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
      continue;
    }
    word += c;
    if (c == '\'') quoted = !quoted;
    if (c == '\\' && !quoted && i + 1 < command.size()) word += command[++i];
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

std::string with_dir(const std::string& command, const std::string& dir) {
  std::string text;
  bool of_server = false;
  const std::vector<std::string> words = shell_words(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    of_server |= words[i] == "--";
    const bool next = words[i] == "--dir";
    if (!of_server && (next || words[i].starts_with("--dir=") || words[i].starts_with("'--dir="))) {
      i += next ? 1 : 0;
      continue;
    }
    text += (i == 0 ? "" : " ") + words[i];
    if (i == 0 && !dir.empty()) {
      text = command_text({"--dir", dir}).replace(0, std::string("crane-run").size(), text);
    }
  }
  return text;
}

Result<About> read_about(checkpoint::ArchiveReader& reader, const char* head,
                         const std::string& path) {
  const auto text = reader.head(head);
  if (text) return parse_about(text.value(), head, path);
  if (text.error().code != Code::kBadArgument) return text.error();
  const bool backup = head == std::string(kBackupHead);
  return failure(Code::kBadArgument, "read an archive",
                 path + " was not made by crane-ctl " + (backup ? "backup" : "data export") + " (" +
                     head + " is not at its beginning); name a file that was");
}

int print_error(const Error& error) {
  print_message(error.message());
  if (error.exit_status != 0) return error.exit_status;
  switch (error.code) {
    case Code::kFull:
      return static_cast<int>(Status::kDiskFull);
    case Code::kDenied:
      return kNotPermitted;
    case Code::kDamaged:
    case Code::kBadArgument:
    case Code::kUnsupported:
    case Code::kWrongVersion:
      return kRefused;
    default:
      return static_cast<int>(Status::kDirectory);
  }
}

// --- the checkpoint of an archive ---------------------------------------------------------------

namespace {

// Checks, before any request, whether the group can provide a checkpoint.  Returns 0, or the exit
// status after a message.
int check_source(const Request& request, const Source& source, const Json& summary, Data data) {
  const Json rows = control::list_in(summary, "replicas");
  const bool runs = std::any_of(rows.begin(), rows.end(), [](const Json& row) {
    return control::text_in(row, "state") == "ok";
  });
  if (!runs) {
    print_message("does not run: " + source.group +
                  ": no replica of it answers; start it, or, while it is stopped, copy all of " +
                  request.home_of(source.group) + " (cp -a)");
    return static_cast<int>(Health::kNoLeader);
  }
  if (data == Data::kIfAny || !source.data.empty()) return 0;
  return refuse(
      source.group,
      "its server has no lasting directory, so there are no data to export; start the group "
      "with --data DIR");
}

// Chooses the group and finds its directories.  Returns 0, or the exit status after a message.
int begin_source(const Request& request, Source& source, Data needed, Json& summary) {
  if (const int bad = choose_one(request, source.group); bad != 0) return bad;
  auto data = checkpoint::directories_of_base(request.home_of(source.group) + "/base");
  if (!data && data.error().code != Code::kNotFound) return print_error(data.error());
  if (data) source.data = std::move(data).value();
  summary = summary_of(request, source.group);
  return check_source(request, source, summary, needed);
}

// Whether this machine's libcrane.so can restore processes saved with the one of this digest.
bool restores_with(const std::string& theirs) {
  setup::ProgramPaths parts;
  if (theirs.empty() || !setup::find_programs(parts)) return true;
  return theirs == checkpoint::digest_of_file(parts.library);
}

// Whether a replica is taking a checkpoint: the replica holds a lock on the checkpoint's directory.
bool one_is_made(const std::string& home) {
  std::error_code ignored;
  bool denied = false;
  for (const auto& [replica, directory] : checkpoint::replica_directories(home, denied)) {
    for (const auto& entry : fs::directory_iterator(directory + "/checkpoints", ignored)) {
      if (entry.path().filename().string().rfind(".new-", 0) != 0) continue;
      const auto lock = checkpoint::lock_directory(entry.path(), LOCK_SH);
      if (!lock && lock.error().code == Code::kBusy) return true;
    }
  }
  return false;
}

// Sets `source` to the newest usable checkpoint.  Returns false if there is none.
bool find_newest(const std::string& home, const std::string& log_digest, Source& source) {
  for (auto& kept : checkpoint::find_kept(home).checkpoints) {
    checkpoint::Listed& one = kept.listed;
    const checkpoint::Manifest& m = one.manifest;
    if (!one.belongs_to(log_digest) || !restores_with(m.library_digest)) {
      continue;
    }
    source.place = fs::path(one.path).parent_path();
    Checkpoints place({source.place, 1, {}});
    auto held = place.hold(one.name);
    if (!held || !verify(source.place, one.name)) continue;
    source.held = std::move(held).value();
    source.listed = std::move(one);
    source.read_back = true;
    return true;
  }
  return false;
}

// Like find_newest(), but waits for a checkpoint that a replica is taking.
bool await_newest(const std::string& home, const std::string& log_digest, Source& source) {
  constexpr std::int64_t kAwaitNs = 60'000'000'000;
  const std::int64_t begun_ns = monotonic_ns();
  for (;; poll(nullptr, 0, kLookEveryMs)) {
    const bool waits = monotonic_ns() < begun_ns + kAwaitNs && one_is_made(home);
    if (find_newest(home, log_digest, source)) return true;
    if (!waits) return false;
  }
}

}  // namespace

int newest_source(const Request& request, Source& source, Data needed, const std::string& log_id) {
  Json summary;
  if (const int bad = begin_source(request, source, needed, summary); bad != 0) return bad;
  const std::string home = request.home_of(source.group);
  const std::string digest = checkpoint::digest_of_log(source.group, number_of_log(log_id));
  if (await_newest(home, digest, source)) return 0;
  const int bad = take_source(request, source, needed);
  // The refusal may mean that a replica was about to take a checkpoint.
  if (bad == 0 || !one_is_made(home)) return bad;
  print_message("a replica of " + source.group + " is taking a checkpoint: waiting for it");
  return await_newest(home, digest, source) ? 0 : bad;
}

int take_source(const Request& request, Source& source, Data needed) {
  Json summary;
  if (const int bad = begin_source(request, source, needed, summary); bad != 0) return bad;
  source.read_back = false;
  const std::string home = request.home_of(source.group);
  Request now = request;
  now.group = source.group;
  if (request.replica < 0 && !all_here(summary)) {
    now.replica = follower_here(summary);
    if (now.replica < 0) {
      return refuse(source.group,
                    "it has no follower on this machine; run this on a follower's host");
    }
  }
  Taken taken;
  if (const int bad =
          take_checkpoint(now, taken, [](const std::string& text) { print_message(text); });
      bad != 0) {
    if (bad == kRefused && request.tier != "restart") {
      print_message(
          "if CRIU cannot save the server, use --tier restart, which ends the server of every "
          "replica in order, keeps its files and starts it again on them; the group must have "
          "--restart-checkpoints");
    }
    return bad;
  }
  if (!taken.here) {
    return refuse(source.group,
                  "replica " + std::to_string(taken.replica) +
                      ", which took the checkpoint, is on another host; run this there");
  }
  source.place = home + "/r" + std::to_string(taken.replica) + "/checkpoints";
  Checkpoints place({source.place, 1, {}});
  auto listed = place.list();
  if (!listed) return print_error(listed.error());
  std::reverse(listed.value().begin(), listed.value().end());  // the requested one comes first
  for (auto& one : listed.value()) {
    if (!one.damage.empty() || value(one.manifest.at.index) < taken.index) continue;
    auto held = place.hold(one.name);
    if (!held) continue;
    source.held = std::move(held).value();
    source.listed = std::move(one);
    return 0;
  }
  print_message("no checkpoint: " + source.group + ": the one at log index " +
                std::to_string(taken.index) + " is not in " + source.place +
                " any more; try again");
  return kNoSuchCheckpoint;
}

ShownSink::ShownSink(const std::string& step, std::uint64_t of, checkpoint::TreeSink& to)
    : line_(step, of),
      on_bytes_([this](std::uint64_t bytes) { line_.add(bytes); }),
      sink_(to, on_bytes_) {}

ShownSink::ShownSink(const std::string& step, int fd, checkpoint::TreeSink& to)
    : line_(step, 0),
      on_bytes_([this, fd](std::uint64_t bytes) {
        struct stat info {};
        const off_t at = lseek(fd, 0, SEEK_CUR);
        if (at < 0 || fstat(fd, &info) != 0) return line_.add(bytes);  // a pipe
        line_.set(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(info.st_size));
      }),
      sink_(to, on_bytes_) {}

Outcome verify(const std::string& place, const std::string& name) {
  setup::ProgressLine line("reads checkpoint " + name, 0);
  const auto bytes = [&line](std::uint64_t done, std::uint64_t of) { line.set(done, of); };
  return Checkpoints({place, 1, {}, bytes}).verify(name);
}

Result<std::uint64_t> send_data(const Source& source, checkpoint::TreeSink& sink,
                                const std::string& step) {
  checkpoint::SelectedDirectories selected(source.data, sink);
  for (const checkpoint::PackedFile& file : source.listed.manifest.files) {
    if (file.part() != "upper") continue;
    const std::string path = source.listed.path + "/" + file.name;
    ShownSink shown(step, file.unpacked, selected);
    if (auto read = checkpoint::read_pack(path, file, shown); !read) return read.error();
  }
  for (const std::string& one : source.data) {
    const auto& found = selected.found();
    if (std::find(found.begin(), found.end(), one) != found.end()) continue;
    return failure(Code::kDamaged, "read a checkpoint",
                   source.listed.path + " has no " + one +
                       ": the server has removed or renamed its own directory");
  }
  return selected.sockets();
}

// --- new directories ----------------------------------------------------------------------------

NewDirectory::NewDirectory(const std::string& path)
    : path_(path),
      parent_(fs::path(path).parent_path().string()),
      prefix_("." + fs::path(path).filename().string() + ".new-"),
      fresh_(parent_ + "/" + prefix_ + std::to_string(getpid())) {}

NewDirectory::~NewDirectory() {
  if (begun_) checkpoint::remove_tree(fresh_);
}

void NewDirectory::remove_dead() const {
  std::error_code ignored;
  std::vector<std::string> dead;
  for (const auto& entry : fs::directory_iterator(parent_, ignored)) {
    if (entry.path().filename().string().rfind(prefix_, 0) == 0) dead.push_back(entry.path());
  }
  for (const std::string& one : dead) {
    if (checkpoint::lock_directory(one, LOCK_EX)) checkpoint::remove_tree(one);
  }
}

Outcome NewDirectory::begin() {
  std::error_code ignored;
  if (fs::symlink_status(path_, ignored).type() != fs::file_type::not_found) {
    return failure(Code::kExists, "create", path_ + " exists already; name another");
  }
  if (auto made = checkpoint::make_directories(parent_); !made) {
    errno = made.error().detail;
    return file_error("create", parent_);
  }
  remove_dead();
  if (mkdir(fresh_.c_str(), 0700) != 0) return file_error("create", fresh_);
  begun_ = true;
  auto lock = checkpoint::lock_directory(fresh_, LOCK_EX);
  if (!lock) return lock.error();
  lock_ = std::move(lock).value();
  return Done{};
}

Outcome NewDirectory::name_it() {
  if (syncfs(lock_.get()) != 0) return file_error("sync", fresh_);
  if (renameat2(AT_FDCWD, fresh_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0) {
    return file_error("create", path_);
  }
  begun_ = false;
  lock_ = Descriptor();
  return checkpoint::sync_directory(parent_);
}

int check_new_file(const std::string& path) {
  std::error_code ignored;
  if (path == "-" || fs::symlink_status(path, ignored).type() == fs::file_type::not_found) return 0;
  return print_error(failure(Code::kExists, "create", path + " exists already; name another file"));
}

int check_new_group(const Request& request, const std::string& name, std::string& home) {
  if (!setup::good_group_name(name)) {
    print_message("command line: crane-ctl: " + name + " cannot be the name of a group");
    return static_cast<int>(Status::kUsage);
  }
  std::error_code failed;
  const std::string dir = request.dir.empty() ? setup::lasting_directory() : request.dir;
  home = fs::absolute(dir, failed).lexically_normal().string() + "/" + name;
  const std::string shared = setup::shared_directory(name);
  for (const std::string& place : {home, shared}) {
    if (fs::symlink_status(place, failed).type() == fs::file_type::not_found) continue;
    print_message(
        "there is a group of this name: " + name + ": " + place +
        " exists; nothing was changed; choose another name, or end that group and move its "
        "directory away");
    return static_cast<int>(Status::kGroupExists);
  }
  return 0;
}

std::vector<std::uint64_t> digests_of_machine(const std::vector<std::string>& data) {
  std::vector<std::uint64_t> digests;
  for (const std::string& one : data) {
    digests.push_back(checkpoint::digest_of_tree(one, checkpoint::Times::kCounted));
  }
  return digests;
}

}  // namespace crane::launcher
