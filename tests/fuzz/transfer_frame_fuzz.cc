// SPDX-License-Identifier: Apache-2.0
// The messages of a checkpoint transfer (checkpoint/transfer_frame.h): a stream of any bytes is a
// series of frames, an incomplete frame, or bad. A message that is understood is written back as
// the same message, and names no file outside of a checkpoint.

#include "checkpoint/transfer_frame.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"

using namespace crane;
using namespace crane::checkpoint;
using namespace crane::checkpoint::transfer;

namespace {

template <typename Message>
void check_again(const std::string& text) {
  Message message, again;
  if (!parse(text, message)) return;
  CRANE_ASSERT(parse(to_text(message), again));
  CRANE_ASSERT(to_text(again) == to_text(message));
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  Ask ask;
  ask.expected = {"web", digest_of_log("web", 1), 9, "/usr/sbin/apache2"};
  ask.behind = Index{77};
  ask.resume = "00000002.000000000009";
  const Have have{"00000002.000000000009", Index{9}, 5, true, false, ""};
  const Want want{"images.pack", 3, 4};
  std::vector<std::byte> stream;
  encode(stream, Kind::kAsk, to_text(ask));
  encode(stream, Kind::kHave, to_text(have));
  encode(stream, Kind::kFetch, have.name);
  encode(stream, Kind::kWant, to_text(want));
  encode(stream, Kind::kPiece, std::string("bytes"));
  encode(stream, Kind::kRefusal, std::string("not now"));
  return {{reinterpret_cast<const char*>(stream.data()), stream.size()}};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  for (;;) {
    Frame frame;
    const Decoded decoded = decode(rest, frame);
    if (decoded != Decoded::kFrame) return 0;
    CRANE_ASSERT(frame.bytes <= rest.size() && frame.bytes >= kHeadBytes);
    CRANE_ASSERT(frame.body.size() == frame.bytes - kHeadBytes);
    check_again<Ask>(frame.text());
    check_again<Have>(frame.text());
    check_again<Want>(frame.text());
    if (Want want; parse(frame.text(), want)) {
      CRANE_ASSERT(want.file.find('/') == std::string::npos && want.file[0] != '.');
    }
    rest = rest.subspan(frame.bytes);
  }
}
