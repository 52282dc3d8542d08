// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every program prints with --version.
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

// "Crane 0.1.0, commit 1234567, layout 12", and then the given formats.
std::string version_text(std::initializer_list<Format> formats = {});

}  // namespace crane::setup
