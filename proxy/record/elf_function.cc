// SPDX-License-Identifier: Apache-2.0
// function_at(): just enough of ELF.  The file may contain anything, so every offset in it is
// checked.
#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "proxy/record/turn_names.h"

namespace crane::proxy {
namespace {

constexpr std::uintmax_t kFileMax = 1u << 30;

class Elf {
 public:
  explicit Elf(const std::string& path) {
    std::error_code none;  // then the size is unknown
    const std::uintmax_t size = std::filesystem::file_size(path, none);
    std::ifstream file(path, std::ios::binary);
    if (none || size > kFileMax || !file) return;
    bytes_.resize(size);
    if (!file.read(bytes_.data(), static_cast<std::streamsize>(size))) return;
    good_ = read(0, head_) && std::memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0 &&
            head_.e_ident[EI_CLASS] == ELFCLASS64 && head_.e_ident[EI_DATA] == ELFDATA2LSB;
  }

  // The address where the byte at `offset` is loaded, relative to the file's base; 0: not loaded.
  std::uint64_t address_of(std::uint64_t offset) const {
    Elf64_Phdr part{};
    for (unsigned i = 0; good_ && i < head_.e_phnum; ++i) {
      if (!read(head_.e_phoff + i * sizeof part, part)) break;
      if (part.p_type == PT_LOAD && offset >= part.p_offset &&
          offset - part.p_offset < part.p_filesz) {
        return offset - part.p_offset + part.p_vaddr;
      }
    }
    return 0;
  }

  // The function that contains `address`, from the full symbol table or else the dynamic one.
  std::string function(std::uint64_t address) const {
    for (const std::uint32_t type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
      for (unsigned i = 0; good_ && i < head_.e_shnum; ++i) {
        Elf64_Shdr table{}, names{};
        if (!section(i, table) || table.sh_type != type || !section(table.sh_link, names)) continue;
        const std::string found = in_table(table, names, address);
        if (!found.empty()) return found;
      }
    }
    return "";
  }

 private:
  template <typename T>
  bool read(std::uint64_t at, T& value) const {
    if (bytes_.size() < sizeof value || at > bytes_.size() - sizeof value) return false;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return true;
  }
  bool section(std::uint32_t number, Elf64_Shdr& header) const {
    return number < head_.e_shnum && read(head_.e_shoff + number * sizeof header, header);
  }
  std::string text(std::uint64_t at) const {
    if (at >= bytes_.size()) return "";
    const std::size_t end = std::string_view(bytes_.data(), bytes_.size()).find('\0', at);
    return end == std::string_view::npos ? "" : std::string(bytes_.data() + at, end - at);
  }
  std::string in_table(const Elf64_Shdr& table, const Elf64_Shdr& names,
                       std::uint64_t address) const {
    Elf64_Sym symbol{};
    for (std::uint64_t i = 0; i < table.sh_size / sizeof symbol; ++i) {
      if (!read(table.sh_offset + i * sizeof symbol, symbol)) break;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value ||
          address - symbol.st_value >= symbol.st_size) {
        continue;
      }
      const std::string name = text(names.sh_offset + symbol.st_name);
      return name.empty() ? "" : fmt::format("{}+0x{:x}", name, address - symbol.st_value);
    }
    return "";
  }

  std::vector<char> bytes_;
  Elf64_Ehdr head_{};
  bool good_ = false;
};

}  // namespace

std::string function_at(const std::string& path, std::uint64_t offset) {
  const Elf elf(path);
  const std::uint64_t address = elf.address_of(offset);
  return address == 0 ? "" : elf.function(address);
}

}  // namespace crane::proxy
