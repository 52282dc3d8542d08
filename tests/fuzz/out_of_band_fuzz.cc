// SPDX-License-Identifier: Apache-2.0
// Out-of-band messages: any bytes are the message of one row or none, and a message that was read
// has the same bytes when it is sent on. A peer's report about itself is read without trust.

#include <variant>

#include "dmt/base/assert.h"
#include "proxy/replica/messages.h"
#include "proxy/replica/status/peer_notes.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::replica;

template <typename... M>
void add_seeds(std::vector<std::string>& out, const std::variant<M...>*) {
  const auto add = [&out](const auto& framed) {
    const auto bytes = framed.bytes();
    out.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  (add(message_of(M{})), ...);
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  add_seeds(out, static_cast<const Message*>(nullptr));
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto message = read_message(bytes);
  if (!message) return 0;
  std::visit(
      [&](const auto& body) {
        const auto framed = message_of(body);
        const auto head = sizeof framed.head;
        CRANE_ASSERT(std::memcmp(framed.bytes().data() + head, bytes.data() + head,
                                 size - head) == 0);  // MESSAGE-1
      },
      *message);
  if (const auto* note = std::get_if<PeerNote>(&*message)) {
    const control::Readiness readiness = readiness_of(*note);
    CRANE_ASSERT(readiness.why_not.size() <= sizeof note->why_not);
    (void)control::why_not_ready(readiness);
  }
  return 0;
}
