// SPDX-License-Identifier: Apache-2.0
// crane-ctl backup, restore FILE: a group at one entry of its log, as one file.
//
// The archive contains group.json with the group's secret, the checkpoint's directory and, if the
// group has durability disk, the log after the checkpoint (consensus/log_tail.h).
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <optional>

#include "checkpoint/base.h"
#include "consensus/member_mark.h"
#include "dmt/base/join.h"
#include "dmt/base/versions.h"
#include "runtime/launcher/ctl/archives.h"
#include "runtime/launcher/ctl/log_copy.h"
#include "runtime/launcher/ctl/new_file.h"
#include "runtime/launcher/ctl/sizes.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::ArchiveReader;
using checkpoint::ArchiveWriter;
using checkpoint::Checkpoints;
using checkpoint::ContentDigest;
using checkpoint::Extractor;
using checkpoint::NumberedTrees;
using checkpoint::TeeSink;
using checkpoint::TreeSink;
using setup::print_message;

constexpr char kCheckpoint[] = "checkpoint", kLog[] = "log";  // names in the archive
constexpr char kIn[] = "in";                                  // directory for unpacking
constexpr std::size_t kGroupFileMax = 4U << 20;
constexpr int kCutsMax = 3;  // retries when the log is cut meanwhile

// --- backup -------------------------------------------------------------------------------------

// The checkpoint and the log that go into a backup.
struct Contents {
  Source source;
  LogCopy log;  // durability disk
};

Outcome send_group(const std::string& home, const Contents& contents, TreeSink& to,
                   const std::string& step) {
  const std::string file = home + "/" + kKnownGroupName;
  std::error_code none;
  const std::string& log = contents.log.path();
  const std::uintmax_t log_bytes = log.empty() ? 0 : fs::file_size(log, none);
  ShownSink sink(step, contents.source.listed.bytes() + (none ? 0 : log_bytes), to);
  if (auto sent = checkpoint::walk(file, kKnownGroupName, sink); !sent) return sent;
  auto sent = checkpoint::walk(contents.source.listed.path, kCheckpoint, sink);
  if (!sent || contents.log.path().empty()) return sent;
  return checkpoint::walk(contents.log.path(), kLog, sink);
}

Result<std::uint64_t> write_backup(const std::string& home, const Contents& contents,
                                   const About& about, NewFile& file) {
  auto fd = file.open();
  if (!fd) return fd.error();
  ArchiveWriter writer(std::move(fd).value(), file.shown());
  if (auto sent = writer.head(kBackupHead, text_of(about, kBackupHead)); !sent) return sent.error();
  if (auto sent = send_group(home, contents, writer, "writes " + file.shown()); !sent)
    return sent.error();
  if (auto ended = writer.finish(!file.is_stdout()); !ended) return ended.error();
  if (auto named = file.name_it(); !named) return named.error();
  return writer.bytes();
}

// A group of crane-node, or of several hosts, whose data or log last: crane-run keeps no
// group.json.
bool lasts_without_crane_run(const Request& request, const std::string& group,
                             const std::string& home) {
  const auto data = checkpoint::directories_of_base(home + "/base");
  if (data && !data.value().empty()) return true;
  return control::text_in(summary_of(request, group), "durability") == "disk";
}

// Reads group.json.  Returns 0, or the exit status after a message.
int read_group(const Request& request, const std::string& group, const std::string& home,
               KnownGroup& known) {
  const auto text = checkpoint::read_file(home + "/" + kKnownGroupName, kGroupFileMax);
  if (!text && text.error().code != Code::kNotFound) return print_error(text.error());
  if (!text && lasts_without_crane_run(request, group, home)) {
    return refuse(
        group,
        "crane-node or crane-run --hosts runs its nodes, each with the identity in its own "
        "group.toml; a backup contains the group.json of a crane-run on one machine, and a "
        "restore creates such a group. Save the server's files, on a follower's host: crane-ctl "
        "data export FILE " +
            group + ", if [server] data names them, or the server's own dump program");
  }
  auto parsed = text ? parse_known_group(text.value()) : Result<KnownGroup>(text.error());
  if (!parsed || (parsed.value().durability == "memory" && parsed.value().data.empty())) {
    return refuse(
        group,
        "the group keeps nothing for its next start, so there is nothing to back up; crane-run "
        "keeps the data of a group on one machine with --data DIR or --durability disk");
  }
  known = std::move(parsed).value();
  return 0;
}

// Takes the checkpoint and then the log, which contains more the later it is requested.  Returns 0,
// or the exit status after a message.
int take_contents(const Request& request, const KnownGroup& known, Contents& contents) {
  const bool has_log = known.durability == "disk";
  // An operator who names a tier or a replica wants a fresh checkpoint.  A group in memory needs a
  // fresh one, too, because its backup contains no log with later entries.
  const bool fresh = !has_log || !request.tier.empty() || request.replica >= 0;
  bool gone = false;
  for (int cuts = 0; cuts == 0 || (gone && cuts <= kCutsMax); ++cuts) {
    Source& source = contents.source;
    const int bad = fresh || cuts == kCutsMax
                        ? take_source(request, source, Data::kIfAny)
                        : newest_source(request, source, Data::kIfAny, known.log_id);
    if (bad != 0) return bad;
    if (!source.read_back) {
      const auto read = verify(source.place, source.listed.name);
      if (!read) return print_error(read.error());
    }
    if (!has_log) return 0;
    const int status = contents.log.take(request, source, known.log_id, gone);
    if (status == 0 || !gone) return status;
  }
  return refuse(contents.source.group,
                "its log was cut after each checkpoint before the backup had copied it; try again");
}

About about_contents(const Contents& contents, const KnownGroup& known, const std::string& home) {
  About about = about_of(contents.source.listed, contents.source.data);
  about.durability = known.durability;
  if (const auto record = read_record(home)) about.command = command_text(record->words);
  if (contents.log.path().empty()) return about;
  about.last = value(contents.log.tail().end.at.index);
  for (const AgreedVersion& one : kAgreedVersions) about.versions[one.name] = one.number;
  return about;
}

// "at log index 12 (checkpoint at 10, 2 entries of log)".
std::string place_of(const About& about) {
  const std::string index = std::to_string(about.index);
  if (!about.has_log()) return "at log index " + index;
  const std::uint64_t entries = about.last - about.index;
  return "at log index " + std::to_string(about.last) + " (checkpoint at " + index + ", " +
         std::to_string(entries) + (entries == 1 ? " entry" : " entries") + " of log)";
}

std::string what_is_missing(const About& about) {
  if (about.has_log()) return "later requests are not in it; ";
  return "the log, which is in memory only, and later requests are not in it; ";
}

// --- restore ------------------------------------------------------------------------------------

struct Restored {
  About about;
  KnownGroup known;
  Source source;          // the checkpoint, below the new directory
  bool with_log = false;  // the server continues in the group's log
  std::string tail;       // the log after the checkpoint, below the new directory; or empty
};

Error damaged(const std::string& file, const std::string& how) {
  return failure(Code::kDamaged, "read an archive",
                 file + " is damaged (" + how + "); use another copy of it");
}

// Unpacks the log after the checkpoint, which the archive contains if its header says so.
Outcome unpack_log(const std::string& in, const std::string& file, const std::string& to,
                   Restored& restored) {
  const std::string from = in + "/2";
  std::error_code failed;
  const bool is_there = fs::symlink_status(from, failed).type() == fs::file_type::regular;
  if (is_there != restored.about.has_log()) return damaged(file, "no log, or an unexpected log");
  if (!is_there || !restored.with_log) return Done{};
  restored.tail = to + "/" + kLog;
  if (rename(from.c_str(), restored.tail.c_str()) == 0) return Done{};
  return checkpoint::file_error("move", from);
}

// Unpacks the group file, the checkpoint and the log into `to`, and checks each.
// `archive`: the descriptor that `reader` reads.
Outcome unpack_backup(ArchiveReader& reader, int archive, const std::string& file,
                      const std::string& to, Restored& restored) {
  const std::string in = to + "/" + kIn;
  if (mkdir(in.c_str(), 0700) != 0) return checkpoint::file_error("create", in);
  ContentDigest content;
  Extractor out(in);
  NumberedTrees numbered({kKnownGroupName, kCheckpoint, kLog}, file, out);
  TeeSink tee(content, numbered);
  ShownSink shown("unpacks " + file, archive, tee);
  if (auto read = reader.read(shown); !read) return read;
  if (content.finish() != restored.about.digest) return damaged(file, "its digest differs");
  const auto text = checkpoint::read_file(in + "/0", kGroupFileMax);
  auto known = text ? parse_known_group(text.value()) : Result<KnownGroup>(text.error());
  if (!known || known.value().name != restored.about.group ||
      known.value().data != restored.about.data) {
    return damaged(file, "its group.json");
  }
  restored.known = std::move(known).value();
  if (auto moved = unpack_log(in, file, to, restored); !moved) return moved;
  const Viewstamp at{make_view(restored.about.view, ReplicaId{0}), Index{restored.about.index}};
  const std::string name = checkpoint::name_of(at);
  restored.source.place = to + "/r0/checkpoints";
  restored.source.data = restored.about.data;
  std::error_code failed;
  fs::create_directories(restored.source.place, failed);
  if (!failed) fs::rename(in + "/1", restored.source.place + "/" + name, failed);
  if (failed) return damaged(file, "it has no checkpoint");
  fs::permissions(to + "/r0", fs::perms::owner_all, failed);
  fs::permissions(restored.source.place, fs::perms::owner_all, failed);
  fs::remove_all(in, failed);
  Checkpoints place({restored.source.place, 1, {}});
  if (auto verified = verify(restored.source.place, name); !verified) return verified;
  auto listed = place.find(name);
  if (!listed) return listed.error();
  restored.source.listed = std::move(listed).value();
  const checkpoint::Manifest& m = restored.source.listed.manifest;
  const std::uint64_t log_id = number_of_log(restored.known.log_id);
  if (m.log_digest != checkpoint::digest_of_log(m.group, log_id)) {
    return damaged(file, "its checkpoint belongs to another group");
  }
  if (restored.tail.empty()) return Done{};
  return check_tail(restored.tail, file, restored.about, m, restored.known.log_id);
}

// Makes the base from the data at the checkpoint.  The log before the checkpoint is gone, so no
// server begins with older files.
Outcome make_base(const std::string& to, const Source& source) {
  if (source.data.empty()) return Done{};
  const std::string in = to + "/" + kIn;
  if (mkdir(in.c_str(), 0700) != 0) return checkpoint::file_error("create", in);
  Extractor out(in);
  std::vector<std::string> names;
  std::vector<checkpoint::LastingDirectory> directories;
  for (const std::string& one : source.data) {
    directories.push_back({one, in + "/" + std::to_string(names.size())});
    names.push_back(one.substr(1));
  }
  NumberedTrees numbered(names, source.listed.path, out);
  if (auto sent = send_data(source, numbered, "copies the data"); !sent) return sent.error();
  std::error_code ignored;
  auto made = checkpoint::make_base(directories, to + "/base", checkpoint::Before::kStays,
                                    checkpoint::Content::kMoved);
  fs::remove_all(in, ignored);
  return made;
}

// Checks that a server can recover from the checkpoint with this machine's libcrane.so.
Outcome check_library(const Restored& restored) {
  setup::ProgramPaths parts;
  if (auto found = setup::find_programs(parts); !found) return found;
  const std::string ours = checkpoint::digest_of_file(parts.library);
  const std::string& theirs = restored.about.libcrane;
  if (theirs.empty() || theirs == ours) return Done{};
  return failure(Code::kWrongVersion, "restore",
                 "the server's processes were saved with another libcrane.so (" +
                     restored.about.crane +
                     "); restore them with that version of Crane, or only their files: crane-ctl "
                     "restore --tier restart");
}

// Gives the group a new log; its server begins with the files.
void restart_from(const std::string& to, Restored& restored) {
  restored.known.log_id = random_log_id();
  restored.known.secret = random_secret();
  std::error_code ignored;
  fs::remove_all(to + "/r0", ignored);
}

// Makes the mark with which each replica takes its place once (consensus/member_mark.h): a link to
// the log after the checkpoint, or an empty mark.
Outcome mark_replicas(const std::string& to, const Restored& restored) {
  const std::uint64_t id = number_of_log(restored.known.log_id);
  for (int replica = 0; replica < restored.known.places; ++replica) {
    const ReplicaId self{static_cast<std::uint8_t>(replica)};
    if (restored.tail.empty()) {
      if (auto marked = consensus::mark_restored(to, self, id); !marked) return marked;
      continue;
    }
    const std::string path = consensus::restored_path(to, self);
    if (link(restored.tail.c_str(), path.c_str()) != 0) return checkpoint::file_error("make", path);
  }
  if (restored.tail.empty() || unlink(restored.tail.c_str()) == 0) return Done{};
  return checkpoint::file_error("remove", restored.tail);
}

Outcome write_group(const std::string& to, Restored& restored) {
  restored.known.machines = digests_of_machine(restored.known.data);
  const std::string text = text_of(restored.known);
  if (auto written = checkpoint::write_file(to + "/" + kKnownGroupName, text); !written) {
    return written;
  }
  return restored.with_log ? mark_replicas(to, restored) : Outcome(Done{});
}

// Makes the group in `fresh`, all but its name.
Outcome lay_out(const Request& request, ArchiveReader& reader, int archive, NewDirectory& fresh,
                Restored& restored) {
  const std::string file = shown_input(request.file);
  const bool with_log = restored.about.durability == "disk" && request.tier != "restart";
  restored.with_log = with_log;
  if (with_log && restored.about.has_log()) {
    if (auto fits = check_versions(restored.about, file); !fits) return fits;
  }
  if (auto begun = fresh.begin(); !begun) return begun;
  if (auto done = unpack_backup(reader, archive, file, fresh.path(), restored); !done) return done;
  if (restored.known.durability != restored.about.durability)
    return damaged(file, "its group.json");
  if (!with_log && restored.known.data.empty()) {
    return failure(Code::kBadArgument, "restore",
                   request.file +
                       " is of a group without --data: its server's files do not last, "
                       "and cannot be restored alone");
  }
  if (auto fits = with_log ? check_library(restored) : Outcome(Done{}); !fits) return fits;
  if (auto made = make_base(fresh.path(), restored.source); !made) return made;
  if (!with_log) restart_from(fresh.path(), restored);
  return write_group(fresh.path(), restored);
}

// Describes where the group continues.
std::string place_of(const Restored& restored, const std::string& home) {
  const About& about = restored.about;
  if (restored.with_log)
    return place_of(about) + ", in " + home + "; its server continues from there";
  std::string text = "at log index " + std::to_string(about.index) + ", in " + home +
                     "; its server begins with the files at that index";
  if (about.last > about.index) {
    text += "; the log after it (entries " + std::to_string(about.index + 1) + " to " +
            std::to_string(about.last) + ") is left out";
  }
  return text;
}

}  // namespace

namespace {

int back_up(const Request& request) {
  KnownGroup known;
  std::string group;
  if (const int bad = choose_one(request, group); bad != 0) return bad;
  const std::string home = request.home_of(group);
  if (const int bad = read_group(request, group, home, known); bad != 0) return bad;
  if (const int bad = check_new_file(request.file); bad != 0) return bad;
  Contents contents;
  if (const int bad = take_contents(request, known, contents); bad != 0) return bad;
  About about = about_contents(contents, known, home);
  ContentDigest content;
  if (auto sent = send_group(home, contents, content, "reads the checkpoint"); !sent)
    return print_error(sent.error());
  about.digest = content.finish();
  NewFile file(request.file);
  const auto written = write_backup(home, contents, about, file);
  if (!written) return print_error(written.error());
  print_message("backed up: " + group + " " + place_of(about) + ", by replica " +
                std::to_string(about.replica) + ", checkpoint verified; " + what_is_missing(about) +
                file.shown() + " has " + std::to_string(written.value()) +
                " bytes and contains the group's secret: keep it private");
  return 0;
}

// A backup of which the header is read.
struct Opened {
  int fd = -1;  // of `reader`
  std::optional<ArchiveReader> reader;
  Restored restored;
};

// Returns 0, or the exit status after a message.
int open_backup(const Request& request, Opened& opened) {
  auto fd = open_to_read(request.file);
  if (!fd) return print_error(fd.error());
  const std::string file = shown_input(request.file);
  opened.fd = fd.value().get();
  opened.reader.emplace(std::move(fd).value(), file);
  auto about = read_about(*opened.reader, kBackupHead, file);
  if (!about) return print_error(about.error());
  opened.restored.about = std::move(about).value();
  return 0;
}

int restore_backup(const Request& request) {
  Opened opened;
  if (const int bad = open_backup(request, opened); bad != 0) return bad;
  Restored& restored = opened.restored;
  const std::string& group = restored.about.group;
  std::string home;
  if (const int bad = check_new_group(request, group, home); bad != 0) return bad;
  NewDirectory fresh(home);
  auto done = lay_out(request, *opened.reader, opened.fd, fresh, restored);
  if (done) done = fresh.name_it();
  if (!done) return print_error(done.error());
  const std::string& before = restored.about.command;
  const std::string command = with_dir(before, request.dir);
  const std::string changed = command == before     ? ""
                              : request.dir.empty() ? ", now without --dir"
                                                    : ", now with --dir " + request.dir;
  print("restored: " + group + " " + place_of(restored, home) +
        "\ncontinue with the command that started it" + changed + ": " + command + "\n");
  return 0;
}

// Restores the backup into a directory beside it, or in --dir, and removes that directory.
int verify_backup(const Request& request) {
  Opened opened;
  if (const int bad = open_backup(request, opened); bad != 0) return bad;
  const About& about = opened.restored.about;
  std::error_code failed;
  const fs::path beside = fs::absolute(request.file, failed).parent_path();
  const fs::path parent = request.dir.empty() ? beside : fs::absolute(request.dir, failed);
  NewDirectory scratch((parent / (".verify-" + about.group)).lexically_normal());
  auto done = lay_out(request, *opened.reader, opened.fd, scratch, opened.restored);
  if (!done) return print_error(done.error());
  const auto bytes = bytes_on_disk(scratch.path(), std::numeric_limits<std::uint64_t>::max());
  print("verified: " + about.group + " " + place_of(about) + ": " + shown_input(request.file) +
        " can be restored; it has " + std::to_string(bytes.value_or(0)) + " bytes then\n");
  return 0;
}

// A number is a replica, anything else a file.
int restore(Request& r) {
  const bool number = r.file.size() <= 3 && is_number(r.file);
  if (!number && (!r.group.empty() || !r.checkpoint.empty())) {
    print_message("command line: crane-ctl: restore " + r.file +
                  " names a file, which contains the group's name; leave out " + r.group);
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  if (!number) return r.verify ? verify_backup(r) : restore_backup(r);
  r.replica = std::stoi(r.file);
  const char* const for_files = !r.tier.empty() ? "--tier" : r.verify ? "--verify" : nullptr;
  if (r.replica <= kReplicaMost && for_files == nullptr) return restore_replica(r);
  print_message("command line: crane-ctl: restore " + r.file +
                (for_files == nullptr ? ": there are replicas 0 to " + std::to_string(kReplicaMost)
                                      : ": " + std::string(for_files) + " is for files; ./" +
                                            r.file + " names a file"));
  return static_cast<int>(crane::setup::Status::kUsage);
}

}  // namespace

Command backup_command(Request& r) {
  return {
      "backup",
      "saves a running group at one log entry in a file",
      {file_word(r, "the file to create, which contains the group's secret; -: standard output"),
       group_word(r),
       {"--replica",
        &r.replica,
        "the replica that takes a fresh checkpoint",
        {.bounds = {{0, kReplicaMost}}}},
       tier_word(r, "of a fresh checkpoint, as for checkpoint now")},
      {},
      [&r] { return back_up(r); }};
}

Command restore_command(Request& r) {
  return {
      "restore",
      "restarts a replica at a checkpoint, or creates a group from a backup",
      {{"what",
        &r.file,
        "a replica's number, or a file that backup wrote (-: standard input)",
        {.required = true}},
       group_word(r),
       {"name", &r.checkpoint, "for a replica: the checkpoint, VIEW.INDEX (default: the newest)"},
       tier_word(r, "for a file: restart restores only the server's files"),
       {"--verify", Word::Flag{&r.verify},
        "for a file: restores it into a directory beside it, or in --dir, and removes that"}},
      {},
      [&r] { return restore(r); }};
}

}  // namespace crane::launcher
