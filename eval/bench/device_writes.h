// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the time that an RDMA device itself takes for an entry's bytes: WRITEs through
// libibverbs and nothing else, from one device to two others of this machine.  This is the least
// time of every commit rule that writes to two followers.
//
// Threads: one.  What fails ends the process.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "consensus/fabric/verbs_device.h"

namespace crane::eval {

class DeviceWrites {
 public:
  // `addresses`: of three devices; the first one writes.
  DeviceWrites(const std::vector<std::string>& addresses, std::size_t bytes);
  ~DeviceWrites();

  // Posts one WRITE, signalled, to each of the first `n` (1..2) others; the time until the first
  // has completed, which with two is a majority of three.  `inlined`: the bytes are in the work
  // request.  All have completed when it returns.
  std::uint64_t write(std::size_t n, bool inlined);

 private:
  struct Target;
  void add(const std::string& address);
  void post(const Target& target, bool inlined);
  std::size_t take();

  std::size_t bytes_;
  consensus::verbs::Device device_;
  consensus::verbs::Owned<ibv_pd> domain_;
  consensus::verbs::Owned<ibv_cq> cq_;
  consensus::verbs::Buffers source_;
  consensus::verbs::Buffers::Buffer from_;
  std::vector<std::unique_ptr<Target>> targets_;
};

}  // namespace crane::eval
