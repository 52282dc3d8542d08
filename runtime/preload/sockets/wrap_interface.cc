// SPDX-License-Identifier: Apache-2.0
// The machine's network interfaces (interfaces.h).
#include "runtime/preload/sockets/interfaces.h"

#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dmt/base/raw.h"
#include "dmt/connections.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/types.h"
#include "runtime/preload/ground/wrappers.h"

namespace crane {
namespace interfaces {
namespace {

struct Interface {
  const char* name;
  int index;
  short flags;
  int mtu;
  Ip4 address, mask, broadcast;
  unsigned short hardware;
  std::array<std::uint8_t, 6> station;
};
constexpr Interface kAll[] = {
    {"lo",
     1,
     IFF_UP | IFF_LOOPBACK | IFF_RUNNING,
     65536,
     kLoopback,
     {255, 0, 0, 0},
     {0, 0, 0, 0},
     ARPHRD_LOOPBACK,
     {}},
    {"eth0",
     2,
     IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST,
     1500,
     kAddress,
     {255, 255, 255, 0},
     {192, 0, 2, 255},
     ARPHRD_ETHER,
     {2, 0, 192, 0, 2, 1}},
};
constexpr int kQueueLength = 1000;

// The range of interface commands in <linux/sockios.h>.
constexpr unsigned long kFirstCommand = 0x8910, kLastCommand = 0x8948;

void put_address(const Ip4& ip, struct sockaddr* out) noexcept {
  struct sockaddr_in in {};
  in.sin_family = AF_INET;
  std::memcpy(&in.sin_addr, ip.data(), ip.size());
  std::memcpy(out, &in, sizeof in);
}

void put_name(const Interface& i, char* out) noexcept {
  std::memset(out, 0, IFNAMSIZ);
  std::memcpy(out, i.name, std::strlen(i.name));
}

const Interface* by_name(const char* name) noexcept {
  for (const Interface& i : kAll) {
    if (std::strncmp(i.name, name, IFNAMSIZ) == 0) return &i;
  }
  return nullptr;
}
const Interface* by_index(unsigned index) noexcept {
  return index >= 1 && index <= std::size(kAll) ? &kAll[index - 1] : nullptr;
}

int list(struct ifconf& out) noexcept {
  struct ifreq* to = out.ifc_req;
  const std::size_t room =
      to == nullptr ? std::size(kAll) : static_cast<std::size_t>(out.ifc_len) / sizeof *to;
  const std::size_t count = std::min(room, std::size(kAll));
  for (std::size_t n = 0; n < count && to != nullptr; ++n) {
    std::memset(&to[n], 0, sizeof to[n]);
    put_name(kAll[n], to[n].ifr_name);
    put_address(kAll[n].address, &to[n].ifr_addr);
  }
  out.ifc_len = static_cast<int>(count * sizeof *to);
  return 0;
}

// Answers a command about one interface.
int fill_request(unsigned long command, const Interface& i, struct ifreq& out) noexcept {
  switch (command) {
    case SIOCGIFFLAGS:
      out.ifr_flags = i.flags;
      return 0;
    case SIOCGIFADDR:
      put_address(i.address, &out.ifr_addr);
      return 0;
    case SIOCGIFNETMASK:
      put_address(i.mask, &out.ifr_netmask);
      return 0;
    case SIOCGIFBRDADDR:
    case SIOCGIFDSTADDR:
      put_address(command == SIOCGIFBRDADDR ? i.broadcast : i.address, &out.ifr_broadaddr);
      return 0;
    case SIOCGIFHWADDR:
      std::memset(&out.ifr_hwaddr, 0, sizeof out.ifr_hwaddr);
      out.ifr_hwaddr.sa_family = i.hardware;
      std::memcpy(out.ifr_hwaddr.sa_data, i.station.data(), i.station.size());
      return 0;
    case SIOCGIFINDEX:
      out.ifr_ifindex = i.index;
      return 0;
    case SIOCGIFMTU:
      out.ifr_mtu = i.mtu;
      return 0;
    case SIOCGIFMETRIC:
      out.ifr_metric = 0;
      return 0;
    case SIOCGIFTXQLEN:
      out.ifr_qlen = kQueueLength;
      return 0;
    default:
      return -EPERM;
  }
}

bool is_v6_loopback(const VirtualAddress& a) noexcept {
  constexpr std::uint8_t kOne[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return a.family == AF_INET6 && std::memcmp(a.ip, kOne, sizeof a.ip) == 0;
}
bool is_v4(const VirtualAddress& a, const Ip4& ip) noexcept {
  return a.family == AF_INET && std::memcmp(a.ip, ip.data(), ip.size()) == 0;
}

}  // namespace

VirtualAddress address_of(const Ip4& ip) noexcept {
  VirtualAddress a{};
  a.family = AF_INET;
  std::memcpy(a.ip, ip.data(), ip.size());
  return a;
}
bool exists(const char* name) noexcept { return by_name(name) != nullptr; }
int index_for(const VirtualAddress& to) noexcept {
  constexpr int kLoopbackIndex = 1, kOutsideIndex = 2;
  return is_loopback(to) ? kLoopbackIndex : kOutsideIndex;
}
bool is_loopback(const VirtualAddress& a) noexcept {
  return (a.family == AF_INET && a.ip[0] == kLoopback[0]) || is_v6_loopback(a);
}
bool is_own(const VirtualAddress& a) noexcept { return is_loopback(a) || is_v4(a, kAddress); }
bool is_multicast(const VirtualAddress& a) noexcept {
  return a.family == AF_INET ? (a.ip[0] & 0xf0) == 0xe0 : a.ip[0] == 0xff;
}
bool is_broadcast(const VirtualAddress& a) noexcept {
  return is_v4(a, {255, 255, 255, 255}) || is_v4(a, kAll[1].broadcast);
}
void name_this_host(VirtualAddress& to) noexcept {
  if (!is_wildcard(to)) return;
  if (to.family == AF_INET) std::memcpy(to.ip, kLoopback.data(), kLoopback.size());
  if (to.family == AF_INET6) to.ip[15] = 1;
}
VirtualAddress source_for(const VirtualAddress& to) noexcept {
  if (!is_loopback(to)) return address_of(kAddress);
  if (to.family == AF_INET) return address_of(kLoopback);
  VirtualAddress a = to;
  a.port = 0;
  return a;
}

bool is_command(unsigned long command) noexcept {
  return command >= kFirstCommand && command <= kLastCommand && command != SIOCATMARK;
}

int control(unsigned long command, void* argument) noexcept {
  if (argument == nullptr) return -EFAULT;
  if (command == SIOCGIFCONF) return list(*static_cast<struct ifconf*>(argument));
  auto& request = *static_cast<struct ifreq*>(argument);
  if (command == SIOCGIFNAME) {
    const Interface* i = by_index(static_cast<unsigned>(request.ifr_ifindex));
    if (i == nullptr) return -ENODEV;
    put_name(*i, request.ifr_name);
    return 0;
  }
  const Interface* i = by_name(request.ifr_name);
  return i == nullptr ? -ENODEV : fill_request(command, *i, request);
}

}  // namespace interfaces

namespace wrap {
namespace {

using interfaces::kAll;

// The callers own the lists: they may change and free them. Each list has its own page. No block of
// malloc begins at a page, so lists that libc made before Crane was attached can be distinguished.
constexpr std::size_t kPage = 4096;

struct Listed {
  struct ifaddrs entry;
  char name[IFNAMSIZ];
  struct sockaddr_in address, mask, broadcast;
};
struct AddressList {
  Listed listed[2 * std::size(kAll)];
  struct sockaddr_ll stations[std::size(kAll)];
  // The address ::1 of the loopback.
  struct ifaddrs six;
  char six_name[IFNAMSIZ];
  struct sockaddr_in6 six_address, six_mask;
};
struct NameList {
  struct if_nameindex entries[std::size(kAll) + 1];
  char names[std::size(kAll)][IFNAMSIZ];
};
static_assert(sizeof(AddressList) <= kPage && sizeof(NameList) <= kPage);

// Returns a zeroed list; null when there is no memory.
template <typename List>
List* make_list() noexcept {
  void* const page = map_pages(kPage);
  if (page == nullptr) errno = ENOMEM;
  return static_cast<List*>(page);
}
bool is_list(const void* list) noexcept {
  return reinterpret_cast<std::uintptr_t>(list) % kPage == 0;
}
void free_list(void* list) noexcept {
  if (list != nullptr) raw_syscall(SYS_munmap, list, kPage);
}

void describe(const interfaces::Interface& i, Listed& l) noexcept {
  interfaces::put_name(i, l.name);
  l.entry.ifa_name = l.name;
  l.entry.ifa_flags = static_cast<unsigned>(i.flags);
}

struct sockaddr* as_address(void* a) noexcept {
  return static_cast<struct sockaddr*>(a);
}

}  // namespace

int getifaddrs(struct ifaddrs** list) {
  constexpr std::size_t n = std::size(kAll);
  auto* const made = make_list<AddressList>();
  if (made == nullptr) return -1;
  auto& listed = made->listed;
  auto& stations = made->stations;
  for (std::size_t at = 0; at < n; ++at) {
    const interfaces::Interface& i = kAll[at];
    struct sockaddr_ll& station = stations[at];
    station.sll_family = AF_PACKET;
    station.sll_ifindex = i.index;
    station.sll_hatype = i.hardware;
    station.sll_halen = static_cast<unsigned char>(i.station.size());
    std::memcpy(station.sll_addr, i.station.data(), i.station.size());
    describe(i, listed[at]);
    listed[at].entry.ifa_addr = as_address(&station);
    Listed& l = listed[n + at];
    describe(i, l);
    interfaces::put_address(i.address, as_address(&l.address));
    interfaces::put_address(i.mask, as_address(&l.mask));
    interfaces::put_address(i.broadcast, as_address(&l.broadcast));
    l.entry.ifa_addr = as_address(&l.address);
    l.entry.ifa_netmask = as_address(&l.mask);
    l.entry.ifa_broadaddr =
        (i.flags & IFF_BROADCAST) != 0 ? as_address(&l.broadcast) : as_address(&l.address);
  }
  for (std::size_t at = 0; at + 1 < 2 * n; ++at) listed[at].entry.ifa_next = &listed[at + 1].entry;
  listed[2 * n - 1].entry.ifa_next = &made->six;
  made->six = listed[0].entry;
  made->six.ifa_next = nullptr;
  made->six.ifa_name = made->six_name;
  interfaces::put_name(kAll[0], made->six_name);
  made->six.ifa_addr = made->six.ifa_dstaddr = as_address(&made->six_address);
  made->six.ifa_netmask = as_address(&made->six_mask);
  made->six_address.sin6_family = made->six_mask.sin6_family = AF_INET6;
  made->six_address.sin6_addr.s6_addr[15] = 1;
  std::memset(&made->six_mask.sin6_addr, 0xff, sizeof made->six_mask.sin6_addr);
  *list = &listed[0].entry;
  return 0;
}
void freeifaddrs(struct ifaddrs* list) {
  is_list(list) ? free_list(list) : real::freeifaddrs(list);
}

unsigned if_nametoindex(const char* name) {
  const interfaces::Interface* i = interfaces::by_name(name);
  if (i != nullptr) return static_cast<unsigned>(i->index);
  errno = ENODEV;
  return 0;
}
char* if_indextoname(unsigned index, char* name) {
  const interfaces::Interface* i = interfaces::by_index(index);
  if (i == nullptr) {
    errno = ENXIO;
    return nullptr;
  }
  interfaces::put_name(*i, name);
  return name;
}
struct if_nameindex* if_nameindex() {
  auto* const made = make_list<NameList>();
  if (made == nullptr) return nullptr;
  for (std::size_t at = 0; at < std::size(kAll); ++at) {
    interfaces::put_name(kAll[at], made->names[at]);
    made->entries[at] = {static_cast<unsigned>(kAll[at].index), made->names[at]};
  }
  return made->entries;
}
void if_freenameindex(struct if_nameindex* list) {
  is_list(list) ? free_list(list) : real::if_freenameindex(list);
}

}  // namespace wrap
}  // namespace crane
