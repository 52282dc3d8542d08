// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/ground/loaded_texts.h"

#include <link.h>
#include <sys/auxv.h>

#include "runtime/preload/ground/real.h"

namespace crane {
namespace {

LoadedText libc;
// The texts of ld.so, the vDSO and libcrane.so.
constexpr std::size_t kTrustedMax = 4;
LoadedText trusted[kTrustedMax];
std::size_t trusted_used = 0;

struct Search {
  std::uintptr_t address;
  LoadedObject found;
};

LoadedText executable_part(const dl_phdr_info& object) noexcept {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = object.dlpi_phdr[i];
    if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0) {
      return {object.dlpi_addr + p.p_vaddr, p.p_memsz};
    }
  }
  return {};
}

int look_at(dl_phdr_info* object, std::size_t, void* given) noexcept {
  auto& search = *static_cast<Search*>(given);
  const LoadedText text = executable_part(*object);
  if (!text.holds(search.address)) return 0;
  search.found = {text, object->dlpi_name, object->dlpi_addr};
  return 1;
}

void trust(LoadedText text) noexcept {
  if (text.size != 0 && trusted_used < kTrustedMax) trusted[trusted_used++] = text;
}

// ld.so reports its load address but not its text, so this finds the object at that address.
int look_for_base(dl_phdr_info* object, std::size_t, void* base) noexcept {
  if (object->dlpi_addr != *static_cast<const std::uintptr_t*>(base)) return 0;
  trust(executable_part(*object));
  return 0;
}

std::uintptr_t address_in_own_text() noexcept {
  return reinterpret_cast<std::uintptr_t>(&find_loaded_texts);
}

}  // namespace

LoadedObject find_object(std::uintptr_t address) noexcept {
  Search search{address, {}};
  dl_iterate_phdr(look_at, &search);
  return search.found;
}

void find_loaded_texts() noexcept {
  libc = find_object(reinterpret_cast<std::uintptr_t>(real::syscall.get())).text;
  trust(find_object(address_in_own_text()).text);
  std::uintptr_t loader = getauxval(AT_BASE);
  if (loader != 0) dl_iterate_phdr(look_for_base, &loader);
  std::uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso != 0) dl_iterate_phdr(look_for_base, &vdso);
}

LoadedText libc_text() noexcept { return libc; }
LoadedText own_text() noexcept { return find_object(address_in_own_text()).text; }

bool is_trusted(std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < trusted_used; ++i) {
    if (trusted[i].holds(address)) return true;
  }
  return false;
}

bool is_libc_or_trusted(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return libc.holds(at) || is_trusted(at);
}

}  // namespace crane
