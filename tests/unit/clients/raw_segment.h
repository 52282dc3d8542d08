// SPDX-License-Identifier: Apache-2.0
#pragma once
// A TCP segment without payload, as a client's kernel would have sent it.

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace crane::proxy {

constexpr int kRawMark = 7;  // of the packets that send_segment() sends

struct Acknowledgement {
  sockaddr_in from, to;
  std::uint32_t sequence, acknowledges;

  // Returns false if this process is not permitted to send raw packets.
  bool send_segment() const {
    struct {
      iphdr ip;
      tcphdr tcp;
    } packet{};
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_TCP;
    packet.ip.saddr = from.sin_addr.s_addr;
    packet.ip.daddr = to.sin_addr.s_addr;
    packet.ip.tot_len = htons(sizeof packet);
    packet.tcp.source = from.sin_port;
    packet.tcp.dest = to.sin_port;
    packet.tcp.seq = htonl(sequence);
    packet.tcp.ack_seq = htonl(acknowledges);
    packet.tcp.doff = 5;
    packet.tcp.ack = 1;
    packet.tcp.window = htons(60000);
    packet.tcp.check = checksum(packet.tcp);
    const int fd = ::socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    const bool marked = ::setsockopt(fd, SOL_SOCKET, SO_MARK, &kRawMark, sizeof kRawMark) == 0;
    const ssize_t sent =
        ::sendto(fd, &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    ::close(fd);
    return marked && sent == static_cast<ssize_t>(sizeof packet);
  }

 private:
  std::uint16_t checksum(const tcphdr& tcp) const {
    struct {
      std::uint32_t from, to;
      std::uint8_t zero, protocol;
      std::uint16_t size;
      tcphdr tcp;
    } whole{from.sin_addr.s_addr, to.sin_addr.s_addr, 0, IPPROTO_TCP, htons(sizeof tcp), tcp};
    std::uint16_t words[sizeof whole / 2];
    std::memcpy(words, &whole, sizeof whole);
    std::uint32_t sum = 0;
    for (const std::uint16_t word : words) sum += word;
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
    return static_cast<std::uint16_t>(~sum);
  }
};

}  // namespace crane::proxy
