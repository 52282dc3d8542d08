// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every program prints with --version, and the versions by which builds are compared.
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

// Of the build, abbreviated; "unknown" outside of a repository.
const char* commit();
// dmt::kLayoutVersion: what a node and libcrane.so of one replica have in common.
std::uint32_t segment_version();
// "wire 1, log 1, schedule 1, checkpoint 2": builds for which this is equal may run in one group
// (dmt/base/versions.h).
std::string agreed_versions_text();
// "Crane 0.1.0, commit 1234567, wire 1, ..., segment 12", and then the given formats.
std::string version_text(std::initializer_list<Format> formats = {});

}  // namespace crane::setup
