// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/files/proc_kernel.h"

#include <cstring>

#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/scratch.h"

namespace crane {
namespace {

// Returns the next word from `at`, ended with a zero, and advances `at`; empty at the end of the
// line.
char* take_word(char*& at) noexcept {
  while (*at == ' ') ++at;
  char* const word = at;
  while (*at != ' ' && *at != '\0') ++at;
  if (*at == ' ') *at++ = '\0';
  return word;
}

// Writes the options that have no value: values are sizes and places in the machine's file systems.
void put_options(char* options, ProcText& out) noexcept {
  const char* between = "";
  for (char* at = options; at != nullptr;) {
    char* const end = std::strchr(at, ',');
    if (end != nullptr) *end = '\0';
    if (std::strchr(at, '=') == nullptr) {
      out << between << at;
      between = ",";
    }
    at = end != nullptr ? end + 1 : nullptr;
  }
}

constexpr std::size_t kMountsMax = 512;  // mounts after these get the number 0

// The kernel's numbers of a file's mounts, in its order.
struct MountNames {
  std::uint32_t ids[kMountsMax];
  std::uint64_t devices[kMountsMax];
  std::size_t count = 0;
};

std::uint64_t hash_of(const char* word) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (; *word != '\0'; ++word) {
    hash = (hash ^ static_cast<unsigned char>(*word)) * 0x100000001b3;
  }
  return hash;
}

template <typename Value>
std::uint64_t place_in(const Value (&values)[kMountsMax], std::size_t count,
                       const Value& value) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] == value) return i + 1;
  }
  return 0;
}

std::uint32_t number_in(const char* word) noexcept {
  std::uint32_t number;
  parse_number(word, number);
  return number;
}

void read_names(ProcLines& lines, MountNames& names) noexcept {
  for (char* at; names.count < kMountsMax && (at = lines.next()) != nullptr; ++names.count) {
    names.ids[names.count] = number_in(take_word(at));
    take_word(at);
    names.devices[names.count] = hash_of(take_word(at));
  }
}

// "number parent device root place options optional.. - type source options".
void put_mount(char* at, const MountNames& names, ProcText& out) noexcept {
  const std::uint32_t id = number_in(take_word(at));
  const std::uint32_t parent = number_in(take_word(at));
  const std::uint64_t device = hash_of(take_word(at));
  take_word(at);
  out << place_in(names.ids, names.count, id) << " " << place_in(names.ids, names.count, parent)
      << " 0:" << place_in(names.devices, names.count, device) << " / " << take_word(at) << " ";
  put_options(take_word(at), out);
  while (*at != '\0' && std::strcmp(take_word(at), "-") != 0) {
  }
  const char* const type = take_word(at);
  take_word(at);
  out << " - " << type << " " << type << " ";
  put_options(take_word(at), out);
  out << "\n";
}

bool ends_with(const char* text, const char* end) noexcept {
  const std::size_t all = std::strlen(text), size = std::strlen(end);
  return all >= size && std::strcmp(text + all - size, end) == 0;
}

template <typename Put>
long rewrite(const char* path, Put put) noexcept {
  const Scratch<ProcLines> memory;
  ProcLines& lines = memory[0];
  if (!lines.open(path)) return lines.error();
  while (char* const line = lines.next()) put(line);
  lines.close();
  return 0;
}

}  // namespace

long write_mountinfo(const char* path, ProcText& out) noexcept {
  const Scratch<MountNames> names;
  {
    const Scratch<ProcLines> memory;
    if (!memory[0].open(path)) return memory[0].error();
    read_names(memory[0], names[0]);
    memory[0].close();
  }
  return rewrite(path, [&](char* line) { put_mount(line, names[0], out); });
}

// "source place type options 0 0".
long write_mounts(const char* path, ProcText& out) noexcept {
  return rewrite(path, [&](char* at) {
    take_word(at);
    const char* const place = take_word(at);
    const char* const type = take_word(at);
    out << type << " " << place << " " << type << " ";
    put_options(take_word(at), out);
    out << " 0 0\n";
  });
}

// "addresses permissions offset device inode   name".
long write_maps(const char* path, ProcText& out) noexcept {
  return rewrite(path, [&](char* at) {
    for (int i = 0; i < 3; ++i) out << take_word(at) << " ";
    take_word(at);
    const bool of_file = std::strcmp(take_word(at), "0") != 0;
    while (*at == ' ') ++at;
    out << (of_file ? "08:01 " : "00:00 ") << (of_file ? (hash_of(at) >> 33) + 1 : 0);
    if (*at != '\0') out << "                          " << at;
    out << "\n";
  });
}

long write_fdinfo(const char* path, ProcText& out) noexcept {
  return rewrite(path, [&](const char* line) {
    if (begins_with(line, "pos:") || begins_with(line, "flags:")) out << line << "\n";
  });
}

// The kernel's documented files (its Documentation/ABI) whose text changes while a machine runs.
SysFile sort_of(const char* path) noexcept {
  static constexpr const char* kPlaces[] = {
      "/proc/fs/",     "/sys/kernel/slab/", "/sys/kernel/irq/", "/sys/kernel/mm/ksm/",
      "/sys/fs/ext4/", "/sys/fs/xfs/",      "/sys/fs/btrfs/",   "/sys/fs/f2fs/",
      "/sys/fs/fuse/", "/sys/fs/nfs/",      "/sys/fs/bcache/",  "/sys/devices/virtual/bdi/"};
  static constexpr const char* kParts[] = {
      "/power/",       "/power_supply/", "/powercap/",  "/intel-rapl", "/statistics/", "/stats/",
      "/counters/",    "/hw_counters/",  "/cpufreq/",   "/thermal",    "/hwmon",       "/rtc",
      "/cpuidle/stat", "/acpi_cppc/",    "/hugepages-", "/edac/",      "/wakeup/",     "/aer_"};
  static constexpr const char* kEnds[] = {"/stat",
                                          "/vmstat",
                                          "/numastat",
                                          "/meminfo",
                                          "/inflight",
                                          "/mm_stat",
                                          "/io_stat",
                                          "/bd_stat",
                                          "/iorequest_cnt",
                                          "/iodone_cnt",
                                          "/ioerr_cnt",
                                          "/iotmo_cnt",
                                          "/carrier_changes",
                                          "/carrier_up_count",
                                          "/carrier_down_count",
                                          "/refcnt",
                                          "/pages_collapsed",
                                          "/full_scans",
                                          "/uevent_seqnum",
                                          "/wakeup_count",
                                          "/oops_count",
                                          "/warn_count"};
  for (const char* place : kPlaces) {
    if (begins_with(path, place)) return SysFile::kCounter;
  }
  if (!begins_with(path, "/sys/")) return SysFile::kKernels;
  if (begins_with(path, "/sys/fs/cgroup/")) return SysFile::kHidden;
  for (const char* part : kParts) {
    if (std::strstr(path, part) != nullptr) return SysFile::kCounter;
  }
  for (const char* end : kEnds) {
    if (ends_with(path, end)) return SysFile::kCounter;
  }
  return SysFile::kKernels;
}

}  // namespace crane
