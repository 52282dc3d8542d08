// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "checkpoint/container_supervisor.h"
#include "checkpoint/descriptor.h"
#include "checkpoint/fault_points.h"

namespace crane::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kMark[] = "verified";
constexpr char kDiffered[] = "differed";
constexpr unsigned kNamesTried = 8;    // of a staging directory
constexpr char kPacked[] = ".packed";  // in a staging directory: the future checkpoint

bool is_there(const std::string& path) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0;
}

// Bytes of the files below a directory, about: without holes, and without what cannot be read.
std::uint64_t bytes_of_files(const std::string& directory) {
  std::uint64_t sum = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    struct stat s {};
    if (::lstat(at->path().c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    sum += static_cast<std::uint64_t>(std::min<std::int64_t>(s.st_size, s.st_blocks * 512));
  }
  return sum;
}

std::uint64_t unpacked_bytes(const Manifest& manifest) {
  std::uint64_t sum = 0;
  for (const PackedFile& file : manifest.files) sum += file.unpacked;
  return sum;
}

}  // namespace

OnBytes Checkpoints::counter(std::uint64_t of) {
  if (!options_.bytes) return {};
  return [this, of, done = std::uint64_t{0}](std::uint64_t bytes) mutable {
    report_bytes(done += bytes, of);
  };
}

Outcome Checkpoints::make_directory() {
  if (is_there(options_.directory)) return Done{};
  if (auto made = make_directories(options_.directory); !made) {
    errno = made.error().detail;
    return file_error("create", options_.directory);
  }
  return sync_directory(fs::path(options_.directory).parent_path().string());
}

Result<Descriptor> Checkpoints::lock_all() {
  if (auto made = make_directory(); !made) return made.error();
  const std::string path = path_of(".lock");
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return file_error("open", path);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return file_error("lock", path);
  }
  return fd;
}

// --- making one

// Takes no lock: a node calls it in its event loop, and the lock's holder may be a process that
// gets little processor time, or is stopped.
Result<Staging> Checkpoints::begin(Index index) {
  if (auto made = make_directory(); !made) return made.error();
  const std::string path =
      path_of(".new-" + std::to_string(value(index)) + "-" + std::to_string(::getpid()));
  auto staging = make_staging(path);
  for (unsigned more = 1; !staging && more < kNamesTried; ++more) {
    const Code why = staging.error().code;
    if (why != Code::kExists && why != Code::kBusy && why != Code::kNotFound) break;
    staging = make_staging(path + "-" + std::to_string(more));
  }
  return staging;
}

// kExists: the name is taken, perhaps by a dead process with the same number. kBusy, kNotFound:
// another process took the directory for a dead process's before it was locked.
Result<Staging> Checkpoints::make_staging(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return file_error("create", path);
  fault_point("begin.made");
  auto lock = lock_directory(path, LOCK_EX);
  if (!lock) return lock.error();
  Staging staging{path, std::move(lock).value()};
  if (::mkdir(staging.images().c_str(), 0700) != 0) {
    return file_error("create", staging.images());
  }
  return staging;
}

void Checkpoints::abandon(const Staging& staging) { remove_tree(staging.path); }

Result<std::string> Checkpoints::publish(const Staging& staging, Manifest manifest) {
  auto name = pack_all(staging.path, std::move(manifest));
  if (name) fault_point("publish.cleaning");
  abandon(staging);
  return name;
}

Result<std::string> Checkpoints::pack_all(const std::string& staging, Manifest manifest) {
  const std::string name = name_of(manifest.at);
  if (is_there(path_of(name))) {
    return failure(Code::kExists, "publish",
                   "there is a checkpoint " + name + " already; it was left as it is");
  }
  std::error_code failed;
  fs::remove(staging + "/images", failed);  // removes it only if it is empty, as without a dump
  std::vector<std::string> needed = {"upper"};
  if (manifest.tier == Tier::kCriu) needed = {"images", "upper", "segment", "libcrane.so"};
  for (const std::string& part : needed) {
    if (is_there(staging + "/" + part)) continue;
    return failure(Code::kBadArgument, "publish",
                   "the checkpoint at " + name + " has no " + part + ", which the tier " +
                       name_of(manifest.tier) + " needs; it was given up");
  }
  std::vector<std::string> parts;
  for (const auto& entry : fs::directory_iterator(staging, failed)) {
    const std::string part = entry.path().filename().string();
    if (part[0] == '.') continue;
    if (!is_pack_name(part + kPackEnding)) {
      return failure(Code::kBadArgument, "publish",
                     staging + ": a part cannot be named \"" + part + "\"; it was given up");
    }
    parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end());
  const std::string library = staging + "/libcrane.so";
  if (is_there(library)) manifest.library_digest = digest_of_file(library);
  if (manifest.time == 0) manifest.time = ::time(nullptr);
  const std::string packed = staging + "/" + kPacked;
  if (::mkdir(packed.c_str(), 0700) != 0) return file_error("create", packed);
  manifest.files.clear();
  const OnBytes count = options_.bytes ? counter(bytes_of_files(staging)) : OnBytes{};
  for (const std::string& part : parts) {
    fault_point("publish.packing");
    tell("packing " + part);
    auto file =
        pack(staging + "/" + part, packed + "/" + part + kPackEnding, options_.level, count);
    if (!file) return file.error();
    manifest.files.push_back(std::move(file).value());
  }
  fault_point("publish.packed");
  if (auto written = write_file(packed + "/" + kManifestName, to_text(manifest)); !written) {
    return written.error();
  }
  fault_point("publish.manifest");
  if (auto named = rename_published(packed, name, "publish.renamed"); !named) return named.error();
  tell("published " + name);
  return name;
}

Outcome Checkpoints::rename_published(const std::string& from, const std::string& name,
                                      const char* fault) {
  const std::string to = path_of(name);
  if (auto synced = sync_directory(from); !synced) return synced;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    return file_error("publish", to);
  }
  fault_point(fault);
  return sync_directory(options_.directory);
}

// --- existing checkpoints

Result<Manifest> Checkpoints::read_manifest(const std::string& name, std::string& text) {
  const std::string path = path_of(name) + "/" + kManifestName;
  auto read = read_file(path, kManifestMax);
  if (!read && read.error().code == Code::kNotFound) {
    return failure(Code::kDamaged, "read a manifest",
                   path + " is missing; use another checkpoint, or another replica's");
  }
  if (!read) return read.error();
  text = std::move(read).value();
  auto manifest = parse_manifest(text, path);
  if (manifest && name_of(manifest.value().at) != name) {
    return failure(Code::kDamaged, "read a manifest",
                   path + " belongs to checkpoint " + name_of(manifest.value().at) +
                       "; rename the directory to that");
  }
  return manifest;
}

Result<std::vector<Listed>> Checkpoints::list() {
  std::vector<Listed> all;
  if (!is_there(options_.directory)) return all;
  std::error_code failed;
  std::vector<std::pair<Viewstamp, std::string>> names;
  for (const auto& entry : fs::directory_iterator(options_.directory, failed)) {
    std::uint64_t counter = 0, index = 0;
    const std::string name = entry.path().filename().string();
    if (!parse_name(name, counter, index)) continue;
    names.push_back({{make_view(counter, ReplicaId{0}), Index{index}}, name});
  }
  if (failed) {
    errno = failed.value();
    return file_error("list", options_.directory);
  }
  std::sort(names.rbegin(), names.rend());
  for (const auto& [at, name] : names) {
    Listed one;
    one.name = name;
    one.path = path_of(name);
    std::string text;
    auto manifest = read_manifest(name, text);
    if (!manifest && !is_there(one.path)) continue;  // removed meanwhile
    if (manifest) {
      one.manifest = std::move(manifest).value();
      const auto mark = read_file(one.path + "/" + kMark, 64);
      one.verified = mark && mark.value() == crc_of(text) + "\n";
      one.distrusted = is_distrusted(name);
    } else {
      one.damage = manifest.error().text;
    }
    all.push_back(std::move(one));
  }
  return all;
}

Error Checkpoints::not_found(const std::string& name) {
  return failure(Code::kNotFound, "find a checkpoint",
                 "there is no checkpoint " + name + " in " + options_.directory + "; list them");
}

Result<Listed> Checkpoints::find(const std::string& name) {
  auto all = list();
  if (!all) return all.error();
  for (Listed& one : all.value()) {
    if (name == "newest" ? one.damage.empty() : one.name == name) return std::move(one);
  }
  return not_found(name);
}

// Held while the checkpoint is read, so that no process removes it.
Result<Descriptor> Checkpoints::hold(const std::string& name) {
  std::uint64_t counter = 0, index = 0;
  const std::string path = path_of(name);
  if (parse_name(name, counter, index) && is_there(path)) {
    return lock_directory(path, LOCK_SH);
  }
  return not_found(name);
}

Outcome Checkpoints::check(const std::string& path, const Manifest& manifest) {
  const OnBytes count = counter(unpacked_bytes(manifest));
  for (const PackedFile& file : manifest.files) {
    tell("verifying " + file.name);
    NullSink nothing;
    CountingSink sink(nothing, count);
    if (auto read = read_pack(path + "/" + file.name, file, sink); !read) return read;
  }
  return Done{};
}

Outcome Checkpoints::mark(const std::string& path, const std::string& manifest_text) {
  const std::string at = path + "/" + kMark;
  auto written = write_file(at, crc_of(manifest_text) + "\n", "verify.mark");
  return written ? sync_directory(path) : written;
}

// A missing or damaged mark means no difference.
Checkpoints::Difference Checkpoints::difference_of(const std::string& path) {
  const auto text = read_file(path + "/" + kDiffered, 64);
  Difference found;
  if (!text) return found;
  const bool whole =
      std::sscanf(text.value().c_str(), "%" SCNu64 " %u", &found.at, &found.times) == 2;
  return whole ? found : Difference{};
}

bool Checkpoints::is_distrusted(const std::string& name) {
  return difference_of(path_of(name)).times >= kDifferencesMost;
}

Outcome Checkpoints::note_difference(const std::string& name, Index at) {
  const auto lock = hold(name);
  if (!lock) return lock.error();
  const std::string path = path_of(name);
  const Difference before = difference_of(path);
  const unsigned times = before.at == value(at) ? before.times + 1 : 1;
  const std::string text = std::to_string(value(at)) + " " + std::to_string(times) + "\n";
  auto written = write_file(path + "/" + kDiffered, text, nullptr);
  return written ? sync_directory(path) : written;
}

Outcome Checkpoints::verify(const std::string& name) {
  const auto lock = hold(name);
  if (!lock) return lock.error();
  std::string text;
  const auto manifest = read_manifest(name, text);
  const auto checked =
      manifest ? check(path_of(name), manifest.value()) : Outcome(manifest.error());
  if (!checked) {
    if (checked.error().code == Code::kDamaged) ::unlink((path_of(name) + "/" + kMark).c_str());
    return checked;
  }
  fault_point("verify.checked");
  return mark(path_of(name), text);
}

// --- unpacking

Result<Manifest> Checkpoints::unpack(const std::string& name, const std::string& target,
                                     const Expected& expected) {
  const auto lock = hold(name);
  if (!lock) return lock.error();
  std::string text;
  auto manifest = read_manifest(name, text);
  if (!manifest) return manifest;
  if (auto same = compare(manifest.value(), expected, name); !same) return same.error();
  if (is_there(target)) {
    return failure(Code::kExists, "unpack",
                   "cannot unpack checkpoint " + name + ": " + target + " exists; remove it");
  }
  const std::string temporary = target + ".tmp";
  auto all = lock_all();
  if (!all) return all.error();
  if (is_there(temporary)) {
    const auto old = lock_directory(temporary, LOCK_EX);
    if (!old) return old.error();
    // This process owns it now, so processes that begin a checkpoint need not wait.
    ::flock(all.value().get(), LOCK_UN);
    tell("removing " + temporary);
    remove_tree(temporary);
    all = lock_all();
    if (!all) return all.error();
  }
  if (::mkdir(temporary.c_str(), 0700) != 0) return file_error("create", temporary);
  const auto mine = lock_directory(temporary, LOCK_EX);
  if (!mine) return mine.error();
  ::flock(all.value().get(), LOCK_UN);
  auto unpacked = unpack_into(path_of(name), temporary, manifest.value(), text);
  if (unpacked) {
    fault_point("unpack.unpacked");
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0) {
      unpacked = file_error("create", target);
    }
  }
  if (!unpacked) {
    remove_tree(temporary);
    return unpacked.error();
  }
  return manifest;
}

Outcome Checkpoints::unpack_into(const std::string& from, const std::string& to,
                                 const Manifest& manifest, const std::string& text) {
  const OnBytes count = counter(unpacked_bytes(manifest));
  for (const PackedFile& file : manifest.files) {
    fault_point("unpack.part");
    tell("unpacking " + file.name);
    Extractor extractor(to);
    CountingSink out(extractor, count);
    if (auto read = read_pack(from + "/" + file.name, file, out); !read) return read;
  }
  const std::string library = to + "/libcrane.so";
  if (is_there(library) && digest_of_file(library) != manifest.library_digest) {
    return failure(Code::kDamaged, "unpack",
                   from +
                       ": its libcrane.so is not the one its manifest names; use another "
                       "checkpoint");
  }
  return write_file(to + "/" + kManifestName, text);
}

// --- removing

Result<int> Checkpoints::keep(unsigned count, Index relied) {
  const auto all = list();
  if (!all) return all.error();
  bool verified = false;
  unsigned kept = 0;
  int removed = 0;
  std::vector<const Listed*> damaged, surplus;
  for (const Listed& one : all.value()) {
    if (!one.damage.empty() || (one.distrusted && one.manifest.at.index != relied)) {
      damaged.push_back(&one);
    } else if (kept < count || (one.verified && !verified) || one.manifest.at.index == relied) {
      ++kept;
      verified = verified || one.verified;
    } else {
      surplus.push_back(&one);
    }
  }
  if (verified) surplus.insert(surplus.end(), damaged.begin(), damaged.end());
  for (const Listed* one : surplus) {
    const auto gone = remove(one->name);
    if (gone) ++removed;
    if (!gone && gone.error().code != Code::kBusy && gone.error().code != Code::kNotFound) {
      return gone.error();
    }
  }
  return removed;
}

Outcome Checkpoints::remove(const std::string& name) {
  std::uint64_t counter = 0, index = 0;
  const std::string path = path_of(name);
  if (!parse_name(name, counter, index) || !is_there(path)) return not_found(name);
  const auto lock = lock_directory(path, LOCK_EX);
  if (!lock) return lock.error();
  const std::string gone = path_of(".gone-" + name);
  remove_tree(gone);  // of one that was killed
  if (std::rename(path.c_str(), gone.c_str()) != 0) return file_error("remove", path);
  fault_point("remove.renamed");
  if (auto synced = sync_directory(options_.directory); !synced) return synced;
  ::unlink((gone + "/" + kManifestName).c_str());
  fault_point("remove.removing");
  remove_tree(gone);
  tell("removed " + name);
  return Done{};
}

Outcome Checkpoints::clean(Leftovers which) {
  if (!is_there(options_.directory)) return Done{};
  const auto all = lock_all();
  if (!all) return all.error();
  std::error_code failed;
  std::vector<fs::path> leftovers, marks;
  for (const auto& entry : fs::directory_iterator(options_.directory, failed)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t counter = 0, index = 0;
    const bool is_shipment = name.rfind(".ship-", 0) == 0;
    if (name.rfind(".new-", 0) == 0 || name.rfind(".gone-", 0) == 0 ||
        (is_shipment && which == Leftovers::kAll)) {
      leftovers.push_back(entry.path());
    } else if (parse_name(name, counter, index)) {
      marks.push_back(entry.path());
    }
  }
  std::vector<std::pair<std::string, Descriptor>> dead;
  for (const fs::path& path : leftovers) {
    auto lock = lock_directory(path.string(), LOCK_EX);
    if (lock) dead.emplace_back(path.string(), std::move(lock).value());
  }
  // This process owns them now, so processes that begin a checkpoint need not wait.
  ::flock(all.value().get(), LOCK_UN);
  for (const auto& [path, lock] : dead) remove_tree(path);
  for (const fs::path& path : marks) {
    const std::string temporary = path.string() + "/" + kMark + ".tmp";
    if (is_there(temporary) && lock_directory(path.string(), LOCK_EX)) {
      ::unlink(temporary.c_str());
    }
  }
  return Done{};
}

}  // namespace crane::checkpoint
