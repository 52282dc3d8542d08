// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output of --version of every program, and the versions by which builds are compared.
//
// Threads: plain function.

#include <cstdint>
#include <initializer_list>
#include <string>

namespace crane::setup {

// The version of a format that a program reads or writes.
struct Format {
  const char* name;
  std::uint64_t version;
};

// The abbreviated commit of the build; "unknown" if it was built outside of a repository.
const char* commit();
// dmt::kLayoutVersion: the version of the memory that a replica's node and libcrane.so share.
std::uint32_t segment_version();
// "wire 1, log 1, schedule 1, checkpoint 2".  Builds with equal texts may run in one group
// (dmt/base/versions.h).
std::string agreed_versions_text();
// "Crane 0.1.0, commit 1234567, wire 1, ..., segment 12", followed by the given formats.
std::string version_text(std::initializer_list<Format> formats = {});

}  // namespace crane::setup
