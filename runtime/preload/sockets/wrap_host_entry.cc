// SPDX-License-Identifier: Apache-2.0
// gethostbyname, gethostbyaddr, getnameinfo and similar; refuses the resolver's other functions.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "dmt/base/log.h"
#include "runtime/preload/descriptors/fd.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/host_names.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/sockets/services.h"

namespace crane::wrap {
namespace {

// --- struct hostent  -----------------------------------------------------------------------------

// The result of gethostbyname() and gethostbyaddr(), one per process.
constexpr std::size_t kOwnBytes = 2048;
alignas(16) char own_bytes[kOwnBytes];
struct hostent own_entry;

// The caller's buffer.
struct Buffer {
  char* bytes;
  std::size_t size;

  // Returns null when there is no room.
  void* take(std::size_t n, std::size_t alignment) noexcept {
    const std::size_t gap = -reinterpret_cast<std::uintptr_t>(bytes) & (alignment - 1);
    if (size < gap || size - gap < n) return nullptr;
    char* const at = bytes + gap;
    bytes = at + n;
    size -= gap + n;
    return at;
  }
};

// Returns false when the buffer has no room.
bool fill(const ResolvedBody& answer, const char* name, int family, Buffer room,
          struct hostent& h) noexcept {
  const std::size_t length = family == AF_INET6 ? 16 : 4;
  auto* const pointers =
      static_cast<char**>(room.take((answer.count + 2) * sizeof(char*), alignof(char*)));
  auto* const ips = static_cast<char*>(room.take(answer.count * length, alignof(std::uint32_t)));
  const std::size_t name_bytes = std::strlen(name) + 1;
  auto* const text = static_cast<char*>(room.take(name_bytes, 1));
  if (pointers == nullptr || ips == nullptr || text == nullptr) return false;
  std::memcpy(text, name, name_bytes);
  for (std::size_t i = 0; i < answer.count; ++i) {
    pointers[i] = ips + i * length;
    std::memcpy(pointers[i], answer.addresses[i].ip, length);
  }
  pointers[answer.count] = pointers[answer.count + 1] = nullptr;
  h.h_name = text;
  h.h_aliases = &pointers[answer.count + 1];
  h.h_addrtype = family;
  h.h_length = static_cast<int>(length);
  h.h_addr_list = pointers;
  return true;
}

// Converts an EAI_ number to an h_errno.
int host_error_of(int error) noexcept {
  switch (error) {
    case EAI_NONAME:
      return HOST_NOT_FOUND;
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
      return NO_DATA;
    case EAI_AGAIN:
      return TRY_AGAIN;
    case EAI_FAIL:
      return NO_RECOVERY;
    default:
      return NETDB_INTERNAL;
  }
}

// The results of functions with _r in addition to the entry.
struct Outcome {
  struct hostent** result;
  int* host_error;

  int failed(int error) const noexcept {
    *result = nullptr;
    *host_error = host_error_of(error);
    if (error == EAI_AGAIN) return errno = EAGAIN;
    return 0;
  }
  int failed_with(int number) const noexcept {
    *result = nullptr;
    *host_error = NETDB_INTERNAL;
    return errno = number;
  }
};

int by_name(Op op, const char* name, int family, struct hostent* h, Buffer room,
            const Outcome& out) noexcept {
  if (family != AF_INET && family != AF_INET6) return out.failed_with(EAFNOSUPPORT);
  Turn turn(op);
  const Scratch<ResolvedBody> answer;
  answer[0] = {};
  const int error = host_names::read_number(name, family, false, answer[0].addresses[0]);
  if (error == 0) {
    answer[0].count = 1;
  } else if (error != host_names::kNoNumber) {
    answer[0].error = EAI_NONAME;
  } else {
    host_names::ask_for_addresses(turn, name, family, AI_CANONNAME, answer[0]);
  }
  turn.result(answer[0].error);
  if (answer[0].error != 0) return out.failed(answer[0].error);
  if (answer[0].count == 0) return out.failed(EAI_NODATA);
  const char* const canonical = answer[0].name[0] != '\0' ? answer[0].name : name;
  if (!fill(answer[0], canonical, family, room, *h)) return out.failed_with(ERANGE);
  *out.result = h;
  return 0;
}

int by_address(Op op, const void* a, socklen_t size, int family, struct hostent* h, Buffer room,
               const Outcome& out) noexcept {
  const socklen_t expected = family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
  if (expected == 0) return out.failed_with(EAFNOSUPPORT);
  if (size != expected) return out.failed_with(EINVAL);
  VirtualAddress given{};
  given.family = static_cast<std::uint16_t>(family);
  std::memcpy(given.ip, a, size);
  if (family == AF_INET6 && is_wildcard(given)) return out.failed(EAI_NONAME);
  VirtualAddress address = given;
  addresses::unmap(address);
  Turn turn(op);
  const Scratch<ResolvedBody> answer;
  host_names::ask_for_name(turn, address, 0, answer[0]);
  turn.result(answer[0].error);
  if (answer[0].error != 0) return out.failed(answer[0].error);
  answer[0].count = 1;
  answer[0].addresses[0] = given;
  if (!fill(answer[0], answer[0].name, family, room, *h)) return out.failed_with(ERANGE);
  *out.result = h;
  return 0;
}

// --- getnameinfo  --------------------------------------------------------------------------------

constexpr int kFlags = NI_NUMERICHOST | NI_NUMERICSERV | NI_NOFQDN | NI_NAMEREQD | NI_DGRAM |
                       NI_IDN | 0xc0;  // NI_IDN_ALLOW_UNASSIGNED, NI_IDN_USE_STD3_ASCII_RULES

int put(const char* text, char* out, socklen_t room) noexcept {
  const std::size_t bytes = std::strlen(text) + 1;
  if (bytes > room) return EAI_OVERFLOW;
  std::memcpy(out, text, bytes);
  return 0;
}

int put_number_of(const VirtualAddress& address, char* out, socklen_t room) noexcept {
  char text[INET6_ADDRSTRLEN + IFNAMSIZ + 1];
  if (::inet_ntop(address.family, address.ip, text, INET6_ADDRSTRLEN) == nullptr) return EAI_SYSTEM;
  if (address.scope != 0) {
    char name[IFNAMSIZ];
    char* const end = text + std::strlen(text);
    *end = '%';
    if (wrap::if_indextoname(address.scope, name) != nullptr) {
      std::memcpy(end + 1, name, std::strlen(name) + 1);
    } else {
      print_number("", address.scope, end + 1);
    }
  }
  return put(text, out, room);
}

int put_host(const VirtualAddress& given, char* out, socklen_t room, int flags) noexcept {
  if ((flags & NI_NUMERICHOST) == 0) {
    VirtualAddress address = given;
    address.port = 0;
    addresses::unmap(address);
    Turn turn(Op::getnameinfo);
    const Scratch<ResolvedBody> answer;
    host_names::ask_for_name(turn, address, flags, answer[0]);
    turn.result(answer[0].error);
    if (answer[0].error == 0) return put(answer[0].name, out, room);
    if (answer[0].error == EAI_AGAIN) return EAI_AGAIN;
  }
  if ((flags & NI_NAMEREQD) != 0) return EAI_NONAME;
  return put_number_of(given, out, room);
}

int put_service(std::uint16_t port, char* out, socklen_t room, int flags) noexcept {
  if ((flags & NI_NUMERICSERV) == 0) {
    Turn turn(Op::getnameinfo);
    if (services::find_name(port, (flags & NI_DGRAM) != 0 ? "udp" : "tcp", out, room)) {
      return *out != '\0' ? 0 : EAI_OVERFLOW;
    }
  }
  char text[12];
  print_number("", port, text);
  return put(text, out, room);
}

int put_unix(const struct sockaddr* a, socklen_t size, char* host, socklen_t host_room,
             char* service, socklen_t service_room, int flags) noexcept {
  if (host != nullptr && host_room > 0) {
    if ((flags & NI_NAMEREQD) != 0) return EAI_NONAME;
    const char* const name =
        (flags & NI_NUMERICHOST) != 0 ? "localhost" : without_turn().header.configuration.host_name;
    if (const int error = put(name, host, host_room); error != 0) return error;
  }
  if (service == nullptr || service_room == 0) return 0;
  struct sockaddr_un named {};
  std::memcpy(&named, a, std::min<std::size_t>(size, sizeof named - 1));
  return put(named.sun_path, service, service_room);
}

// --- the resolver's own functions  ---------------------------------------------------------------

int refuse() noexcept {
  static bool reported = false;
  if (first_time(reported)) {
    Message() << "the server calls the resolver directly (res_query or similar), which is not "
                 "supported: the call fails, getaddrinfo and getnameinfo work";
  }
  h_errno = NO_RECOVERY;
  return fail(ENOSYS);
}

}  // namespace

struct hostent* gethostbyname2(const char* name, int family) {
  struct hostent* result = nullptr;
  by_name(Op::gethostbyname2, name, family, &own_entry, {own_bytes, kOwnBytes},
          {&result, &h_errno});
  return result;
}
struct hostent* gethostbyname(const char* name) {
  return wrap::gethostbyname2(name, AF_INET);
}
int gethostbyname2_r(const char* name, int family, struct hostent* h, char* b, size_t n,
                     struct hostent** r, int* error) {
  return by_name(Op::gethostbyname2_r, name, family, h, {b, n}, {r, error});
}
int gethostbyname_r(const char* name, struct hostent* h, char* b, size_t n, struct hostent** r,
                    int* error) {
  return by_name(Op::gethostbyname_r, name, AF_INET, h, {b, n}, {r, error});
}

struct hostent* gethostbyaddr(const void* a, socklen_t size, int family) {
  struct hostent* result = nullptr;
  by_address(Op::gethostbyaddr, a, size, family, &own_entry, {own_bytes, kOwnBytes},
             {&result, &h_errno});
  return result;
}
int gethostbyaddr_r(const void* a, socklen_t size, int family, struct hostent* h, char* b, size_t n,
                    struct hostent** r, int* error) {
  return by_address(Op::gethostbyaddr_r, a, size, family, h, {b, n}, {r, error});
}

int getnameinfo(const struct sockaddr* a, socklen_t n, char* host, socklen_t host_n, char* service,
                socklen_t service_n, int flags) {
  if ((flags & ~kFlags) != 0) return EAI_BADFLAGS;
  if (a == nullptr || n < sizeof(sa_family_t)) return EAI_FAMILY;
  if ((flags & NI_NAMEREQD) != 0 && host == nullptr && service == nullptr) return EAI_NONAME;
  if (a->sa_family == AF_UNIX) return put_unix(a, n, host, host_n, service, service_n, flags);
  VirtualAddress address{};
  if (a->sa_family != AF_INET && a->sa_family != AF_INET6) return EAI_FAMILY;
  if (addresses::from_sockaddr(a, n, address) < 0) return EAI_FAMILY;
  if (host != nullptr && host_n > 0) {
    if (const int error = put_host(address, host, host_n, flags); error != 0) return error;
  }
  if (service == nullptr || service_n == 0) return 0;
  return put_service(address.port, service, service_n, flags);
}

int res_query(const char*, int, int, unsigned char*, int) { return refuse(); }
int res_search(const char*, int, int, unsigned char*, int) { return refuse(); }
int res_querydomain(const char*, const char*, int, int, unsigned char*, int) { return refuse(); }
int res_send(const unsigned char*, int, unsigned char*, int) { return refuse(); }
int res_nquery(struct __res_state*, const char*, int, int, unsigned char*, int) { return refuse(); }
int res_nsearch(struct __res_state*, const char*, int, int, unsigned char*, int) {
  return refuse();
}
int res_nquerydomain(struct __res_state*, const char*, const char*, int, int, unsigned char*, int) {
  return refuse();
}
int res_nsend(struct __res_state*, const unsigned char*, int, unsigned char*, int) {
  return refuse();
}

}  // namespace crane::wrap
