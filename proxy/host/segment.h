// SPDX-License-Identifier: Apache-2.0
#pragma once
// The replica's directory of shared things, as the server will see it under /run/crane: the
// segment, the doorbell, the check-in socket and libcrane.so.
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
// What the server maps or has open there, and a checkpoint keeps: it must be found with its size.
// What changes belongs to the instant at which the server is paused.
inline constexpr const char* kSharedState[] = {"segment", "runtime.log"};
inline constexpr const char* kSharedLibrary = "libcrane.so";
// This build's, beside a checkpoint's: for the server that is started next.
inline constexpr const char* kOwnLibrary = "libcrane.own";

// Of each kind of memory that the server uses up by itself.
inline constexpr std::size_t kSegmentAhead = 512U << 10;

class Segment final : public SchedulerLink::Memory {
 public:
  // Makes <shm_dir>/r<i> again.  Errors: kFull, kDenied, kSystem; `what` names the step.
  static Result<std::unique_ptr<Segment>> create(const Config& config);
  // The same with the segment and the library of an unpacked checkpoint, for a server that is
  // restored from it.  Besides: kDamaged, kWrongVersion.
  static Result<std::unique_ptr<Segment>> adopt(const Config& config,
                                                const std::string& checkpoint);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // As create() left it, at the same place.  REQUIRES: no process of a server maps it.  `library`:
  // also the library, if it is a checkpoint's; not while it is packed into another checkpoint.
  Outcome renew(const Config& config, bool library);

  // Takes the memory from the machine that node and server will need next, ahead of what they use
  // (ROOM-1).  False: there is no room for it now, and inputs must wait.
  //   INVARIANT ROOM-3  What slot 0 pushes, and what its admission makes, fits into memory that is
  //                 there: make_room(), asked before each entry.  What the server makes by itself
  //                 (output, descriptors, files) has kSegmentAhead bytes of each kind.
  bool look_ahead() noexcept;
  bool make_room(std::size_t entry_bytes) noexcept override;
  // The last look_ahead() found no room.
  bool short_of_memory() const noexcept { return short_; }

  dmt::Layout& layout() noexcept { return *layout_; }
  const std::string& directory() const noexcept { return directory_; }
  int doorbell_fd() const noexcept { return doorbell_; }  // readable after a ring
  int checkin_fd() const noexcept { return checkin_; }    // a listening SOCK_SEQPACKET socket
  // Of the libcrane.so that the server loads: this build's, or a checkpoint's.
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
  std::uint64_t entry_blocks_ = 0;  // that entries may take which were pushed and not admitted
  dmt::Layout* layout_ = nullptr;
  int doorbell_ = -1;
  int checkin_ = -1;
};

}  // namespace crane::node
