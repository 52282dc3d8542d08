// SPDX-License-Identifier: Apache-2.0
// Bodies and addresses as the proxy makes and reads them (proxy/clients/encode.h), from any bytes.

#include <netinet/in.h>

#include "dmt/base/assert.h"
#include "dmt/base/codec.h"
#include "proxy/clients/encode.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::proxy;

template <typename Body>
void read_one(std::span<const std::byte> bytes) {
  Body body{};
  CRANE_ASSERT(read_body(bytes, body) == (bytes.size() >= sizeof body));
  if (bytes.size() >= sizeof body) {
    CRANE_ASSERT(std::memcmp(bytes_of(body).data(), bytes.data(), sizeof body) == 0);
  }
}

void read_with_codec(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  while (reader.ok() && reader.left() > 0) {
    const auto size = reader.get<std::uint8_t>();
    if ((size & 1) != 0) {
      (void)reader.get<std::uint64_t>();
    } else {
      CRANE_ASSERT(reader.get_bytes(size).size() == (reader.ok() ? size : 0U));
    }
  }
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = 0x5000;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  std::vector<std::string> out(4);
  put(out[0], v4);
  put(out[1], v6);
  v6.sin6_addr.s6_addr[0] = 0x20;
  put(out[2], v6);
  put(out[3], connect_body(80, virtual_address(reinterpret_cast<sockaddr*>(&v4), sizeof v4), {}));
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  const auto bytes = input.rest();
  read_one<StartBody>(bytes);
  read_one<ConnectBody>(bytes);
  read_one<ConnectedBody>(bytes);
  read_one<ResolvedBody>(bytes);
  read_one<ConnBody>(bytes);
  read_one<WindowBody>(bytes);
  read_one<SignalBody>(bytes);
  read_with_codec(bytes);
  if (size >= sizeof(sockaddr)) {
    const std::vector<std::byte> address(bytes.begin(), bytes.end());  // exactly this length
    const VirtualAddress a = virtual_address(reinterpret_cast<const sockaddr*>(address.data()),
                                             static_cast<socklen_t>(address.size()));
    CRANE_ASSERT(a.family == AF_INET || a.family == AF_INET6);
    CRANE_ASSERT(!text(a).empty());
  }
  VirtualAddress any{};
  if (read_body(bytes, any)) CRANE_ASSERT(!text(any).empty());
  for (unsigned type = 0; type < 256; ++type) {
    CRANE_ASSERT(name(static_cast<EntryType>(type)) != nullptr);
  }
  return 0;
}
