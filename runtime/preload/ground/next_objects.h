// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions of the objects that were loaded behind a given one, by name: dlsym(RTLD_NEXT) for many
// names at once.  Each program that starts looks up several hundred; dlsym takes its lock, catches
// errors and hashes the name for each of them.
//
// Threads: the maker's.  Valid as long as no object is loaded or unloaded.
// INVARIANT NEXT-1  What is found is what dlsym(RTLD_NEXT) finds; null means that it is to be asked
//                   (a function that picks its code as it is bound, a name with several versions
//                   and no default one, an object without a GNU hash table, too many objects).

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace crane {

// Of a symbol's name, as DT_GNU_HASH has it.
constexpr std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

class NextObjects {
 public:
  // Those behind the object that holds `address`, instead of those of before.
  void collect(const void* address) noexcept;

  // The default version's address.  REQUIRES collect().
  void* find(const char* name, std::uint32_t hash) const noexcept;

 private:
  static constexpr std::size_t kObjectsMax = 128;

  struct Object {
    std::uintptr_t base;
    const std::uint32_t* hash;  // DT_GNU_HASH
    const Elf64_Sym* symbols;
    const char* names;
    const std::uint16_t* versions;  // null: it has none
  };
  enum class Match : std::uint8_t { kNone, kFound, kAskLoader };

  static Match find_in(const Object& object, const char* name, std::uint32_t hash,
                       void*& found) noexcept;
  void add(std::uintptr_t base, const Elf64_Dyn* dynamic) noexcept;

  Object objects_[kObjectsMax] = {};
  std::size_t count_ = 0;
  bool complete_ = false;  // all of them are here
};

}  // namespace crane
