// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/position.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "checkpoint/descriptor.h"

namespace crane::checkpoint {
namespace {

constexpr std::uint64_t kMagic = 0x31736f70656e6172;  // "ranepos1"

std::string path_in(const std::string& directory) { return directory + "/position"; }

}  // namespace

PositionFile::~PositionFile() {
  if (mapped_ != nullptr) munmap(mapped_, sizeof(Mapped));
}

Outcome PositionFile::open(const std::string& directory) {
  if (mapped_ != nullptr) return Done{};  // already open for the node's previous server
  const std::string path = path_in(directory);
  unlink(path.c_str());
  const Descriptor fd(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return system_error("make the file of the position");
  const Mapped fresh{kMagic, {}};
  // Writes the page before it is mapped, so that a full disk is an error here, not a SIGBUS later.
  if (pwrite(fd.get(), &fresh, sizeof fresh, 0) != sizeof fresh) {
    return system_error("write the file of the position");
  }
  void* memory = mmap(nullptr, sizeof(Mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("map the file of the position");
  mapped_ = static_cast<Mapped*>(memory);
  return Done{};
}

std::optional<Position> read_position(const std::string& directory) {
  PositionFile::Mapped found{};
  std::ifstream file(path_in(directory), std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&found), sizeof found)) return {};
  if (found.magic != kMagic || found.position.end > Position::kEnded) return {};
  return found.position;
}

}  // namespace crane::checkpoint
