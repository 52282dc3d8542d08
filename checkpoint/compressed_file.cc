// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compressed_file.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "checkpoint/fault_points.h"
#include "dmt/base/crc.h"

namespace crane::checkpoint {
namespace {

// Compares with the first bytes of every zstd frame; a file that was cut may have fewer.
bool begins_as_frame(const char* data, std::size_t size) {
  constexpr unsigned char kMagic[] = {0x28, 0xb5, 0x2f, 0xfd};
  return std::memcmp(data, kMagic, std::min(size, sizeof kMagic)) == 0;
}

}  // namespace

void CompressedFile::Free::operator()(ZSTD_CCtx_s* context) const noexcept {
  ZSTD_freeCCtx(context);
}

CompressedFile::CompressedFile(Descriptor fd, std::string path, int level)
    : path_(std::move(path)),
      context_(ZSTD_createCCtx()),
      out_(ZSTD_CStreamOutSize()),
      fd_(std::move(fd)) {
  CRANE_ASSERT(context_ != nullptr);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

CompressedFile::~CompressedFile() = default;

Outcome CompressedFile::put(const void* data, std::size_t size) {
  return compress(data, size, false);
}

Outcome CompressedFile::end() { return compress(nullptr, 0, true); }

Outcome CompressedFile::sync() {
  if (::fsync(fd_.get()) != 0) return file_error("sync", path_);
  return Done{};
}

Outcome CompressedFile::compress(const void* data, std::size_t size, bool last) {
  unpacked_ += size;
  ZSTD_inBuffer in{data, size, 0};
  for (;;) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const std::size_t left =
        ZSTD_compressStream2(context_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) {
      return failure(Code::kSystem, "compress",
                     "cannot compress " + path_ + ": " + ZSTD_getErrorName(left));
    }
    if (out.pos > 0) {
      if (!write_all(fd_.get(), out_.data(), out.pos)) return file_error("write", path_);
      crc_ = crc32c(out_.data(), out.pos, crc_);
      bytes_ += out.pos;
      fault_point("publish.part");
    }
    if (last ? left == 0 : in.pos == in.size) return Done{};
  }
}

void DecompressedFile::Free::operator()(ZSTD_DCtx_s* context) const noexcept {
  ZSTD_freeDCtx(context);
}

DecompressedFile::DecompressedFile(Descriptor fd, std::string path, Damaged damaged)
    : path_(std::move(path)),
      damaged_(damaged),
      context_(ZSTD_createDCtx()),
      in_(ZSTD_DStreamInSize()),
      fd_(std::move(fd)) {
  CRANE_ASSERT(context_ != nullptr);
}

DecompressedFile::~DecompressedFile() = default;

Outcome DecompressedFile::get(void* to, std::size_t size) {
  ZSTD_outBuffer out{to, size, 0};
  while (out.pos < out.size) {
    if (ended_) return damaged_(path_, "it ends early at " + place());
    if (auto moved = step(out); !moved) return moved;
  }
  return Done{};
}

Outcome DecompressedFile::finish(const char* surplus) {
  char more;
  ZSTD_outBuffer out{&more, 1, 0};
  while (!ended_) {
    if (auto moved = step(out); !moved) return moved;
    if (out.pos > 0) return damaged_(path_, surplus);
  }
  if (in_used_ != in_size_ || read_all(fd_.get(), &more, 1) != 0) {
    return damaged_(path_, "bytes follow its end");
  }
  return Done{};
}

std::string DecompressedFile::place() const { return "byte " + std::to_string(read_); }

Outcome DecompressedFile::step(ZSTD_outBuffer& out) {
  if (in_used_ == in_size_) {
    const ssize_t n = read_all(fd_.get(), in_.data(), in_.size());
    if (n < 0) return file_error("read", path_);
    in_size_ = static_cast<std::size_t>(n);
    in_used_ = 0;
    read_ += in_size_;
    if (std::exchange(is_first_, false)) begins_as_frame_ = begins_as_frame(in_.data(), in_size_);
    crc_ = crc32c(in_.data(), in_size_, crc_);
  }
  ZSTD_inBuffer in{in_.data(), in_size_, in_used_};
  const std::size_t had = out.pos;
  const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
  failed_ = ZSTD_isError(left) != 0;
  if (failed_) return damaged_(path_, ZSTD_getErrorName(left) + (" before " + place()));
  ended_ = left == 0;
  failed_ = !ended_ && out.pos == had && in.pos == in_used_;
  if (failed_) return damaged_(path_, "it ends early at " + place());
  in_used_ = in.pos;
  return Done{};
}

}  // namespace crane::checkpoint
