// SPDX-License-Identifier: Apache-2.0
#pragma once
// The checkpoints of one replica as files: `<replica's directory>/checkpoints/`, with
//
//   .new-<index>-<pid>[-<n>]/  one under construction: raw parts, filled by whoever dumps
//     images/ upper/ segment libcrane.so
//   <view counter>.<index>/    a published one: manifest.json, <part>.pack (pack.h) and, when
//                              verify() found all of it well, `verified`; `differed`, if a
//                              replica that began there differed from the others
//   .ship-<name>/              one that is arriving from another replica; goes on where it stopped
//   .gone-<name>/              one that is being removed
//   .lock                      held while the owners of directories are looked for, and one is made
//                              to unpack or receive in
//
// INVARIANT IMAGE-1  What has a checkpoint's name is whole and on disk: it got the name in one
//               rename, after everything was synced.  Nothing in it changes but the marks
//               `verified` and `differed`.
// INVARIANT IMAGE-2  A checkpoint is unpacked entirely or not at all, and only when every byte of
//               it was checked and it is of this group, log and layout.
// INVARIANT IMAGE-3  The newest verified checkpoint that is not distrusted is never removed by
//               keep().
// INVARIANT IMAGE-5  One that the group was told of, so that stores of the log may be cut there,
//               stays until a newer one was told.
// INVARIANT IMAGE-4  An operation that fails or is killed leaves what was published before as it
//               was; what else it leaves, clean() removes once its process is dead (a lock on the
//               directory tells; the kernel drops it with the process).
//
// Threads: one object, one thread or process; several objects, also of several processes, may work
// on one directory.  list() and begin() take as long as some small files; all else blocks for as
// long as the disk and zstd do, so a node runs it in a Worker (worker.h).
// Errors: each has the sentence for an operator.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace crane::checkpoint {

// One under construction.  Its directory is this process' until the object is gone; a forked child
// may fill, publish or abandon it as long as the parent keeps it.
struct Staging {
  std::string path;
  Descriptor lock;
  std::string images() const { return path + "/images"; }  // is there, empty
  std::string upper() const { return path + "/upper"; }    // copy_tree() makes it
  std::string segment() const { return path + "/segment"; }
  std::string library() const { return path + "/libcrane.so"; }
};

struct Listed {
  std::string name, path;
  bool verified = false;
  bool distrusted = false;  // note_difference()
  std::string damage;       // why the manifest cannot be used; then it is empty
  Manifest manifest;
  std::uint64_t bytes() const;  // on disk
  // Whole, as far as its manifest tells, and of the log with this digest.
  bool belongs_to(const std::string& log_digest) const {
    return damage.empty() && manifest.log_digest == log_digest;
  }
};

// What clean() may take of the dead: also what a shipment could go on with?
enum class Leftovers { kAllButShipments, kAll };

class Checkpoints {
 public:
  struct Options {
    std::string directory;  // ".../checkpoints"; made when absent
    int level = 1;          // of zstd; 1 packs as fast as a disk writes
    // Told at each step, for the event log and status; may be empty.
    std::function<void(const std::string& step)> progress;
  };
  explicit Checkpoints(Options options) : options_(std::move(options)) {}

  // --- making one
  Result<Staging> begin(Index index);
  // Packs all that stands in the staging directory, and publishes it; the name of the checkpoint.
  // Fills in manifest.files, library_digest (unless there is no libcrane.so), time when 0.  The
  // staging directory is gone afterwards, also on errors: kExists, kFull, kBadArgument a part
  // that the tier needs is missing, kSystem.
  Result<std::string> publish(const Staging& staging, Manifest manifest);
  void abandon(const Staging& staging);

  // --- what is there
  // Newest first.  A damaged one is in it, and says so.
  Result<std::vector<Listed>> list();
  Result<Listed> find(const std::string& name);  // kNotFound; "newest": the first not damaged
  // Reads all of it; sets the mark, or takes it away.  kDamaged names the file.
  Outcome verify(const std::string& name);
  // A replica that began at this checkpoint differed from the others at log index `at`.  The mark
  // outlives the process.  Where kDifferencesMost in a row were at the same index, it is
  // distrusted: it lacks something, or what the server reads on this machine is not any more what
  // it was.
  static constexpr unsigned kDifferencesMost = 2;
  Outcome note_difference(const std::string& name, Index at);
  // As it is now; of one that is not there: no.
  bool is_distrusted(const std::string& name);

  // --- using one
  // Makes `target`, which must not exist, with what was in the staging directory and the manifest.
  // Checks everything on the way; on errors `target` is not there.  Not synced: who lost power
  // unpacks again.  kNotFound, kExists, kDamaged, kBadArgument, kWrongVersion, kFull, kBusy
  // another process unpacks there.
  Result<Manifest> unpack(const std::string& name, const std::string& target,
                          const Expected& expected);

  // As long as that is open, no process removes the checkpoint.  kNotFound, kBusy.
  Result<Descriptor> hold(const std::string& name);

  // --- having fewer
  // Removes all but the `count` newest, the newest verified one and the one at `relied`, on which
  // stores of the log rely (IMAGE-5; 0: none); damaged and distrusted ones, which do not count,
  // only when a verified one stays.  What is being read stays, too.  How many were removed.
  Result<int> keep(unsigned count, Index relied = Index{0});
  Outcome remove(const std::string& name);  // kBusy: it is being read
  // Removes what dead processes left.
  Outcome clean(Leftovers which);

  // --- shipping
  // Copies one into the directory of checkpoints `to`, where it is verified.  What an interrupted
  // one left there is gone on with.  Done at once when `to` has it, verified.
  Outcome ship(const std::string& name, const std::string& to);
  // One of which a part has arrived, and no process goes on with it; without a name: there is none.
  struct Arriving {
    std::string name;
    std::uint64_t bytes = 0;  // that are here
  };
  Arriving arriving();

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
  Outcome check(const std::string& path, const Manifest& manifest);
  Outcome mark(const std::string& path, const std::string& manifest_text);
  struct Difference {
    std::uint64_t at = 0;  // log index
    unsigned times = 0;    // in a row
  };
  Difference difference_of(const std::string& path);
  Outcome remove_locked(const std::string& name);
  Outcome unpack_into(const std::string& from, const std::string& to, const Manifest& manifest,
                      const std::string& text);

  Options options_;
};

// Gives a checkpoint piece by piece; it is not removed meanwhile.
class Outgoing {
 public:
  // `here`: where it is.
  explicit Outgoing(Checkpoints& here) : here_(here) {}

  Outcome begin(const std::string& name);  // kNotFound, kBusy, kDamaged
  const std::string& manifest_text() const { return text_; }
  const Manifest& manifest() const { return manifest_; }
  // Fills `to`, or less at the end of `file`, one of its manifest's; kDamaged: it ends before.
  Result<std::size_t> read(const std::string& file, std::uint64_t offset, std::span<std::byte> to);

 private:
  Checkpoints& here_;
  std::string path_, text_;
  Manifest manifest_;
  Descriptor lock_, file_;
  std::string open_;  // the name of file_
};

// Receives a checkpoint piece by piece, whatever brings the pieces, and goes on where a former
// one was interrupted.  The directory is locked meanwhile.
class Incoming {
 public:
  // `here`: where it arrives.
  explicit Incoming(Checkpoints& here) : here_(here) {}

  // First: its manifest's text.  kExists: it is here already, whole and verified.  kBusy: another
  // process receives it.  What is left of a shipment of another checkpoint is removed.
  Outcome begin(const std::string& manifest_text);
  // Which bytes are wanted next: a file and where in it; an empty name: none, finish().
  struct Wanted {
    std::string file;
    std::uint64_t offset = 0, bytes = 0;  // bytes: up to its end
  };
  const Wanted& wanted() const { return wanted_; }
  // How much of it is there.
  std::uint64_t arrived() const;
  // The next bytes of wanted(), at most wanted().bytes of them.
  Outcome add(std::span<const std::byte> bytes);
  // Verifies, publishes and marks it.  kDamaged: the file that differs is wanted() again.
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
