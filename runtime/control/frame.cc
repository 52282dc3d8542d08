// SPDX-License-Identifier: Apache-2.0
#include "runtime/control/frame.h"

#include "dmt/base/assert.h"

namespace crane::control {
namespace {

constexpr std::size_t kSizeBytes = 4;

}  // namespace

void put_frame(std::vector<std::byte>& out, std::string_view text) {
  CRANE_ASSERT(text.size() <= kLinkAnswerMax);
  for (std::size_t i = kSizeBytes; i-- > 0;) out.push_back(std::byte(text.size() >> (8 * i)));
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Framed read_frame(std::span<const std::byte> in, std::size_t most, std::string& text) {
  if (in.size() < kSizeBytes) return Framed::kMore;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) {
    size = size << 8 | std::to_integer<std::size_t>(in[i]);
  }
  if (size > most) return Framed::kTooLong;  // FRAME-1
  if (in.size() - kSizeBytes < size) return Framed::kMore;
  text.assign(reinterpret_cast<const char*>(in.data()) + kSizeBytes, size);
  return Framed::kWhole;
}

}  // namespace crane::control
