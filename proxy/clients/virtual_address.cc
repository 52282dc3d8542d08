// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/virtual_address.h"

#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "dmt/base/ipv4_prefix.h"

namespace crane::node {
namespace {

constexpr int kAnnouncements = 2;

// A frame has at least 60 bytes; ARP uses 42 of them.
struct [[gnu::packed]] ArpFrame {
  ether_header head;
  ether_arp arp;
  char name[8];
  std::uint32_t reign;  // network order
  char rest[6];
};
static_assert(sizeof(ArpFrame) == ETH_ZLEN);
constexpr char kName[8] = {'C', 'R', 'A', 'N', 'E', 'A', 'R', 'P'};

class Socket {
 public:
  Socket(int family, int type, int protocol)
      : fd_(::socket(family, type | SOCK_CLOEXEC, protocol)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

struct AddressRequest {
  nlmsghdr head;
  ifaddrmsg message;
  struct {
    rtattr head;
    std::uint32_t address;
  } attributes[2];
  struct {
    rtattr head;
    std::uint8_t value;
    std::uint8_t padding[3];
  } proto;
};

struct ErrorAnswer {
  nlmsghdr head;
  nlmsgerr error;
};

}  // namespace

VirtualAddress::~VirtualAddress() {
  give_up();
  if (packets_ >= 0) ::close(packets_);
}

Outcome VirtualAddress::open(const std::string& address, const std::string& interface, bool left) {
  const auto parsed = parse_ipv4_prefix(address);
  if (!parsed) {
    return Error{Code::kBadArgument, 0, "is no IPv4 address with a prefix, as 192.0.2.9/24"};
  }
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0) return Error{Code::kNotFound, errno, "there is no such interface"};
  address_ = parsed->number;
  prefix_ = parsed->bits;
  index_ = index;
  interface_ = interface;
  open_packets();
  if (left) static_cast<void>(change(false).ok());
  return Done{};
}

// Without this socket the address can be neither announced nor watched: announce() reports it.
void VirtualAddress::open_packets() noexcept {
  packets_ = ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (packets_ < 0) return;
  // Receives only frames whose sender or target is the address, so that other ARP does not wake the
  // node.
  constexpr auto kSender = sizeof(ether_header) + offsetof(ether_arp, arp_spa);
  constexpr auto kTarget = sizeof(ether_header) + offsetof(ether_arp, arp_tpa);
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSender),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(address_), 2, 0),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kTarget),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(address_), 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, sizeof(ArpFrame)),
                         BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog filter{std::size(steps), steps};
  sockaddr_ll here{};
  here.sll_family = AF_PACKET;
  here.sll_protocol = htons(ETH_P_ARP);
  here.sll_ifindex = static_cast<int>(index_);
  if (::setsockopt(packets_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0) {
    (void)::bind(packets_, reinterpret_cast<const sockaddr*>(&here), sizeof here);
  }
}

VirtualAddress::ArpSighting VirtualAddress::read_arp_packets() noexcept {
  ArpSighting sighting = ArpSighting::kNothing;
  ArpFrame frame{};
  ssize_t got = 0;
  while ((got = ::recv(packets_, &frame, sizeof frame, 0)) > 0) {  // frames of other hosts
    const bool named = got == static_cast<ssize_t>(sizeof frame) &&
                       std::memcmp(frame.name, kName, sizeof kName) == 0;
    const bool later = named && ntohl(frame.reign) > reign_;
    if (sighting != ArpSighting::kReplaced)
      sighting = later ? ArpSighting::kReplaced : ArpSighting::kAnother;
  }
  return sighting;
}

Outcome VirtualAddress::take(std::uint32_t reign) {
  reign_ = reign;
  const Outcome added = change(true);
  if (!added && !(held_ && added.error().detail == EEXIST)) return added;
  held_ = true;
  return announce();
}

void VirtualAddress::give_up() noexcept {
  if (!held_) return;
  held_ = false;
  const Outcome removed = change(false);
  if (!removed.ok()) {
    spdlog::error("the virtual address stays on {}: {}; remove it by hand", interface_,
                  removed.error().message());
  }
}

Outcome VirtualAddress::change(bool add) const {
  const Socket s(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (s.fd() < 0) return system_error("open a netlink socket");
  AddressRequest request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR;
  request.head.nlmsg_flags =
      static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | (add ? NLM_F_CREATE | NLM_F_EXCL : 0));
  request.message.ifa_family = AF_INET;
  request.message.ifa_prefixlen = static_cast<std::uint8_t>(prefix_);
  request.message.ifa_index = index_;
  const std::uint16_t kinds[] = {IFA_LOCAL, IFA_ADDRESS};
  for (int i = 0; i < 2; ++i) {
    request.attributes[i].head = {sizeof request.attributes[i], kinds[i]};
    request.attributes[i].address = address_;
  }
  request.proto.head = {RTA_LENGTH(sizeof request.proto.value), IFA_PROTO};
  request.proto.value = kAddedByCrane;
  ErrorAnswer answer{};
  if (::send(s.fd(), &request, sizeof request, 0) < 0 ||
      ::recv(s.fd(), &answer, sizeof answer, 0) < static_cast<ssize_t>(sizeof answer.head)) {
    return system_error("talk to netlink");
  }
  if (answer.head.nlmsg_type != NLMSG_ERROR || answer.error.error == 0) return Done{};
  return Error{Code::kSystem, -answer.error.error, add ? "add the address" : "remove the address"};
}

// Sends an ARP request and a reply for the address: some hosts honour the one, some the other.
Outcome VirtualAddress::announce() const {
  if (packets_ < 0) return Error{Code::kSystem, EPERM, "open a packet socket"};
  ifreq hardware{};
  std::strncpy(hardware.ifr_name, interface_.c_str(), sizeof hardware.ifr_name - 1);
  if (::ioctl(packets_, SIOCGIFHWADDR, &hardware) != 0)
    return system_error("read the interface's MAC");
  ArpFrame frame{};
  std::memcpy(frame.name, kName, sizeof kName);
  frame.reign = htonl(reign_);
  const void* const own = hardware.ifr_hwaddr.sa_data;
  std::memset(frame.head.ether_dhost, 0xff, ETH_ALEN);
  std::memcpy(frame.head.ether_shost, own, ETH_ALEN);
  frame.head.ether_type = htons(ETHERTYPE_ARP);
  frame.arp.ea_hdr = {htons(ARPHRD_ETHER), htons(ETHERTYPE_IP), ETH_ALEN, 4, 0};
  std::memcpy(frame.arp.arp_sha, own, ETH_ALEN);
  std::memcpy(frame.arp.arp_spa, &address_, sizeof address_);
  std::memset(frame.arp.arp_tha, 0xff, ETH_ALEN);
  std::memcpy(frame.arp.arp_tpa, &address_, sizeof address_);
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_ARP);
  to.sll_ifindex = static_cast<int>(index_);
  to.sll_halen = ETH_ALEN;
  std::memset(to.sll_addr, 0xff, ETH_ALEN);
  for (int i = 0; i < kAnnouncements; ++i) {
    frame.arp.ea_hdr.ar_op = htons(i == 0 ? ARPOP_REQUEST : ARPOP_REPLY);
    if (::sendto(packets_, &frame, sizeof frame, 0, reinterpret_cast<const sockaddr*>(&to),
                 sizeof to) < 0) {
      return system_error("announce the address");
    }
  }
  return Done{};
}

}  // namespace crane::node
