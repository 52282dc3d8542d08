// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/processes/vfork_memory.h"

#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "dmt/base/bound.h"
#include "dmt/base/raw.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/user_memory.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/self/thread.h"

extern "C" {
// The start of this library in memory.
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
}

namespace crane::vfork_memory {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPagesMax = 2048;
constexpr std::size_t kWindowMax = 256 * 1024;

}  // namespace

struct Exchange {
  // --- written by the parent before the fork
  std::uintptr_t stack;
  bool whole;
  std::size_t window_bytes;  // upwards from `stack`
  // --- written by the child; `before` when it begins
  bool published;
  bool has_pages;
  int error;
  std::uintptr_t heap_end;
  std::size_t page_count;
  std::uintptr_t addresses[kPagesMax];
  alignas(kPage) unsigned char before[kWindowMax];  // the window when the child began
  unsigned char after[kWindowMax];
  unsigned char pages[kPagesMax][kPage];
};

namespace {

constinit Exchange* of_parent = nullptr;  // set if this process is a child of vfork

template <typename T>
T* pointer_to(std::uintptr_t word) noexcept {
  return reinterpret_cast<T*>(word);
}
template <typename T>
std::uintptr_t word_of(const T* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p);
}

// --- the parent before the fork ------------------------------------------------------------------

// The size of the stack above `stack`. The stack of the first thread ends at the kernel's data;
// that of another thread ends at its control block.
std::size_t bytes_of_window(std::uintptr_t stack) noexcept {
  std::size_t bytes = kWindowMax;
  for (const std::uintptr_t end : {getauxval(AT_RANDOM), std::uintptr_t{real::pthread_self()}}) {
    if (end > stack) bytes = std::min(bytes, end - stack);
  }
  const std::uintptr_t in_first_page = kPage - stack % kPage;
  std::size_t readable = 0;
  while (readable < bytes && is_readable(pointer_to<void>(stack + readable), 1)) {
    readable += readable == 0 ? in_first_page : kPage;
  }
  return std::min(bytes, readable);
}

// --- the child -----------------------------------------------------------------------------------

// Whether an entry of /proc/self/pagemap shows a changed page.
bool is_changed(std::uint64_t entry) noexcept {
  constexpr std::uint64_t kPresent = 1ull << 63, kOfFile = 1ull << 61, kExclusive = 1ull << 56;
  return (entry & (kPresent | kOfFile | kExclusive)) == (kPresent | kExclusive);
}

// Collects the pages of one mapping that parent and child no longer share after fork.
bool collect_mapping(Exchange& x, int pagemap, std::uintptr_t begin, std::uintptr_t end) noexcept {
  constexpr std::size_t kEntries = 4096;
  const Scratch<std::uint64_t> entries(kEntries);
  while (begin < end) {
    const std::size_t count = std::min(kEntries, (end - begin) / kPage);
    const long bytes = static_cast<long>(count * sizeof entries[0]);
    const std::uintptr_t at = begin / kPage * sizeof entries[0];
    if (raw_syscall(SYS_pread64, pagemap, entries.data(), bytes, at) != bytes) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_changed(entries[i])) continue;
      if (x.page_count == kPagesMax) return false;
      const std::uintptr_t page = begin + i * kPage;
      x.addresses[x.page_count] = page;
      std::memcpy(x.pages[x.page_count++], pointer_to<void>(page), kPage);
    }
    begin += count * kPage;
  }
  return true;
}

// Reads a hexadecimal number and moves `text` after it.
std::uintptr_t take_number(const char*& text) noexcept {
  std::uintptr_t number = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9') {
      number = number * 16 + static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      number = number * 16 + static_cast<unsigned>(c - 'a' + 10);
    } else {
      return number;
    }
  }
}

// Collects the mapping of a line of /proc/self/maps: "<begin>-<end> rw-p ...".
bool collect_line(Exchange& x, int pagemap, const char* line) noexcept {
  const std::uintptr_t begin = take_number(line);
  const std::uintptr_t end = take_number(++line);
  const bool is_private =
      std::strncmp(line, " rw-p", 5) == 0 || std::strncmp(line, " rwxp", 5) == 0;
  return !is_private || collect_mapping(x, pagemap, begin, end);
}

bool collect_lines(Exchange& x, int maps, int pagemap) noexcept {
  constexpr std::size_t kBytes = 16 * 1024;
  const Scratch<char> text(kBytes);
  std::size_t kept = 0;
  for (;;) {
    const long got = raw_syscall(SYS_read, maps, text.data() + kept, kBytes - kept);
    if (got <= 0) return got == 0 && kept == 0;
    const char* line = text.data();
    const char* const end = line + kept + got;
    while (const auto* newline = static_cast<const char*>(
               std::memchr(line, '\n', static_cast<std::size_t>(end - line)))) {
      if (!collect_line(x, pagemap, line)) return false;
      line = newline + 1;
    }
    kept = static_cast<std::size_t>(end - line);
    std::memmove(text.data(), line, kept);
  }
}

bool collect_pages(Exchange& x) noexcept {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC;
  const long maps = raw_syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", kFlags, 0);
  if (maps < 0) return false;
  const long pagemap = raw_syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", kFlags, 0);
  const bool done =
      pagemap >= 0 && collect_lines(x, static_cast<int>(maps), static_cast<int>(pagemap));
  if (pagemap >= 0) raw_syscall(SYS_close, pagemap);
  raw_syscall(SYS_close, maps);
  return done;
}

// --- the parent when it resumes ------------------------------------------------------------------

struct Range {
  std::uintptr_t begin, end;
};

// Memory that the parent keeps: libcrane.so's, and the parts of libc's that identify the process.
class Kept {
 public:
  explicit Kept(std::uintptr_t stack) noexcept {
    // Frames of ours from vfork's caller to the copying, and the functions that it calls.
    constexpr std::uintptr_t kCalls = 2048;
    const std::uintptr_t here = word_of(__builtin_frame_address(0));
    if (self.stacks.program == 0) add(here - kCalls, stack);
    if (self.stacks.memory != 0) {
      add(self.stacks.memory, word_of(signal_stack::scratch_area()) + signal_stack::kScratchBytes);
    }
    constexpr std::size_t kControlBlock = 2304;  // glibc's struct pthread: ids, robust mutexes
    const std::uintptr_t thread = std::uintptr_t{real::pthread_self()};
    add(thread, thread + kControlBlock);
    dl_iterate_phdr(add_own_object, this);
  }

  // Moves `at` after memory that is kept; returns the end of the writable piece there, at most
  // `end`.
  std::uintptr_t next_piece(std::uintptr_t& at, std::uintptr_t end) const noexcept {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < count_; ++i) {
        if (at < ranges_[i].begin || at >= ranges_[i].end) continue;
        at = ranges_[i].end;
        moved = true;
      }
    }
    std::uintptr_t until = end;
    for (std::size_t i = 0; i < count_; ++i) {
      if (ranges_[i].begin > at) until = std::min(until, ranges_[i].begin);
    }
    return until;
  }

 private:
  static constexpr std::size_t kRangesMax = 8;

  void add(std::uintptr_t begin, std::uintptr_t end) noexcept {
    if (begin < end && count_ < kRangesMax) ranges_[count_++] = {begin, end};
  }

  static int add_own_object(dl_phdr_info* object, std::size_t, void* given) noexcept {
    if (object->dlpi_addr != word_of(__ehdr_start)) return 0;
    auto& kept = *static_cast<Kept*>(given);
    for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& h = object->dlpi_phdr[i];
      const std::uintptr_t begin = object->dlpi_addr + h.p_vaddr, end = begin + h.p_memsz;
      if (h.p_type == PT_LOAD && (h.p_flags & PF_W) != 0) {
        kept.add(begin / kPage * kPage, (end + kPage - 1) / kPage * kPage);
      }
      if (h.p_type == PT_TLS) {
        const std::uintptr_t block = word_of(object->dlpi_tls_data);
        kept.add(block, block + h.p_memsz);
      }
    }
    return 1;
  }

  Range ranges_[kRangesMax] = {};
  std::size_t count_ = 0;
};

void apply_page(const Kept& kept, std::uintptr_t page, const unsigned char* bytes) noexcept {
  const std::uintptr_t end = page + kPage;
  for (std::uintptr_t at = page; at < end;) {
    const std::uintptr_t until = kept.next_piece(at, end);
    if (at >= end) return;
    // Memory that only the child mapped does not exist in the parent.
    if (!is_writable(pointer_to<void>(at), 1)) return;
    std::memcpy(pointer_to<void>(at), bytes + (at - page), until - at);
    at = until;
  }
}

[[gnu::noinline]] void apply_pages(const Exchange& x) noexcept {
  if (static_cast<std::uintptr_t>(raw_syscall(SYS_brk, 0)) < x.heap_end) {
    raw_syscall(SYS_brk, x.heap_end);
  }
  const Kept kept(x.stack);
  for (std::size_t i = 0; i < x.page_count; ++i) apply_page(kept, x.addresses[i], x.pages[i]);
}

// Writes only changed bytes, because other threads may have changed the bytes next to them.
void apply_window(const Exchange& x) noexcept {
  auto* const window = pointer_to<volatile unsigned char>(x.stack);
  for (std::size_t i = 0; i < x.window_bytes; ++i) {
    if (x.after[i] != x.before[i]) window[i] = x.after[i];
  }
}

}  // namespace

Exchange* create(std::uintptr_t stack, bool whole) noexcept {
  const long at = raw_syscall(SYS_mmap, nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0) return nullptr;
  auto* const x = pointer_to<Exchange>(static_cast<std::uintptr_t>(at));
  x->stack = stack;
  x->whole = whole && self.filters == nullptr;
  x->window_bytes = bytes_of_window(stack);
  return x;
}

void destroy(Exchange& x) noexcept { raw_syscall(SYS_munmap, &x, sizeof x); }

void begin_child(Exchange* x) noexcept {
  of_parent = x;
  if (x != nullptr) std::memcpy(x->before, pointer_to<void>(x->stack), x->window_bytes);
}

void publish() noexcept {
  if (of_parent == nullptr) return;
  Exchange& x = *of_parent;
  x.published = true;
  x.error = errno;
  x.heap_end = static_cast<std::uintptr_t>(raw_syscall(SYS_brk, 0));
  std::memcpy(x.after, pointer_to<void>(x.stack), x.window_bytes);
  x.page_count = 0;
  x.has_pages = x.whole && collect_pages(x);
  if (!x.whole || x.page_count < kPagesMax) return;
  static constinit Bound bound{kPagesMax, "pages that a child of vfork may change",
                               "its parent gets only the stack and errno"};
  bound.count_refusal();
}

int apply(const Exchange& x, int otherwise) noexcept {
  if (!x.published) return otherwise;
  if (x.has_pages) {
    apply_pages(x);
  } else {
    apply_window(x);
  }
  return x.error;
}

}  // namespace crane::vfork_memory
