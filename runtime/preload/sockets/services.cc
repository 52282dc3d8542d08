// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/services.h"

#include <fcntl.h>

#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/self/scratch.h"

namespace crane::services {
namespace {

constexpr std::size_t kChunk = 4096;

// The words of one line, each terminated by a 0; null after the last.
class Words {
 public:
  explicit Words(char* line) noexcept : at_(line) {
    if (char* const comment = std::strchr(line, '#'); comment != nullptr) *comment = '\0';
  }
  const char* next() noexcept {
    while (is_blank(*at_)) ++at_;
    if (*at_ == '\0') return nullptr;
    const char* const word = at_;
    while (*at_ != '\0' && !is_blank(*at_)) ++at_;
    if (*at_ != '\0') *at_++ = '\0';
    return word;
  }

 private:
  static bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }
  char* at_;
};

// Calls visit(line) for each line until it returns true; skips lines longer than the chunk.
template <typename Visit>
bool for_each_line(Visit visit) noexcept {
  const long file = raw_syscall(SYS_openat, AT_FDCWD, "/etc/services", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const Scratch<char> chunk(kChunk);
  std::size_t held = 0;
  bool found = false;
  for (;;) {
    const long n = raw_syscall(SYS_read, file, chunk.data() + held, kChunk - 1 - held);
    if (n <= 0 && held == 0) break;
    if (n > 0) held += static_cast<std::size_t>(n);
    char* line = chunk.data();
    char* const end = line + held;
    *end = '\0';
    for (char* stop; !found; line = stop + 1) {
      stop = static_cast<char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)));
      if (stop == nullptr) break;
      *stop = '\0';
      found = visit(line);
    }
    if (found) break;
    held = static_cast<std::size_t>(end - line);
    if (n <= 0) {  // the last line has no newline
      found = held > 0 && visit(line);
      break;
    }
    if (held == kChunk - 1) held = 0;
    std::memmove(chunk.data(), line, held);
  }
  raw_syscall(SYS_close, file);
  return found;
}

// Parses a word such as "80/tcp"; false: another protocol, or no port.
bool read_port(const char* word, const char* protocol, std::uint32_t& port) noexcept {
  if (word == nullptr) return false;
  const char* const end = parse_number(word, port);
  return end != word && *end == '/' && port <= 0xffff &&
         (protocol == nullptr || std::strcmp(end + 1, protocol) == 0);
}

}  // namespace

int find_port(const char* name, const char* protocol) noexcept {
  std::uint32_t port = 0;
  const bool found = for_each_line([&](char* line) noexcept {
    Words words(line);
    const char* const first = words.next();
    if (first == nullptr || !read_port(words.next(), protocol, port)) return false;
    for (const char* word = first; word != nullptr; word = words.next()) {
      if (std::strcmp(word, name) == 0) return true;
    }
    return false;
  });
  return found ? static_cast<int>(port) : -1;
}

bool find_name(std::uint16_t port, const char* protocol, char* out, std::size_t room) noexcept {
  return for_each_line([&](char* line) noexcept {
    Words words(line);
    const char* const first = words.next();
    std::uint32_t at = 0;
    if (first == nullptr || !read_port(words.next(), protocol, at) || at != port) return false;
    const std::size_t size = std::strlen(first) + 1;
    if (size > room) {
      *out = '\0';
    } else {
      std::memcpy(out, first, size);
    }
    return true;
  });
}

}  // namespace crane::services
