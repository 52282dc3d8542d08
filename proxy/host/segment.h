// SPDX-License-Identifier: Apache-2.0
#pragma once
// The replica's directory of shared files, which the server sees as /run/crane: the segment, the
// doorbell, the check-in socket and libcrane.so.
//
// Threads: one; created before the server starts, removed after it ended.

#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <memory>
#include <string>

#include "consensus/fabric/sparse_file.h"
#include "dmt/base/result.h"
#include "dmt/layout.h"
#include "proxy/host/config.h"
#include "proxy/host/scheduler_link.h"

namespace crane::node {

inline constexpr const char* kServerDirectory = "/run/crane";
// Files that the server maps or has open in it, and that a checkpoint keeps: a restore must find
// them with the same size.  Their content belongs to the instant at which the server is paused.
inline constexpr const char* kSharedState[] = {"segment", "runtime.log"};
inline constexpr const char* kSharedLibrary = "libcrane.so";
// The library of this build, beside that of a checkpoint: for the next server that is started.
inline constexpr const char* kOwnLibrary = "libcrane.own";

// Memory kept ready for each kind that the server uses without the node.
inline constexpr std::size_t kSegmentAhead = 512U << 10;

class Segment final : public SchedulerLink::Memory {
 public:
  // Creates <shm_dir>/r<i> from nothing.  Errors: kFull, kDenied, kSystem; `what` names the step.
  static Result<std::unique_ptr<Segment>> create(const Config& config);
  // As create(), with the segment and the library of an unpacked checkpoint, for a server that is
  // restored from it.  More errors: kDamaged, kWrongVersion.
  static Result<std::unique_ptr<Segment>> adopt(const Config& config,
                                                const std::string& checkpoint);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Resets the segment to its state after create(), at the same address.  REQUIRES: no process of a
  // server maps it.  `library`: also replaces the library if it is a checkpoint's; not allowed
  // while the library is packed into another checkpoint.
  Outcome renew(const Config& config, bool library);

  // Allocates the memory that node and server will need next, before they use it (ROOM-1).  False:
  // the machine has no room now, and inputs must wait.
  //   INVARIANT ROOM-3  Memory is allocated for entries that slot 0 pushes and for what their
  //                 admission makes: make_room(), called before each entry.  Output, descriptors
  //                 and files that the server makes have kSegmentAhead bytes of each kind.
  bool look_ahead() noexcept;
  bool make_room(std::size_t entry_bytes) noexcept override;
  // Whether the last look_ahead() found no room.
  bool short_of_memory() const noexcept { return short_; }

  dmt::Layout& layout() noexcept { return *layout_; }
  const std::string& directory() const noexcept { return directory_; }
  int doorbell_fd() const noexcept { return doorbell_; }  // readable after a ring
  int checkin_fd() const noexcept { return checkin_; }    // a listening SOCK_SEQPACKET socket
  // The digest of the libcrane.so that the server loads: this build's, or a checkpoint's.
  const std::string& library_digest() const noexcept { return library_digest_; }

 private:
  explicit Segment(std::string directory) : directory_(std::move(directory)) {}
  Outcome make_directory();
  Outcome initialise(const Config& config);
  Outcome create_file(const Config& config);
  Outcome adopt_file(const Config& config, const std::string& from);
  Outcome adopt_log(const std::string& from);
  Outcome map();
  Outcome open_doorbell();
  Outcome open_checkin();
  Outcome copy_library(const std::string& from, const char* name = kSharedLibrary);
  Outcome take_own_library();
  bool back(const void* from, std::size_t bytes) noexcept;
  bool back_ring(const RingLayout& ring, std::size_t bytes) noexcept;
  Outcome back_start();

  std::string directory_, library_digest_;
  boost::interprocess::mapped_region region_;
  consensus::shm::SparseFile file_;
  bool short_ = false;
  std::uint64_t entry_blocks_ = 0;  // needed by entries pushed and not admitted
  dmt::Layout* layout_ = nullptr;
  int doorbell_ = -1;
  int checkin_ = -1;
};

}  // namespace crane::node
