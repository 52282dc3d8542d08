// SPDX-License-Identifier: Apache-2.0
// crane-ctl backup, restore FILE: a group as of one entry of its log, as one file.
//
// The archive holds group.json, with the group's secret, the checkpoint's directory as it is and,
// of a group with durability disk, the log behind the checkpoint (consensus/log_tail.h).
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/base.h"
#include "consensus/member_mark.h"
#include "dmt/base/join.h"
#include "dmt/base/versions.h"
#include "runtime/launcher/ctl/archives.h"
#include "runtime/launcher/ctl/log_copy.h"
#include "runtime/launcher/ctl/new_file.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/node_setup.h"
#include "runtime/launcher/take_over.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::ArchiveReader;
using checkpoint::ArchiveWriter;
using checkpoint::Both;
using checkpoint::Checkpoints;
using checkpoint::ContentDigest;
using checkpoint::Extractor;
using checkpoint::NumberedTrees;
using checkpoint::TreeSink;
using setup::say;

constexpr char kCheckpoint[] = "checkpoint", kLog[] = "log";  // in the archive
constexpr char kIn[] = "in";                                  // where it is unpacked
constexpr std::size_t kGroupFileMax = 4U << 20;
constexpr int kCutsMax = 3;  // so often the log may be cut meanwhile

// --- backup -------------------------------------------------------------------------------------

// The checkpoint and the log that go into a backup.
struct Contents {
  Source source;
  LogCopy log;  // durability disk
};

Outcome tell_group(const std::string& home, const Contents& contents, TreeSink& sink) {
  const std::string file = home + "/" + kKnownGroupName;
  if (auto told = checkpoint::walk(file, kKnownGroupName, sink); !told) return told;
  auto told = checkpoint::walk(contents.source.listed.path, kCheckpoint, sink);
  if (!told || contents.log.path().empty()) return told;
  return checkpoint::walk(contents.log.path(), kLog, sink);
}

Result<std::uint64_t> write_backup(const std::string& home, const Contents& contents,
                                   const About& about, NewFile& file) {
  auto fd = file.open();
  if (!fd) return fd.error();
  ArchiveWriter writer(std::move(fd).value(), file.shown());
  if (auto told = writer.head(kBackupHead, text_of(about, kBackupHead)); !told) return told.error();
  if (auto told = tell_group(home, contents, writer); !told) return told.error();
  if (auto ended = writer.finish(!file.is_stdout()); !ended) return ended.error();
  if (auto named = file.name_it(); !named) return named.error();
  return writer.bytes();
}

// What group.json tells; 0, or the exit status after a message.
int read_group(const std::string& group, const std::string& home, KnownGroup& known) {
  const auto text = checkpoint::read_file(home + "/" + kKnownGroupName, kGroupFileMax);
  if (!text && text.error().code != Code::kNotFound) return say_error(text.error());
  auto parsed = text ? parse_known_group(text.value()) : Result<KnownGroup>(text.error());
  if (!parsed || (parsed.value().durability == "memory" && parsed.value().data.empty())) {
    say("refused: " + group +
        ": nothing of it would be there at its next start, so there is nothing to back up; a group "
        "lasts that crane-run starts on one machine with --data DIR or --durability disk");
    return kRefused;
  }
  known = std::move(parsed).value();
  return 0;
}

// Checkpoint and log; 0, or the exit status after a message.  The log comes last: the later it is
// asked for, the more is in it.
int take_contents(const Request& request, const KnownGroup& known, Contents& contents) {
  const bool has_log = known.durability == "disk";
  // An operator who names a tier or a replica wants a checkpoint of now.  A group in memory needs
  // one, too: its backup has no log with what came later.
  const bool fresh = !has_log || !request.tier.empty() || request.replica >= 0;
  bool gone = false;
  for (int cuts = 0; cuts == 0 || (gone && cuts <= kCutsMax); ++cuts) {
    Source& source = contents.source;
    const int bad = fresh || cuts == kCutsMax
                        ? take_source(request, source, Data::kIfAny)
                        : newest_source(request, source, Data::kIfAny, known.log_id);
    if (bad != 0) return bad;
    if (!source.read_back) {
      const auto read = Checkpoints({source.place, 1, {}}).verify(source.listed.name);
      if (!read) return say_error(read.error());
    }
    if (!has_log) return 0;
    const int status = contents.log.take(request, source, known.log_id, gone);
    if (status == 0 || !gone) return status;
  }
  say("refused: " + contents.source.group +
      ": its log is cut behind each checkpoint before the backup has copied it; try again");
  return kRefused;
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
  if (about.has_log()) return "what was answered later is not in it; ";
  return "its log is in memory only and not in it, nor is what was answered later; ";
}

// --- restore ------------------------------------------------------------------------------------

struct Restored {
  About about;
  KnownGroup known;
  Source source;          // its checkpoint, below the new directory
  bool with_log = false;  // the server goes on in its log
  std::string tail;       // the log behind the checkpoint, below the new directory; or empty
};

Error damaged(const std::string& file, const std::string& how) {
  return failure(Code::kDamaged, "read an archive",
                 file + " is damaged (" + how + "); use another copy of it");
}

// The log behind the checkpoint, which the archive has if it says so.
Outcome unpack_log(const std::string& in, const std::string& file, const std::string& to,
                   Restored& restored) {
  const std::string from = in + "/2";
  std::error_code failed;
  const bool is_there = fs::symlink_status(from, failed).type() == fs::file_type::regular;
  if (is_there != restored.about.has_log()) return damaged(file, "it has no log, or should not");
  if (!is_there || !restored.with_log) return Done{};
  restored.tail = to + "/" + kLog;
  if (rename(from.c_str(), restored.tail.c_str()) == 0) return Done{};
  return checkpoint::file_error("move", from);
}

// Group file, checkpoint and log, each checked, into `to`.
Outcome unpack_backup(ArchiveReader& reader, const std::string& file, const std::string& to,
                      Restored& restored) {
  const std::string in = to + "/" + kIn;
  if (mkdir(in.c_str(), 0700) != 0) return checkpoint::file_error("create", in);
  ContentDigest content;
  Extractor out(in);
  NumberedTrees numbered({kKnownGroupName, kCheckpoint, kLog}, file, out);
  Both both(content, numbered);
  if (auto read = reader.read(both); !read) return read;
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
  if (auto verified = place.verify(name); !verified) return verified;
  auto listed = place.find(name);
  if (!listed) return listed.error();
  restored.source.listed = std::move(listed).value();
  const checkpoint::Manifest& m = restored.source.listed.manifest;
  const std::uint64_t log_id = number_of_log(restored.known.log_id);
  if (m.log_digest != checkpoint::digest_of_log(m.group, log_id)) {
    return damaged(file, "its checkpoint is of another group");
  }
  if (restored.tail.empty()) return Done{};
  return check_tail(restored.tail, file, restored.about, m, restored.known.log_id);
}

// The base is what the data are at the checkpoint: the log before it is gone, so no server ever
// begins with older files.
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
  if (auto told = tell_data(source, numbered); !told) return told.error();
  std::error_code ignored;
  auto made = checkpoint::make_base(directories, to + "/base", checkpoint::Before::kStays,
                                    checkpoint::Content::kMoved);
  fs::remove_all(in, ignored);
  return made;
}

// Whether a server can recover from it with the libcrane.so that is here.
Outcome check_library(const Restored& restored) {
  setup::ProgramPaths parts;
  if (auto found = setup::find_programs(parts); !found) return found;
  const std::string ours = checkpoint::digest_of_file(parts.library);
  const std::string& theirs = restored.about.libcrane;
  if (theirs.empty() || theirs == ours) return Done{};
  return failure(Code::kWrongVersion, "restore",
                 "the server's processes were kept with another libcrane.so (" +
                     restored.about.crane +
                     "); restore them with that version of Crane, or only their files: crane-ctl "
                     "restore --tier restart");
}

// From here on the group has a log of its own, and its server begins with the files.
void restart_from(const std::string& to, Restored& restored) {
  restored.known.log_id = random_log_id();
  restored.known.secret = random_secret();
  std::error_code ignored;
  fs::remove_all(to + "/r0", ignored);
}

// Marks of all replicas, each of which takes its place once (consensus/member_mark.h): the log
// behind the checkpoint, under one name for each, or an empty mark.
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

Outcome lay_out(const Request& request, ArchiveReader& reader, NewDirectory& fresh,
                Restored& restored) {
  const std::string file = shown_input(request.file);
  const bool with_log = restored.about.durability == "disk" && request.tier != "restart";
  restored.with_log = with_log;
  if (with_log && restored.about.has_log()) {
    if (auto fits = check_versions(restored.about, file); !fits) return fits;
  }
  if (auto begun = fresh.begin(); !begun) return begun;
  if (auto done = unpack_backup(reader, file, fresh.path(), restored); !done) return done;
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
  if (auto done = write_group(fresh.path(), restored); !done) return done;
  return fresh.name_it();
}

// Where the group goes on, for people.
std::string place_of(const Restored& restored, const std::string& home) {
  const About& about = restored.about;
  if (restored.with_log)
    return place_of(about) + ", in " + home + "; its server goes on from there";
  std::string text = "at log index " + std::to_string(about.index) + ", in " + home +
                     "; its server begins with the files of that place";
  if (about.last > about.index) {
    text += "; the log behind it (entries " + std::to_string(about.index + 1) + " to " +
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
  if (const int bad = read_group(group, home, known); bad != 0) return bad;
  if (const int bad = check_new_file(request.file); bad != 0) return bad;
  Contents contents;
  if (const int bad = take_contents(request, known, contents); bad != 0) return bad;
  About about = about_contents(contents, known, home);
  ContentDigest content;
  if (auto told = tell_group(home, contents, content); !told) return say_error(told.error());
  about.digest = content.finish();
  NewFile file(request.file);
  const auto written = write_backup(home, contents, about, file);
  if (!written) return say_error(written.error());
  say("backed up: " + group + " " + place_of(about) + ", by replica " +
      std::to_string(about.replica) + ", checkpoint verified; " + what_is_missing(about) +
      file.shown() + " has " + std::to_string(written.value()) +
      " bytes, and the group's secret: keep it private");
  return 0;
}

int restore_backup(const Request& request) {
  auto fd = open_to_read(request.file);
  if (!fd) return say_error(fd.error());
  const std::string file = shown_input(request.file);
  ArchiveReader reader(std::move(fd).value(), file);
  auto about = read_about(reader, kBackupHead, file);
  if (!about) return say_error(about.error());
  Restored restored;
  restored.about = std::move(about).value();
  const std::string& group = restored.about.group;
  std::string home;
  if (const int bad = check_new_group(request, group, home); bad != 0) return bad;
  NewDirectory fresh(home);
  if (auto done = lay_out(request, reader, fresh, restored); !done) return say_error(done.error());
  print("restored: " + group + " " + place_of(restored, home) +
        "\ngo on with the command that started it" +
        (request.dir.empty() ? "" : ", now with --dir " + request.dir) + ": " +
        restored.about.command + "\n");
  return 0;
}

// A number is a replica, anything else a file.
int restore(Request& r) {
  const bool number = r.file.size() <= 3 && !r.file.empty() &&
                      r.file.find_first_not_of("0123456789") == std::string::npos;
  if (!number && (!r.group.empty() || !r.checkpoint.empty())) {
    say("command line: crane-ctl: restore " + r.file +
        " names a file, whose group is in it; leave out " + r.group);
    return static_cast<int>(crane::setup::Status::kUsage);
  }
  if (!number) return restore_backup(r);
  r.replica = std::stoi(r.file);
  if (r.replica <= kReplicaMost && r.tier.empty()) return restore_replica(r);
  say("command line: crane-ctl: restore " + r.file +
      (r.tier.empty() ? ": there are replicas 0 to " + std::to_string(kReplicaMost)
                      : ": --tier is for files; ./" + r.file + " is one"));
  return static_cast<int>(crane::setup::Status::kUsage);
}

}  // namespace

Command backup_command(Request& r) {
  return {"backup",
          "a group at one entry of the log, while it serves, as one file",
          {file_word(r, "the file to make, which has the group's secret; -: standard output"),
           group_word(r),
           {"--replica", &r.replica, "takes a fresh checkpoint", {.bounds = {{0, kReplicaMost}}}},
           tier_word(r, "of a fresh checkpoint, as of checkpoint now")},
          {},
          [&r] { return back_up(r); }};
}

Command restore_command(Request& r) {
  return {
      "restore",
      "a replica restarts at a checkpoint, or a group is made of a backup",
      {{"what",
        &r.file,
        "a replica's number; or a file that backup made, -: standard input",
        {.required = true}},
       group_word(r),
       {"name", &r.checkpoint, "of a replica: this checkpoint, VIEW.INDEX (default: the newest)"},
       tier_word(r, "of a file: restart: only the server's files, with which it begins")},
      {},
      [&r] { return restore(r); }};
}

}  // namespace crane::launcher
