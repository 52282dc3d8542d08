// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/terminals/path.h"

#include <cstring>

#include "dmt/terminals.h"
#include "runtime/preload/ground/text.h"

namespace crane::terminal {
namespace {

constexpr char kDirectory[] = "/dev/pts/";
constexpr std::size_t kDirectoryBytes = sizeof kDirectory - 1;
// A number that no terminal has: hides a name that the kernel uses for a number of ours.
constexpr std::uint32_t kNoNumber = 0xffffffff;

}  // namespace

bool parse_name(const char* path, std::uint32_t& number) noexcept {
  if (path == nullptr || std::strncmp(path, kDirectory, kDirectoryBytes) != 0) return false;
  const char* const end = parse_number(path + kDirectoryBytes, number);
  return *end == '\0' && end != path + kDirectoryBytes;
}

std::uint16_t find_named(const dmt::Layout& w, const char* path) noexcept {
  std::uint32_t number;
  return parse_name(path, number) ? dmt::find_terminal(w, number) : std::uint16_t{0};
}

bool is_hidden(const dmt::Layout& w, std::uint32_t number) noexcept {
  return dmt::find_terminal(w, number) == 0 &&
         (dmt::is_number_taken(w, number) || dmt::find_terminal_by_kernel(w, number) != 0);
}

void write_name(char (&out)[kNameBytes], std::uint32_t number) noexcept {
  print_number(kDirectory, number, out);
}

KernelPath::KernelPath(const dmt::Layout& w, const char* path) noexcept : path_(path), name_{} {
  std::uint32_t number;
  if (!parse_name(path, number)) return;
  const std::uint16_t terminal = dmt::find_terminal(w, number);
  if (terminal == 0 && !is_hidden(w, number)) return;
  write_name(name_, terminal != 0 ? w.terminals[terminal].kernel_number : kNoNumber);
  path_ = name_;
}

std::size_t translate_link(const dmt::Layout& w, char* name, std::size_t size,
                           std::size_t room) noexcept {
  char path[kNameBytes];
  std::uint32_t number;
  if (size >= sizeof path) return size;
  std::memcpy(path, name, size);
  path[size] = '\0';
  if (!parse_name(path, number)) return size;
  const std::uint16_t terminal = dmt::find_terminal_by_kernel(w, number);
  if (terminal == 0) return size;
  write_name(path, dmt::number_of(terminal));
  const std::size_t wanted = std::strlen(path);
  const std::size_t given = wanted < room ? wanted : room;
  std::memcpy(name, path, given);
  return given;
}

}  // namespace crane::terminal
