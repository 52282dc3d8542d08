// SPDX-License-Identifier: Apache-2.0
// crane-ctl data export, import: the files of a server's lasting directories at one log entry.
#include <sys/stat.h>

#include <filesystem>

#include "checkpoint/base.h"
#include "dmt/base/join.h"
#include "runtime/launcher/ctl/archives.h"
#include "runtime/launcher/ctl/new_file.h"
#include "runtime/launcher/known_group.h"
#include "runtime/launcher/node_setup.h"

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::ArchiveReader;
using checkpoint::ArchiveWriter;
using checkpoint::ContentDigest;
using checkpoint::Descriptor;
using checkpoint::Extractor;
using checkpoint::NumberedTrees;
using checkpoint::TeeSink;
using setup::print_message;

// Names of trees in an archive: paths without the leading slash.
std::vector<std::string> trees_of(const std::vector<std::string>& data) {
  std::vector<std::string> names;
  for (const std::string& one : data) names.push_back(one.substr(1));
  return names;
}

Outcome write_archive(const Source& source, const About& about, NewFile& file,
                      std::uint64_t& bytes) {
  auto fd = file.open();
  if (!fd) return fd.error();
  ArchiveWriter writer(std::move(fd).value(), file.shown());
  if (auto sent = writer.head(kExportHead, text_of(about, kExportHead)); !sent) return sent;
  if (auto sent = send_data(source, writer, "writes " + file.shown()); !sent) return sent.error();
  if (auto ended = writer.finish(!file.is_stdout()); !ended) return ended;
  bytes = writer.bytes();
  return file.name_it();
}

// Writes a directory; each DIR of --data is below it under its full path.
Outcome write_directory(const Source& source, const About& about, const std::string& path) {
  NewDirectory fresh(path);
  if (auto begun = fresh.begin(); !begun) return begun;
  Extractor out(fresh.path());
  NumberedTrees numbered(trees_of(about.data), path, out);
  if (auto sent = send_data(source, numbered, "writes " + path); !sent) return sent.error();
  for (std::size_t i = 0; i < about.data.size(); ++i) {
    std::error_code failed;
    const std::string to = fresh.path() + about.data[i];
    fs::create_directories(fs::path(to).parent_path(), failed);
    if (!failed) fs::rename(fresh.path() + "/" + std::to_string(i), to, failed);
    if (!failed) continue;
    errno = failed.value();
    return checkpoint::file_error("create", to);
  }
  const std::string text = text_of(about, kExportHead);
  if (auto written = checkpoint::write_file(fresh.path() + "/" + kExportHead, text); !written) {
    return written;
  }
  return fresh.name_it();
}

// Describes the export in one line.
std::string described(const About& about, const ContentDigest& content, std::uint64_t sockets) {
  return about.group + " at log index " + std::to_string(about.index) + ", by replica " +
         std::to_string(about.replica) + ": " + joined(about.data) + ", " +
         std::to_string(content.files()) + " files, " + std::to_string(content.bytes()) + " bytes" +
         (sockets > 0 ? " (" + std::to_string(sockets) + " sockets are left out)" : std::string());
}

// Unpacks the archive below `to`, each directory under its number.
Result<About> unpack_archive(const std::string& file, const std::string& to) {
  auto fd = open_to_read(file);
  if (!fd) return fd.error();
  const std::string path = shown_input(file);
  const int archive = fd.value().get();
  ArchiveReader reader(std::move(fd).value(), path);
  auto about = read_about(reader, kExportHead, path);
  if (!about) return about;
  ContentDigest content;
  Extractor out(to);
  NumberedTrees numbered(trees_of(about.value().data), path, out);
  TeeSink tee(content, numbered);
  ShownSink shown("unpacks " + path, archive, tee);
  if (auto read = reader.read(shown); !read) return read.error();
  if (content.finish() == about.value().digest) return about;
  return failure(Code::kDamaged, "read an archive",
                 path + " is damaged (its digest differs); use another copy of it");
}

}  // namespace

namespace {

int export_data(const Request& request) {
  if (request.unpacked && request.file == "-") {
    print_message(
        "command line: crane-ctl: --unpacked writes a directory, not to standard output; name one");
    return static_cast<int>(setup::Status::kUsage);
  }
  if (const int bad = check_new_file(request.file); bad != 0) return bad;
  Source source;
  if (const int bad = take_source(request, source, Data::kNeeded); bad != 0) return bad;
  // A first pass writes nothing: it checks the pack and computes the digest.
  ContentDigest content;
  const auto sockets = send_data(source, content, "reads the data");
  if (!sockets) return print_error(sockets.error());
  About about = about_of(source.listed, source.data);
  about.digest = content.finish();
  std::uint64_t bytes = 0;
  NewFile file(request.file);
  const auto written =
      request.unpacked
          ? write_directory(source, about, fs::absolute(request.file).lexically_normal().string())
          : write_archive(source, about, file, bytes);
  if (!written) return print_error(written.error());
  print_message("exported: " + described(about, content, sockets.value()) + "; " + file.shown() +
                (request.unpacked ? "" : " has " + std::to_string(bytes) + " bytes"));
  return 0;
}

int import_data(const Request& request) {
  std::string home;
  if (const int bad = check_new_group(request, request.group, home); bad != 0) return bad;
  NewDirectory fresh(home);
  if (auto begun = fresh.begin(); !begun) return print_error(begun.error());
  const std::string files = fresh.path() + "/files";
  std::error_code failed;
  if (!fs::create_directory(files, failed)) {
    return print_error({Code::kSystem, failed.value(), "make the directory of the files"});
  }
  const auto about = unpack_archive(request.file, files);
  if (!about) return print_error(about.error());
  const std::vector<std::string>& data = about.value().data;
  std::vector<checkpoint::LastingDirectory> directories;
  for (std::size_t i = 0; i < data.size(); ++i) {
    directories.push_back({data[i], files + "/" + std::to_string(i)});
  }
  auto made = checkpoint::make_base(directories, fresh.path() + "/base", checkpoint::Before::kStays,
                                    checkpoint::Content::kMoved);
  if (!made) return print_error(made.error());
  if (!fs::remove(files, failed)) {
    return print_error({Code::kSystem, failed.value(), "remove the directory of the files"});
  }
  // The group has not begun: its first start determines the number of replicas.
  KnownGroup known;
  known.name = request.group;
  known.log_id = random_log_id();
  known.secret = random_secret();
  known.durability = "memory";
  known.data = data;
  known.machines = digests_of_machine(data);
  if (auto written = checkpoint::write_file(fresh.path() + "/" + kKnownGroupName, text_of(known));
      !written) {
    return print_error(written.error());
  }
  if (auto named = fresh.name_it(); !named) return print_error(named.error());
  std::string options;
  for (const std::string& one : data) options += " --data " + one;
  print("imported: " + request.group + " begins with " + joined(data) + " of " +
        about.value().group + " at log index " + std::to_string(about.value().index) + "\n" +
        "start it: crane-run --name " + request.group +
        (request.dir.empty() ? "" : " --dir " + request.dir) + options + " -- " +
        about.value().program + " ...\n");
  return 0;
}

}  // namespace

Command data_commands(Request& r) {
  return {
      "data",
      "the files that the server keeps in --data",
      {},
      {{"export",
        "saves them at one log entry, from a follower, while the group serves",
        {file_word(r, "the file to create, a tar archive in zstd format; -: standard output"),
         group_word(r),
         {"--unpacked", Word::Flag{&r.unpacked}, "create a directory instead"},
         {"--replica", &r.replica, "the replica that exports", {.bounds = {{0, kReplicaMost}}}},
         tier_word(r, "as for checkpoint now; restart: files of a server that stopped cleanly")},
        {},
        [&r] { return export_data(r); }},
       {"import",
        "creates a new group that begins with them",
        {file_word(r, "a file that data export wrote; -: standard input"),
         {"group", &r.group, "the new group's name", {.required = true}}},
        {},
        [&r] { return import_data(r); }}}};
}

}  // namespace crane::launcher
