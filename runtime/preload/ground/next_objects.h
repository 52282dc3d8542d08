// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions by name in the objects that were loaded after a given one: dlsym(RTLD_NEXT) for many
// names at once. Each program looks up several hundred at its start, and dlsym takes its lock,
// catches errors and hashes the name each time.
//
// Threads: the maker's. Valid until an object is loaded or unloaded.
// INVARIANT NEXT-1  A function that is found is the one that dlsym(RTLD_NEXT) finds. Null means:
//     use dlsym (a function whose code is picked when it is bound, a name with several versions and
//     no default, an object without a GNU hash table, too many objects).

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace crane {

// The hash of a symbol's name in DT_GNU_HASH.
constexpr std::uint32_t gnu_hash(const char* name) noexcept {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

class NextObjects {
 public:
  // Collects the objects after the one that contains `address`, and drops previous ones.
  void collect(const void* address) noexcept;

  // Returns the address of the default version. REQUIRES collect().
  void* find(const char* name, std::uint32_t hash) const noexcept;

 private:
  static constexpr std::size_t kObjectsMax = 128;

  struct Object {
    std::uintptr_t base;
    const std::uint32_t* hash;  // DT_GNU_HASH
    const Elf64_Sym* symbols;
    const char* names;
    const std::uint16_t* versions;  // null: none
  };
  enum class Match : std::uint8_t { kNone, kFound, kAskLoader };

  static Match find_in(const Object& object, const char* name, std::uint32_t hash,
                       void*& found) noexcept;
  void add(std::uintptr_t base, const Elf64_Dyn* dynamic) noexcept;

  Object objects_[kObjectsMax] = {};
  std::size_t count_ = 0;
  bool complete_ = false;  // the table holds all objects
};

}  // namespace crane
