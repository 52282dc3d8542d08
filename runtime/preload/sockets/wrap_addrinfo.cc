// SPDX-License-Identifier: Apache-2.0
// getaddrinfo and its results. Where POSIX and RFC 3493 leave a choice, it is glibc's.
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/raw.h"
#include "runtime/preload/descriptors/completion.h"
#include "runtime/preload/ground/pages.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/host_names.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/services.h"

namespace crane::wrap {
namespace {

constexpr int kFlags = AI_PASSIVE | AI_CANONNAME | AI_NUMERICHOST | AI_ADDRCONFIG | AI_V4MAPPED |
                       AI_ALL | AI_NUMERICSERV | AI_IDN | AI_CANONIDN |
                       0x300;  // AI_IDN_ALLOW_UNASSIGNED, AI_IDN_USE_STD3_ASCII_RULES

// The kinds of sockets, in the order of the results.
struct Kind {
  int type, protocol;
  const char* name;  // in /etc/services; null: the kind has no services
  bool is_default;   // returned when the hints name no kind
};
constexpr Kind kKinds[] = {
    {SOCK_STREAM, IPPROTO_TCP, "tcp", true},
    {SOCK_DGRAM, IPPROTO_UDP, "udp", true},
    {SOCK_DCCP, IPPROTO_DCCP, "dccp", false},
    {SOCK_DGRAM, IPPROTO_UDPLITE, "udplite", false},
    {SOCK_STREAM, IPPROTO_SCTP, "sctp", false},
    {SOCK_SEQPACKET, IPPROTO_SCTP, "sctp", false},
    {SOCK_RAW, 0, nullptr, true},
};

struct Wanted {
  int type, protocol;
  std::uint16_t port;
};
struct AllWanted {
  Wanted all[std::size(kKinds)];
  std::size_t count = 0;
};

bool fits(const Kind& k, const struct addrinfo& hints) noexcept {
  const bool any_protocol = k.name == nullptr;
  return (hints.ai_socktype == 0 || hints.ai_socktype == k.type) &&
         (hints.ai_protocol == 0 || any_protocol || hints.ai_protocol == k.protocol);
}

// Whether the hints name one kind of socket.
bool is_specific(const struct addrinfo& hints) noexcept {
  return hints.ai_socktype != 0 || hints.ai_protocol != 0;
}

void add(const Kind& k, const struct addrinfo& hints, int port, AllWanted& out) noexcept {
  const int protocol = k.name == nullptr ? hints.ai_protocol : k.protocol;
  out.all[out.count++] = {k.type, protocol, static_cast<std::uint16_t>(port)};
}

// Looks the service up by a name that /etc/services may have.
int want_service(const char* service, const struct addrinfo& hints, const Kind* specific,
                 AllWanted& out) noexcept {
  if ((hints.ai_flags & AI_NUMERICSERV) != 0) return EAI_NONAME;
  for (const Kind& k : kKinds) {
    if (k.name == nullptr || (specific != nullptr && &k != specific)) continue;
    if (const int port = services::find_port(service, k.name); port >= 0) add(k, hints, port, out);
  }
  return out.count > 0 ? 0 : EAI_SERVICE;
}

// Finds the kinds of sockets and their ports; `service` may be null.
int want(const char* service, const struct addrinfo& hints, AllWanted& out) noexcept {
  const Kind* specific = nullptr;
  if (is_specific(hints)) {
    specific = std::find_if(std::begin(kKinds), std::end(kKinds),
                            [&hints](const Kind& k) { return fits(k, hints); });
    if (specific == std::end(kKinds)) return hints.ai_socktype != 0 ? EAI_SOCKTYPE : EAI_SERVICE;
    if (service != nullptr && specific->name == nullptr) return EAI_SERVICE;
  }
  std::uint32_t port = 0;
  if (service != nullptr) {
    const char* const end = parse_number(service, port);
    if (end == service || *end != '\0') return want_service(service, hints, specific, out);
  }
  for (const Kind& k : kKinds) {
    if (specific != nullptr ? &k == specific : k.is_default) {
      add(k, hints, static_cast<int>(port), out);
    }
  }
  return 0;
}

// Adds the addresses of the host itself: those to bind, or those to connect to.
void put_own(const struct addrinfo& hints, ResolvedBody& answer) noexcept {
  VirtualAddress four{}, six{};
  four.family = AF_INET;
  six.family = AF_INET6;
  const bool passive = (hints.ai_flags & AI_PASSIVE) != 0;
  if (!passive) {
    interfaces::name_this_host(four);
    interfaces::name_this_host(six);
  }
  // The order is that of RFC 6724.
  if (passive && hints.ai_family != AF_INET6) answer.addresses[answer.count++] = four;
  if (hints.ai_family != AF_INET) answer.addresses[answer.count++] = six;
  if (!passive && hints.ai_family != AF_INET6) answer.addresses[answer.count++] = four;
}

int find_addresses(Turn& turn, const char* name, const struct addrinfo& hints,
                   ResolvedBody& answer) noexcept {
  answer = {};
  if (name == nullptr) {
    put_own(hints, answer);
    return 0;
  }
  const bool maps = (hints.ai_flags & AI_V4MAPPED) != 0;
  const int error = host_names::read_number(name, hints.ai_family, maps, answer.addresses[0]);
  if (error != host_names::kNoNumber) {
    answer.count = 1;
    return error;
  }
  if ((hints.ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  host_names::ask_for_addresses(turn, name, hints.ai_family, hints.ai_flags, answer);
  if (answer.error == 0 && answer.count == 0) return EAI_NODATA;
  return answer.error;
}

// A list has its own pages. No block of malloc begins at a page, so lists that libc made before
// Crane was attached can be distinguished from ours.
struct Listed {
  struct addrinfo entry;
  struct sockaddr_in6 address;
  std::size_t bytes;  // of the list, in its first entry
};
constexpr std::size_t kPage = 4096;

bool is_list(const void* list) noexcept {
  return reinterpret_cast<std::uintptr_t>(list) % kPage == 0;
}

void fill(Listed& l, const VirtualAddress& given, const Wanted& wanted,
          const struct addrinfo& hints) noexcept {
  VirtualAddress address = given;
  if (hints.ai_family == AF_INET6 && address.family == AF_INET) addresses::map_to_ipv6(address);
  address.port = wanted.port;
  socklen_t size = sizeof l.address;
  auto* const at = reinterpret_cast<struct sockaddr*>(&l.address);
  addresses::to_sockaddr(address, at, &size);
  l.entry.ai_flags = hints.ai_flags;
  l.entry.ai_family = address.family;
  l.entry.ai_socktype = wanted.type;
  l.entry.ai_protocol = wanted.protocol;
  l.entry.ai_addrlen = size;
  l.entry.ai_addr = at;
}

int make_list(const ResolvedBody& answer, const AllWanted& wanted, const struct addrinfo& hints,
              const char* canonical, struct addrinfo** result) noexcept {
  const std::size_t count = answer.count * wanted.count;
  const std::size_t name_bytes = canonical == nullptr ? 0 : std::strlen(canonical) + 1;
  const std::size_t bytes = (count * sizeof(Listed) + name_bytes + kPage - 1) / kPage * kPage;
  auto* const listed = static_cast<Listed*>(map_pages(bytes));
  if (listed == nullptr) return EAI_MEMORY;
  listed[0].bytes = bytes;
  for (std::size_t i = 0; i < count; ++i) {
    fill(listed[i], answer.addresses[i / wanted.count], wanted.all[i % wanted.count], hints);
    if (i > 0) listed[i - 1].entry.ai_next = &listed[i].entry;
  }
  if (canonical != nullptr) {
    listed[0].entry.ai_canonname = reinterpret_cast<char*>(listed + count);
    std::memcpy(listed[0].entry.ai_canonname, canonical, name_bytes);
  }
  *result = &listed[0].entry;
  return 0;
}

int check(const char* name, const struct addrinfo& hints) noexcept {
  if ((hints.ai_flags & ~kFlags) != 0) return EAI_BADFLAGS;
  if ((hints.ai_flags & AI_CANONNAME) != 0 && name == nullptr) return EAI_BADFLAGS;
  const int family = hints.ai_family;
  return family == AF_UNSPEC || family == AF_INET || family == AF_INET6 ? 0 : EAI_FAMILY;
}

int look_up(Turn& turn, const char* name, const char* service, const struct addrinfo& hints,
            struct addrinfo** result) noexcept {
  if (const int error = check(name, hints); error != 0) return error;
  AllWanted wanted;
  if (const int error = want(service, hints, wanted); error != 0) return error;
  const Scratch<ResolvedBody> answer;
  if (const int error = find_addresses(turn, name, hints, answer[0]); error != 0) {
    if (error == EAI_SYSTEM) errno = answer[0].system_error;
    return error;
  }
  const char* canonical = nullptr;
  if ((hints.ai_flags & AI_CANONNAME) != 0) {
    canonical = answer[0].name[0] != '\0' ? answer[0].name : name;
  }
  return make_list(answer[0], wanted, hints, canonical, result);
}

bool is_star(const char* text) noexcept {
  return text != nullptr && text[0] == '*' && text[1] == '\0';
}

int look_up(Op op, const char* name, const char* service, const struct addrinfo* given,
            struct addrinfo** result) noexcept {
  struct addrinfo hints {};
  hints.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG;
  if (given != nullptr) hints = *given;
  if (is_star(name)) name = nullptr;
  if (is_star(service)) service = nullptr;
  if (name == nullptr && service == nullptr) return EAI_NONAME;
  if (service != nullptr && service[0] == '\0') service = nullptr;
  Turn turn(op);
  const int error = look_up(turn, name, service, hints, result);
  turn.result(error);
  return error;
}

}  // namespace

int getaddrinfo(const char* name, const char* service, const struct addrinfo* hints,
                struct addrinfo** result) {
  return look_up(Op::getaddrinfo, name, service, hints, result);
}

void freeaddrinfo(struct addrinfo* list) {
  if (list == nullptr) return;
  if (!is_list(list)) return real::freeaddrinfo(list);
  raw_syscall(SYS_munmap, list, reinterpret_cast<const Listed*>(list)->bytes);
}

// libc would start its own threads. A request is complete when the call returns, as POSIX' aio in
// Crane. Queries of its state (gai_error, gai_suspend, gai_cancel) go to libc, which finds it
// complete.
int getaddrinfo_a(int mode, struct gaicb** list, int n, struct sigevent* s) {
  if (mode != GAI_WAIT && mode != GAI_NOWAIT) {
    errno = EINVAL;
    return EAI_SYSTEM;
  }
  for (int i = 0; i < n; ++i) {
    struct gaicb* const c = list[i];
    if (c == nullptr) continue;
    c->__return =
        look_up(Op::getaddrinfo_a, c->ar_name, c->ar_service, c->ar_request, &c->ar_result);
  }
  if (mode == GAI_NOWAIT && s != nullptr) notify_done(Op::getaddrinfo_a, *s, SI_ASYNCNL);
  return 0;
}

}  // namespace crane::wrap
