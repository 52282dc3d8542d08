// SPDX-License-Identifier: Apache-2.0
// The frames of the tcp fabric (consensus/fabric/tcp_frame.h): a stream of any bytes, cut anywhere,
// on either plane, is a series of frames, an incomplete frame, or bad. Decoding ends and stays
// within it.

#include "consensus/fabric/tcp_frame.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane::consensus::tcp;

constexpr std::uint64_t kWriteMax = 4096;

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  for (std::uint8_t kind = 0; kind < 16; ++kind) {
    std::vector<std::byte> stream;
    for (const std::size_t size : {0U, 8U, 16U, 48U, 64U, 240U}) {
      FrameHead head{};
      head.kind = static_cast<decltype(head.kind)>(kind);
      head.flag = kOk;
      encode(stream, head, std::vector<std::byte>(size, std::byte(kind)));
    }
    for (const char plane : {'\0', '\1'}) {
      std::string s(1, plane);
      s.append(reinterpret_cast<const char*>(stream.data()), stream.size());
      out.push_back(s);
    }
  }
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  const auto plane = static_cast<Plane>(input.take<std::uint8_t>() & 1);
  auto rest = input.rest();
  for (;;) {
    Frame frame;
    const Decoded decoded = decode(rest, plane, kWriteMax, frame);
    if (decoded == Decoded::kBad) return 0;
    if (decoded == Decoded::kMore) {
      CRANE_ASSERT(frame.bytes > rest.size() && frame.bytes >= sizeof(FrameHead));
      return 0;
    }
    CRANE_ASSERT(frame.bytes <= rest.size() && frame.bytes >= sizeof(FrameHead));
    CRANE_ASSERT(frame.body.size() == frame.bytes - sizeof(FrameHead));
    CRANE_ASSERT(frame.body.empty() || frame.body.data() == rest.data() + sizeof(FrameHead));
    rest = rest.subspan(frame.bytes);
  }
}
