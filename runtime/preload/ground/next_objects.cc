// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/next_objects.h"

#include <link.h>
#include <sys/auxv.h>

#include <cstring>

namespace crane {
namespace {

constexpr std::uint16_t kVersionIndex = 0x7fff, kHiddenVersion = 0x8000;
constexpr std::uint16_t kFirstNamedVersion = 2;

// The vDSO is in the list of objects, but dlsym finds no name in it.
bool is_vdso(const dl_phdr_info& object) noexcept {
  const std::uintptr_t image = getauxval(AT_SYSINFO_EHDR);
  const auto headers = reinterpret_cast<std::uintptr_t>(object.dlpi_phdr);
  return image != 0 && headers > image && headers - image < 4096;
}

bool holds(const dl_phdr_info& object, std::uintptr_t address) noexcept {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const Elf64_Phdr& p = object.dlpi_phdr[i];
    if (p.p_type == PT_LOAD && address - object.dlpi_addr - p.p_vaddr < p.p_memsz) return true;
  }
  return false;
}

const Elf64_Dyn* dynamic_of(const dl_phdr_info& object) noexcept {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const Elf64_Phdr& p = object.dlpi_phdr[i];
    if (p.p_type == PT_DYNAMIC) {
      return reinterpret_cast<const Elf64_Dyn*>(object.dlpi_addr + p.p_vaddr);
    }
  }
  return nullptr;
}

// ld.so has relocated the offsets to addresses, except in sections that it cannot write.
template <typename T>
const T* table_at(std::uintptr_t base, std::uintptr_t value) noexcept {
  return reinterpret_cast<const T*>(value < base ? base + value : value);
}

bool is_definition(const Elf64_Sym& s) noexcept {
  const unsigned binding = ELF64_ST_BIND(s.st_info);
  return s.st_shndx != SHN_UNDEF && s.st_value != 0 &&
         (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE);
}

}  // namespace

void NextObjects::collect(const void* address) noexcept {
  count_ = 0;
  complete_ = true;
  struct Walk {
    NextObjects* all;
    std::uintptr_t address;
    bool is_behind;
  } walk{this, reinterpret_cast<std::uintptr_t>(address), false};
  const auto look = [](dl_phdr_info* object, std::size_t, void* given) {
    auto& w = *static_cast<Walk*>(given);
    if (is_vdso(*object)) return 0;
    if (w.is_behind) w.all->add(object->dlpi_addr, dynamic_of(*object));
    w.is_behind = w.is_behind || holds(*object, w.address);
    return 0;
  };
  dl_iterate_phdr(look, &walk);
}

void NextObjects::add(std::uintptr_t base, const Elf64_Dyn* dynamic) noexcept {
  Object o{base, nullptr, nullptr, nullptr, nullptr};
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const std::uintptr_t value = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_GNU_HASH) o.hash = table_at<std::uint32_t>(base, value);
    if (dynamic->d_tag == DT_SYMTAB) o.symbols = table_at<Elf64_Sym>(base, value);
    if (dynamic->d_tag == DT_STRTAB) o.names = table_at<char>(base, value);
    if (dynamic->d_tag == DT_VERSYM) o.versions = table_at<std::uint16_t>(base, value);
  }
  const bool whole = o.hash != nullptr && o.symbols != nullptr && o.names != nullptr;
  if (whole && count_ < kObjectsMax) {
    objects_[count_++] = o;
  } else {
    complete_ = false;
  }
}

// DT_GNU_HASH: four words, a Bloom filter of 64-bit words, buckets, then one word per symbol, with
// the lowest bit set at the end of a bucket's chain.
NextObjects::Match NextObjects::find_in(const Object& o, const char* name, std::uint32_t hash,
                                        void*& found) noexcept {
  const std::uint32_t buckets = o.hash[0], first = o.hash[1], words = o.hash[2];
  const std::uint32_t shift = o.hash[3];
  const auto* filter = reinterpret_cast<const std::uint64_t*>(o.hash + 4);
  const std::uint64_t word = filter[(hash / 64) & (words - 1)];
  if (((word >> (hash % 64)) & (word >> ((hash >> shift) % 64)) & 1) == 0) return Match::kNone;
  const auto* bucket = reinterpret_cast<const std::uint32_t*>(filter + words);
  const std::uint32_t* chain = bucket + buckets;
  std::uint32_t i = buckets == 0 ? 0 : bucket[hash % buckets];
  if (i == 0) return Match::kNone;
  bool other_versions = false;
  for (;; ++i) {
    const std::uint32_t entry = chain[i - first];
    const Elf64_Sym& s = o.symbols[i];
    if ((entry | 1) == (hash | 1) && is_definition(s) &&
        std::strcmp(o.names + s.st_name, name) == 0) {
      const std::uint16_t version = o.versions == nullptr ? 0 : o.versions[i];
      const bool named = (version & kVersionIndex) >= kFirstNamedVersion;
      if (!named || (version & kHiddenVersion) == 0) {
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC) return Match::kAskLoader;
        found = reinterpret_cast<void*>(o.base + s.st_value);
        return Match::kFound;
      }
      other_versions = true;
    }
    if ((entry & 1) != 0) return other_versions ? Match::kAskLoader : Match::kNone;
  }
}

void* NextObjects::find(const char* name, std::uint32_t hash) const noexcept {
  if (!complete_) return nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    void* found = nullptr;
    const Match match = find_in(objects_[i], name, hash, found);
    if (match != Match::kNone) return found;
  }
  return nullptr;
}

}  // namespace crane
