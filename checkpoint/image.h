// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints of one replica as files: `<replica's directory>/checkpoints/`, with
//
//   .new-<index>-<pid>[-<n>]/  one under construction: raw parts, filled by the dumping process
//     images/ upper/ segment libcrane.so
//   <view counter>.<index>/    a published one: manifest.json and <part>.pack (pack.h); also
//                              `verified` when verify() found it correct, and `differed` if a
//                              replica that began there differed from the others
//   .ship-<name>/              one that is arriving from another replica; resumes where it stopped
//   .gone-<name>/              one that is being removed
//   .lock                      held while a process looks for the owners of directories, or makes
//                              one to unpack or receive in
//
// INVARIANT IMAGE-1  A directory with a checkpoint's name is complete and on disk: it got the name
// in
//               one rename, after everything was synced.  Nothing in it changes but the marks
//               `verified` and `differed`.
// INVARIANT IMAGE-2  A checkpoint is unpacked completely or not at all, and only if every byte was
//               checked and it belongs to this group, log and layout.
// INVARIANT IMAGE-3  keep() never removes the newest verified checkpoint that is not distrusted.
// INVARIANT IMAGE-5  A checkpoint that was announced to the group, so that stores may cut the log
//               there, stays until a newer one is announced.
// INVARIANT IMAGE-4  An operation that fails or is killed does not change published checkpoints.
//               Once its process is dead, clean() removes everything else that it left.  The lock
//               on the directory shows whether the process lives: the kernel drops it at its end.
//
// Threads: one object, one thread or process.  Several objects, also of several processes, may work
// on one directory.  list() and begin() only read or write a few small files.  All other calls
// block for as long as the disk and zstd take, so a node runs them in a Worker (worker.h).
// Errors: each has a sentence for the operator.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace crane::checkpoint {

// A checkpoint under construction.  Its directory belongs to this process until the object is
// destroyed.  A forked child may fill, publish or abandon it while the parent keeps the object.
struct Staging {
  std::string path;
  Descriptor lock;
  std::string images() const { return path + "/images"; }  // exists, empty
  std::string upper() const { return path + "/upper"; }    // copy_tree() makes it
  std::string segment() const { return path + "/segment"; }
  std::string library() const { return path + "/libcrane.so"; }
};

struct Listed {
  std::string name, path;
  bool verified = false;
  bool distrusted = false;  // note_difference()
  std::string damage;       // why the manifest is unusable; then `manifest` is empty
  Manifest manifest;
  std::uint64_t bytes() const { return manifest.bytes(); }
  // True if its manifest is usable and names the log with this digest.
  bool belongs_to(const std::string& log_digest) const {
    return damage.empty() && manifest.log_digest == log_digest;
  }
};

// The leftovers that clean() removes; kAll includes shipments that could be resumed.
enum class Leftovers { kAllButShipments, kAll };

class Checkpoints {
 public:
  struct Options {
    std::string directory;  // ".../checkpoints"; made when absent
    int level = 1;          // zstd's level; 1 packs as fast as a disk writes
    // Called at each step, for the event log and status; may be empty.
    std::function<void(const std::string& step)> progress;
    // Called with the bytes of files that are packed, verified, unpacked, sent or received, and
    // with all of them (about as many: the files are measured by their sizes); may be empty.
    std::function<void(std::uint64_t done, std::uint64_t of)> bytes = {};
  };
  explicit Checkpoints(Options options) : options_(std::move(options)) {}

  // --- making one
  Result<Staging> begin(Index index);
  // Packs all parts of the staging directory and publishes them; returns the checkpoint's name.
  // Fills in manifest.files, library_digest (if there is a libcrane.so) and time if it is 0.
  // Removes the staging directory, also on errors: kExists, kFull, kBadArgument a part that the
  // tier needs is missing, kSystem.
  Result<std::string> publish(const Staging& staging, Manifest manifest);
  void abandon(const Staging& staging);

  // --- existing checkpoints
  // Newest first, including damaged ones (Listed::damage).
  Result<std::vector<Listed>> list();
  Result<Listed> find(const std::string& name);  // kNotFound; "newest": the first undamaged one
  // Reads the whole checkpoint, and sets or removes the mark `verified`. kDamaged names the file.
  Outcome verify(const std::string& name);
  // Records that a replica that began at this checkpoint differed from the others at log index
  // `at`, or that its server did not start (`at`: the checkpoint's index).  The mark outlives the
  // process.  After kDifferencesMost differences in a row at the same index, the checkpoint is
  // distrusted: it lacks something, or the server's files on this machine have changed.
  static constexpr unsigned kDifferencesMost = 2;
  Outcome note_difference(const std::string& name, Index at);
  // Reads the current mark; false if there is no such checkpoint.
  bool is_distrusted(const std::string& name);

  // --- unpacking
  // Makes `target`, which must not exist, with the content of the staging directory and the
  // manifest.  Checks everything; on errors `target` does not exist.  Not synced: after a loss of
  // power, unpack again. kNotFound, kExists, kDamaged, kBadArgument, kWrongVersion, kFull, kBusy
  // another process unpacks there.
  Result<Manifest> unpack(const std::string& name, const std::string& target,
                          const Expected& expected);

  // Returns a descriptor; while it is open no process removes the checkpoint. kNotFound, kBusy.
  Result<Descriptor> hold(const std::string& name);

  // --- removing
  // Removes all but the `count` newest, the newest verified one and the one at `relied`, on which
  // stores of the log rely (IMAGE-5; 0: none).  Damaged and distrusted ones do not count; they are
  // removed only if a verified one stays.  A checkpoint that is being read stays, too.  Returns how
  // many were removed.
  Result<int> keep(unsigned count, Index relied = Index{0});
  Outcome remove(const std::string& name);  // kBusy: it is being read
  // Removes the leftovers of dead processes.
  Outcome clean(Leftovers which);

  // --- shipping
  // Copies a checkpoint into the directory of checkpoints `to`, and verifies it there.  Resumes an
  // interrupted copy.  Returns at once if `to` has it, verified.
  Outcome ship(const std::string& name, const std::string& to);
  // A checkpoint that has arrived in part and that no process receives now; empty name: none.
  struct Arriving {
    std::string name;
    std::uint64_t bytes = 0;  // the bytes that have arrived
  };
  Arriving arriving();

  // For a transfer.
  void report_bytes(std::uint64_t done, std::uint64_t of) const {
    if (options_.bytes) options_.bytes(done, of);
  }

 private:
  friend class Incoming;
  friend class Outgoing;
  std::string path_of(const std::string& name) const { return options_.directory + "/" + name; }
  void tell(const std::string& step) {
    if (options_.progress) options_.progress(step);
  }
  Outcome make_directory();
  Result<Descriptor> lock_all();
  Result<Staging> make_staging(const std::string& path);
  Error not_found(const std::string& name);
  Result<Manifest> read_manifest(const std::string& name, std::string& text);
  Result<std::string> pack_all(const std::string& staging, Manifest manifest);
  Outcome rename_published(const std::string& from, const std::string& name, const char* fault);
  // Counts the bytes of an operation on `of` bytes, for options_.bytes.
  OnBytes counter(std::uint64_t of);
  Outcome check(const std::string& path, const Manifest& manifest);
  Outcome mark(const std::string& path, const std::string& manifest_text);
  struct Difference {
    std::uint64_t at = 0;  // log index
    unsigned times = 0;    // in a row
  };
  Difference difference_of(const std::string& path);
  Outcome unpack_into(const std::string& from, const std::string& to, const Manifest& manifest,
                      const std::string& text);

  Options options_;
};

// Reads a checkpoint piece by piece, and keeps it from being removed meanwhile.
class Outgoing {
 public:
  // `here`: the directory with the checkpoint.
  explicit Outgoing(Checkpoints& here) : here_(here) {}

  Outcome begin(const std::string& name);  // kNotFound, kBusy, kDamaged
  const std::string& manifest_text() const { return text_; }
  const Manifest& manifest() const { return manifest_; }
  // Fills `to` from `file`, one of the manifest's; reads fewer bytes at its end. kDamaged: the file
  // ends before `offset`.
  Result<std::size_t> read(const std::string& file, std::uint64_t offset, std::span<std::byte> to);

 private:
  Checkpoints& here_;
  std::string path_, text_;
  Manifest manifest_;
  Descriptor lock_, file_;
  std::string open_;  // the name of file_
};

// Receives a checkpoint piece by piece from any transport, and resumes an interrupted transfer.  It
// locks the directory meanwhile.
class Incoming {
 public:
  // `here`: the directory that receives it.
  explicit Incoming(Checkpoints& here) : here_(here) {}

  // The first call, with the manifest's text. kExists: `here` has it already, complete and
  // verified. kBusy: another process receives it.  Removes the rest of another checkpoint's
  // shipment.
  Outcome begin(const std::string& manifest_text);
  // The bytes needed next: a file and an offset.  Empty name: none, call finish().
  struct Wanted {
    std::string file;
    std::uint64_t offset = 0, bytes = 0;  // bytes: up to the file's end
  };
  const Wanted& wanted() const { return wanted_; }
  // The number of bytes that have arrived.
  std::uint64_t arrived() const;
  // Adds the next bytes of wanted(), at most wanted().bytes of them.
  Outcome add(std::span<const std::byte> bytes);
  // Verifies, publishes and marks it. kDamaged: wanted() is the damaged file again.
  Outcome finish();

 private:
  Outcome find_wanted();

  Checkpoints& here_;
  std::string name_, path_, text_;
  Manifest manifest_;
  Descriptor lock_, file_;
  Wanted wanted_;
};

}  // namespace crane::checkpoint
