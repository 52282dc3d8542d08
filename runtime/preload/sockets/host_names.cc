// SPDX-License-Identifier: Apache-2.0
#include "runtime/preload/sockets/host_names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "dmt/names.h"
#include "runtime/preload/ground/text.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/sockets/addresses.h"
#include "runtime/preload/sockets/interfaces.h"
#include "runtime/preload/turn/blocking.h"

namespace crane::host_names {
namespace {

constexpr char kLocalHost[] = "localhost";

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_same_name(const char* a, const char* b) noexcept {
  for (; *a != '\0' && lower(*a) == lower(*b); ++a, ++b) {
  }
  return lower(*a) == lower(*b);
}

// Also true for names below localhost (RFC 6761).
bool is_local_host(const char* name) noexcept {
  const std::size_t size = std::strlen(name), own = sizeof kLocalHost - 1;
  if (size < own || !is_same_name(name + size - own, kLocalHost)) return false;
  return size == own || name[size - own - 1] == '.';
}

VirtualAddress loopback_six() noexcept {
  VirtualAddress a{};
  a.family = AF_INET6;
  interfaces::name_this_host(a);
  return a;
}

void put_name(const char* name, ResolvedBody& answer) noexcept {
  std::memcpy(answer.name, name, std::min(std::strlen(name), sizeof answer.name - 1));
}

void put(const VirtualAddress& address, ResolvedBody& answer) noexcept {
  answer.addresses[answer.count++] = address;
}

bool know_addresses(const dmt::Layout& w, const NameRequest& request,
                    ResolvedBody& answer) noexcept {
  const int family = request.address.family;
  const bool local = is_local_host(request.name);
  if (!local && !is_same_name(request.name, w.header.configuration.host_name)) return false;
  put_name(request.name, answer);
  VirtualAddress own = interfaces::address_of(local ? interfaces::kLoopback : interfaces::kAddress);
  if (local && family != AF_INET) put(loopback_six(), answer);
  if (family != AF_INET6) {
    put(own, answer);
  } else if (!local) {
    addresses::map_to_ipv6(own);
    if ((request.flags & AI_V4MAPPED) != 0) put(own, answer);
  }
  if (answer.count == 0) answer.error = EAI_ADDRFAMILY;
  return true;
}

bool know_name(const dmt::Layout& w, const NameRequest& request, ResolvedBody& answer) noexcept {
  if (!interfaces::is_own(request.address)) return false;
  put_name(interfaces::is_loopback(request.address) ? kLocalHost : w.header.configuration.host_name,
           answer);
  return true;
}

void ask_the_leader(Turn& turn, const NameRequest& request, ResolvedBody& answer) noexcept {
  const std::uint64_t number = dmt::send_name_query(turn.w, own_slot(), request);
  answer.error = EAI_AGAIN;
  if (number == 0) return;
  for (;;) {
    const dmt::NameRecord* const asked = dmt::find_name(turn.w, number);
    if (asked == nullptr) return;
    if (asked->state == dmt::NameState::kAnswered) {
      answer = asked->answer;
      return dmt::forget_name(turn.w, number);
    }
    block(turn, number);
  }
}

// Reads the part after '%': the name of an interface if the address is local to a link, or its
// number.
bool read_scope(const char* text, const VirtualAddress& address, std::uint32_t& scope) noexcept {
  const bool of_link = (address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80) ||  // fe80::/10
                       (address.ip[0] == 0xff && (address.ip[1] & 0x0f) <= 2);  // groups of a link
  if (of_link && interfaces::exists(text)) {
    scope = wrap::if_nametoindex(text);
    return true;
  }
  const char* const end = parse_number(text, scope);
  return end != text && *end == '\0';
}

bool read_six(const char* name, VirtualAddress& out, bool& good_scope) noexcept {
  char text[INET6_ADDRSTRLEN];
  const char* const scope = std::strchr(name, '%');
  const std::size_t size =
      scope != nullptr ? static_cast<std::size_t>(scope - name) : std::strlen(name);
  if (size >= sizeof text) return false;
  std::memcpy(text, name, size);
  text[size] = '\0';
  if (::inet_pton(AF_INET6, text, out.ip) != 1) return false;
  out.family = AF_INET6;
  good_scope = scope == nullptr || read_scope(scope + 1, out, out.scope);
  return true;
}

}  // namespace

int read_number(const char* name, int family, bool maps, VirtualAddress& out) noexcept {
  out = {};
  struct in_addr ip;
  // inet_aton() accepts any text after a blank, but a host name has no blank.
  if (std::strchr(name, ' ') == nullptr && std::strchr(name, '\n') == nullptr &&
      std::strchr(name, '\t') == nullptr && ::inet_aton(name, &ip) != 0) {
    out.family = AF_INET;
    std::memcpy(out.ip, &ip, sizeof ip);
    if (family != AF_INET6) return 0;
    if (!maps) return EAI_ADDRFAMILY;
    addresses::map_to_ipv6(out);
    return 0;
  }
  bool good_scope = true;
  if (!read_six(name, out, good_scope)) return kNoNumber;
  if (family == AF_INET && !addresses::unmap(out)) return EAI_ADDRFAMILY;
  return good_scope ? 0 : EAI_NONAME;
}

void ask_for_addresses(Turn& turn, const char* name, int family, int flags,
                       ResolvedBody& answer) noexcept {
  answer = {};
  const std::size_t size = strnlen(name, kNameBytes);
  if (size == 0 || size == kNameBytes) {
    answer.error = EAI_NONAME;
    return;
  }
  const Scratch<NameRequest> request;
  *request.data() = {};
  request[0].question = NameQuestion::kAddresses;
  request[0].flags = static_cast<std::uint32_t>(flags);
  request[0].address.family = static_cast<std::uint16_t>(family);
  std::memcpy(request[0].name, name, size);
  if (!know_addresses(turn.w, request[0], answer)) ask_the_leader(turn, request[0], answer);
}

void ask_for_name(Turn& turn, const VirtualAddress& address, int flags,
                  ResolvedBody& answer) noexcept {
  answer = {};
  const Scratch<NameRequest> request;
  *request.data() = {};
  request[0].question = NameQuestion::kName;
  request[0].flags = static_cast<std::uint32_t>(flags);
  request[0].address = address;
  if (!know_name(turn.w, request[0], answer)) ask_the_leader(turn, request[0], answer);
}

}  // namespace crane::host_names
