// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/container_supervisor.h"
#include "checkpoint/descriptor.h"
#include "checkpoint/fault_points.h"
#include "checkpoint/image.h"

namespace crane::checkpoint {
namespace {

constexpr std::size_t kShipPiece = 1 << 20;
constexpr int kAttempts = 2;  // bytes damaged by a loss of power are fetched again

}  // namespace

Outcome Incoming::begin(const std::string& manifest_text) {
  auto manifest = parse_manifest(manifest_text, "the manifest that arrived");
  if (!manifest) return manifest.error();
  manifest_ = std::move(manifest).value();
  text_ = manifest_text;
  name_ = name_of(manifest_.at);
  path_ = here_.path_of(".ship-" + name_);
  const auto present = here_.find(name_);
  if (present && (present.value().verified || here_.verify(name_))) {
    return failure(Code::kExists, "receive",
                   "there is a verified checkpoint " + name_ + " in " + here_.options_.directory);
  }
  if (present) {
    // It is damaged: replace it.
    if (auto gone = here_.remove(name_); !gone) return gone;
  }
  const auto all = here_.lock_all();
  if (!all) return all.error();
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored) && ::mkdir(path_.c_str(), 0700) != 0) {
    return file_error("create", path_);
  }
  auto lock = lock_directory(path_, LOCK_EX);
  if (!lock) return lock.error();
  lock_ = std::move(lock).value();
  ::flock(all.value().get(), LOCK_UN);
  // One at a time: another checkpoint's shipment will not be resumed.
  for (const auto& entry : std::filesystem::directory_iterator(here_.options_.directory, ignored)) {
    const std::string other = entry.path().string();
    if (entry.path().filename().string().rfind(".ship-", 0) != 0 || other == path_) continue;
    if (lock_directory(other, LOCK_EX)) remove_tree(other);
  }
  const std::string at = path_ + "/" + kManifestName;
  const auto before = read_file(at, kManifestMax);
  if (!before || before.value() != text_) {
    // There is nothing yet, or pieces of another checkpoint with this viewstamp.
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
      remove_tree(entry.path().string());
    }
    if (auto written = write_file(at, text_); !written) return written;
  }
  fault_point("ship.manifest");
  return find_wanted();
}

std::uint64_t Incoming::arrived() const {
  std::uint64_t all = 0;
  for (const PackedFile& file : manifest_.files) {
    struct stat s {};
    if (::stat((path_ + "/" + file.name).c_str(), &s) != 0) continue;
    all += std::min(file.bytes, static_cast<std::uint64_t>(s.st_size));
  }
  return all;
}

Outcome Incoming::find_wanted() {
  wanted_ = {};
  file_ = {};
  for (const PackedFile& file : manifest_.files) {
    const std::string path = path_ + "/" + file.name;
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return file_error("create", path);
    struct stat s {};
    if (::fstat(fd.get(), &s) != 0) return file_error("look at", path);
    auto size = static_cast<std::uint64_t>(s.st_size);
    if (size == file.bytes) continue;
    if (size > file.bytes) {
      if (::ftruncate(fd.get(), 0) != 0) return file_error("write", path);
      size = 0;
    }
    if (::lseek(fd.get(), static_cast<off_t>(size), SEEK_SET) < 0) {
      return file_error("seek in", path);
    }
    wanted_ = {file.name, size, file.bytes - size};
    file_ = std::move(fd);
    break;
  }
  return Done{};
}

Outcome Incoming::add(std::span<const std::byte> bytes) {
  CRANE_ASSERT(!wanted_.file.empty() && bytes.size() <= wanted_.bytes);
  const std::string path = path_ + "/" + wanted_.file;
  if (!write_all(file_.get(), bytes.data(), bytes.size())) {
    const Error failed = file_error("write", path);
    // Half a checkpoint must not occupy a full disk.
    if (failed.code == Code::kFull) remove_tree(path_);
    return failed;
  }
  fault_point("ship.bytes");
  wanted_.offset += bytes.size();
  wanted_.bytes -= bytes.size();
  if (wanted_.bytes > 0) return Done{};
  if (::fsync(file_.get()) != 0) return file_error("sync", path);
  return find_wanted();
}

Outcome Incoming::finish() {
  CRANE_ASSERT(wanted_.file.empty());
  for (const PackedFile& file : manifest_.files) {
    here_.tell("verifying " + file.name + " after its arrival");
    NullSink sink;
    const std::string path = path_ + "/" + file.name;
    const auto read = read_pack(path, file, sink);
    if (read) continue;
    if (read.error().code == Code::kDamaged && ::truncate(path.c_str(), 0) == 0) {
      if (auto found = find_wanted(); !found) return found;
    }
    return read;
  }
  // A killed process may have written files without syncing them.
  for (const PackedFile& file : manifest_.files) {
    const std::string path = path_ + "/" + file.name;
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return file_error("sync", path);
  }
  if (auto marked = here_.mark(path_, text_); !marked) return marked;
  fault_point("ship.verified");
  if (auto named = here_.rename_published(path_, name_, "ship.renamed"); !named) return named;
  here_.tell("received " + name_);
  return Done{};
}

Checkpoints::Arriving Checkpoints::arriving() {
  const std::string beginning = ".ship-";
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(beginning, 0) != 0) continue;
    if (!lock_directory(entry.path().string(), LOCK_EX)) continue;
    Arriving found{name.substr(beginning.size())};
    for (const auto& file : std::filesystem::directory_iterator(entry.path(), none)) {
      const auto size = file.file_size(none);
      if (!none) found.bytes += size;
    }
    return found;
  }
  return {};
}

Outcome Outgoing::begin(const std::string& name) {
  auto lock = here_.hold(name);
  if (!lock) return lock.error();
  auto manifest = here_.read_manifest(name, text_);
  if (!manifest) return manifest.error();
  lock_ = std::move(lock).value();
  manifest_ = std::move(manifest).value();
  path_ = here_.path_of(name);
  open_.clear();
  return Done{};
}

Result<std::size_t> Outgoing::read(const std::string& file, std::uint64_t offset,
                                   std::span<std::byte> to) {
  const std::string path = path_ + "/" + file;
  if (open_ != file) {
    open_.clear();
    file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file_) return file_error("open", path);
    open_ = file;
  }
  const ssize_t n = ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset));
  if (n < 0) return file_error("read", path);
  if (n == 0) {
    return failure(Code::kDamaged, "ship",
                   path + " is damaged (it ends early); ship another replica's checkpoint");
  }
  return static_cast<std::size_t>(n);
}

Outcome Checkpoints::ship(const std::string& name, const std::string& to) {
  Outgoing outgoing(*this);
  if (auto begun = outgoing.begin(name); !begun) return begun;
  Checkpoints there(Options{to, options_.level, options_.progress});
  Incoming incoming(there);
  if (auto begun = incoming.begin(outgoing.manifest_text()); !begun) {
    if (begun.error().code == Code::kExists) return Done{};
    return begun;
  }
  std::vector<std::byte> piece(kShipPiece);
  for (int attempt = 1;; ++attempt) {
    while (!incoming.wanted().file.empty()) {
      const Incoming::Wanted& wanted = incoming.wanted();
      const std::size_t size = std::min<std::uint64_t>(piece.size(), wanted.bytes);
      const auto read = outgoing.read(wanted.file, wanted.offset, {piece.data(), size});
      if (!read) return read.error();
      if (auto added = incoming.add({piece.data(), read.value()}); !added) return added;
    }
    const auto finished = incoming.finish();
    if (finished) return Done{};
    const bool may_help = finished.error().code == Code::kDamaged && attempt < kAttempts;
    if (!may_help) return finished;
  }
}

}  // namespace crane::checkpoint
