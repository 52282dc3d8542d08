// SPDX-License-Identifier: Apache-2.0
#include "proxy/ticks/process_code.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "dmt/base/build_id.h"

namespace crane::ticks {
namespace {

// A thread may stop anywhere in these objects while it holds one of their locks.
bool may_have_points(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const std::string_view beginning : {"libc.so", "libc-", "ld-", "ld.so", "libcrane", "["}) {
    if (name.starts_with(beginning)) return false;
  }
  return !name.empty();
}

}  // namespace

ProcessCode::ProcessCode(pid_t pid)
    : memory_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC)) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  std::uint64_t object = 0;
  std::string object_name;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode;
    std::getline(words >> std::ws, path);
    const std::uint64_t begin = std::stoull(range, nullptr, 16);
    const std::uint64_t end = std::stoull(range.substr(range.find('-') + 1), nullptr, 16);
    if (std::stoull(offset, nullptr, 16) == 0 && inode != "0") {
      object = begin;
      object_name = path;
    }
    if (rights.size() < 3 || rights[2] != 'x' || inode == "0" || path != object_name) continue;
    Part& part = parts_.emplace_back();
    part.begin = begin;
    part.end = end;
    part.object = object;
    part.name = path;
  }
}

ProcessCode::~ProcessCode() {
  if (memory_ >= 0) ::close(memory_);
}

bool ProcessCode::read(std::uint64_t address, void* out, std::size_t bytes) const {
  return ::pread(memory_, out, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

std::uint64_t ProcessCode::build_of(std::uint64_t notes, std::size_t bytes) const {
  std::vector<unsigned char> text(std::min<std::size_t>(bytes, 4096));
  return read(notes, text.data(), text.size()) ? build_id(text.data(), text.size()) : 0;
}

void ProcessCode::read_object(Part& part) const {
  part.is_read = true;
  Elf64_Ehdr elf{};
  if (!read(part.object, &elf, sizeof elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
    return;
  std::vector<Elf64_Phdr> table(elf.e_phnum);
  if (!read(part.object + elf.e_phoff, table.data(), table.size() * sizeof table[0])) return;
  const auto first = std::find_if(table.begin(), table.end(),
                                  [](const Elf64_Phdr& p) { return p.p_type == PT_LOAD; });
  if (first == table.end()) return;
  Code& code = part.code;
  code.base = part.object - (first->p_vaddr & ~std::uint64_t{4095});
  for (const Elf64_Phdr& p : table) {
    if (p.p_type == PT_NOTE && code.build == 0)
      code.build = build_of(code.base + p.p_vaddr, p.p_memsz);
  }
  part.bytes.resize(part.end - part.begin);
  if (!read(part.begin, part.bytes.data(), part.bytes.size())) part.bytes.clear();
  code.begin = part.begin;
  code.bytes = part.bytes;
  code.name = part.name;
  code.may_be_point = may_have_points(part.name);
}

const Code* ProcessCode::at(std::uint64_t address) {
  for (Part& part : parts_) {
    if (address < part.begin || address >= part.end) continue;
    if (!part.is_read) read_object(part);
    return &part.code;
  }
  return nullptr;
}

}  // namespace crane::ticks
