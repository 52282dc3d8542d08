// SPDX-License-Identifier: Apache-2.0
// GOAL    A UDP socket receives the server's own datagrams in the order in which they were sent.
// METHOD  The test holds the turn, and sends and receives for all sockets.
// CHECKS  Queues and blocks (DMT-U1), limits, which socket gets a datagram, ports, groups,
//         readiness.
#include "dmt/datagrams.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "dmt/files.h"
#include "tests/unit/dmt/world.h"

using namespace crane;
using namespace crane::dmt;
using namespace crane::dmt::test;

namespace {

constexpr std::uint16_t kV4 = 2, kV6 = 10;

VirtualAddress at(std::uint8_t last, std::uint16_t port, std::uint16_t family = kV4) {
  VirtualAddress a{};
  a.family = family;
  a.port = port;
  if (last != 0) a.ip[0] = 127;
  a.ip[3] = last;
  return a;
}

struct Sockets : World {
  Sockets() { hold(); }

  std::uint32_t create(const VirtualAddress& bound, const VirtualAddress& peer = {}) {
    const std::uint32_t file = create_file(w, main, FileKind::kDatagram);
    REQUIRE(file != 0);
    w.files[file].datagram.bound = bound;
    w.files[file].datagram.peer = peer;
    return file;
  }
  void put(std::uint32_t file, std::string text) {
    struct iovec v = {text.data(), text.size()};
    put_datagram(w, file, {at(9, 99), {}, static_cast<std::uint32_t>(text.size()), 64, 0, 0}, &v);
  }
  std::string take(std::uint32_t file) {
    std::string text(first_datagram(w, file).size, '\0');
    REQUIRE(peek_datagram(w, file, 0, reinterpret_cast<std::byte*>(text.data()), text.size()) ==
            text.size());
    take_datagram(w, file);
    return text;
  }
  std::uint32_t blocks_in_use() const { return w.scheduler.blocks_in_use.load(); }
};

}  // namespace

TEST_CASE("datagrams are queued complete and in order, in blocks that are freed", "[datagrams]") {
  Sockets s;
  const std::uint32_t file = s.create(at(1, 5));
  CHECK(readiness_of(s.w, file) == kOut);
  const std::uint32_t before = s.blocks_in_use();
  const std::size_t first = kBlockBytes - sizeof(DatagramHeader);
  for (const std::size_t size : {std::size_t{0}, first - 1, first, first + 1, 3 * first}) {
    s.put(file, std::string(size, 'a'));
    s.put(file, "next");
    CHECK((readiness_of(s.w, file) & kIn) != 0);
    CHECK(first_datagram(s.w, file).from.port == 99);
    std::byte some[3];
    CHECK(peek_datagram(s.w, file, size / 2, some, 3) == std::min<std::size_t>(3, size - size / 2));
    CHECK(s.take(file) == std::string(size, 'a'));
    CHECK(s.take(file) == "next");
    CHECK(s.blocks_in_use() == before);
    CHECK(readiness_of(s.w, file) == kOut);
  }
  s.put(file, "left behind");
  drop_reference(s.w, file);
  CHECK(s.blocks_in_use() == before);
}

TEST_CASE("only a datagram that does not fit is lost", "[datagrams]") {
  Sockets s;
  const std::uint32_t file = s.create(at(1, 5));
  const std::uint32_t other = s.create(at(1, 6));
  for (std::uint32_t i = 0; i < kDatagramBlocksMax + 10; ++i) s.put(file, std::to_string(i));
  s.put(other, "fits");
  for (std::uint32_t i = 0; i < kDatagramBlocksMax; ++i) CHECK(s.take(file) == std::to_string(i));
  CHECK(s.w.files[file].datagram.blocks == 0);  // DMT-U1
  CHECK(s.take(other) == "fits");
}

TEST_CASE("a datagram goes to the socket that matches best", "[datagrams]") {
  Sockets s;
  const std::uint32_t any = s.create(at(0, 5));
  CHECK(find_datagram_socket(s.w, at(1, 5), at(9, 99)) == any);
  const std::uint32_t exact = s.create(at(1, 5));
  CHECK(find_datagram_socket(s.w, at(1, 5), at(9, 99)) == exact);
  CHECK(find_datagram_socket(s.w, at(2, 5), at(9, 99)) == any);
  const std::uint32_t connected = s.create(at(1, 5), at(9, 99));
  CHECK(find_datagram_socket(s.w, at(1, 5), at(9, 99)) == connected);
  CHECK(find_datagram_socket(s.w, at(1, 5), at(9, 98)) == exact);
  CHECK(find_datagram_socket(s.w, at(1, 6), at(9, 99)) == 0);
  VirtualAddress six = at(0, 7);
  six.family = kV6;
  const std::uint32_t dual = s.create(six);
  CHECK(find_datagram_socket(s.w, at(1, 7), at(9, 99)) == dual);
  s.w.files[dual].datagram.only_v6 = true;
  CHECK(find_datagram_socket(s.w, at(1, 7), at(9, 99)) == 0);
}

TEST_CASE("a port is used once, and groups are per socket", "[datagrams]") {
  Sockets s;
  const std::uint32_t first = s.create(at(1, free_datagram_port(s.w)));
  const std::uint16_t port = s.w.files[first].datagram.bound.port;
  CHECK(free_datagram_port(s.w) == port + 1);
  const std::uint32_t second = s.create({});
  CHECK(datagram_port_taken(s.w, second, at(1, port)));
  CHECK(datagram_port_taken(s.w, second, at(0, port)));
  CHECK_FALSE(datagram_port_taken(s.w, second, at(2, port)));
  s.w.files[first].datagram.reuses = s.w.files[second].datagram.reuses = true;
  CHECK_FALSE(datagram_port_taken(s.w, second, at(0, port)));

  VirtualAddress group = at(1, port);
  group.ip[0] = 239;
  s.w.files[second].datagram.bound = at(0, port);
  CHECK_FALSE(is_in_group(s.w, second, group));
  s.w.files[second].datagram.groups[3] = group_name(group);
  CHECK(is_in_group(s.w, second, group));
  CHECK_FALSE(is_in_group(s.w, first, group));
  group.port = 1;
  CHECK_FALSE(is_in_group(s.w, second, group));
}
