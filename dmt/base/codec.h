// SPDX-License-Identifier: Apache-2.0
#pragma once
// Little-endian, bounds-checked reader and writer for every byte format that leaves a process. A
// reader never reads past its end: it turns bad, stays bad, and returns zeros.
//
// Threads: one object, one thread.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace crane {

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) noexcept : out_(out) {}

  template <typename Integer>
  void put(Integer v) noexcept {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are little-endian");
    put_bytes(&v, sizeof v);
  }
  void put_bytes(const void* data, std::size_t size) noexcept {
    if (size > out_.size() - used_) {
      ok_ = false;
      return;
    }
    if (size > 0) std::memcpy(out_.data() + used_, data, size);
    used_ += size;
  }
  bool ok() const noexcept { return ok_; }
  std::size_t used() const noexcept { return used_; }

 private:
  std::span<std::byte> out_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) noexcept : in_(in) {}

  template <typename Integer>
  Integer get() noexcept {
    Integer v{};
    const auto bytes = get_bytes(sizeof v);
    if (bytes.size() == sizeof v) std::memcpy(&v, bytes.data(), sizeof v);
    return v;
  }
  std::span<const std::byte> get_bytes(std::size_t size) noexcept {
    if (!ok_ || size > in_.size() - used_) {
      ok_ = false;
      return {};
    }
    used_ += size;
    return in_.subspan(used_ - size, size);
  }
  bool ok() const noexcept { return ok_; }
  std::size_t left() const noexcept { return in_.size() - used_; }

 private:
  std::span<const std::byte> in_;
  std::size_t used_ = 0;
  bool ok_ = true;
};

}  // namespace crane
