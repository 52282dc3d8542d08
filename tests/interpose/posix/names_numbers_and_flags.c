// SPDX-License-Identifier: Apache-2.0
// getaddrinfo without a resolver: numbers, families, kinds of sockets, services, flags, errors; the
// lists are freed. Each line is the same as natively.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "../small.h"

static void ask(const char* name, const char* service, int family, int type, int protocol,
                int flags) {
  const struct addrinfo hints = {
      .ai_flags = flags, .ai_family = family, .ai_socktype = type, .ai_protocol = protocol};
  struct addrinfo* list = NULL;
  const int error = getaddrinfo(name, service, &hints, &list);
  printf("%s %s %d %d %d %x: %d\n", name ? name : "-", service ? service : "-", family, type,
         protocol, (unsigned)flags, error);
  if (error != 0) return;
  for (const struct addrinfo* a = list; a != NULL; a = a->ai_next) {
    char host[100], port[20];
    CHECK_EQUAL(getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port, sizeof port,
                            NI_NUMERICHOST | NI_NUMERICSERV),
                0);
    printf("  %d %d %d %x %u %s %s %s\n", a->ai_family, a->ai_socktype, a->ai_protocol,
           (unsigned)a->ai_flags, a->ai_addrlen, host, port,
           a->ai_canonname ? a->ai_canonname : "-");
  }
  freeaddrinfo(list);
}

static void numbers(void) {
  ask("10.0.0.1", "80", 0, 0, 0, 0);
  ask("10.0.0.1", NULL, AF_INET, SOCK_STREAM, 0, AI_CANONNAME);
  ask("127.1", "80", 0, SOCK_DGRAM, 0, 0);
  ask("0x7f.1", "http", 0, SOCK_STREAM, 0, AI_NUMERICHOST);
  ask("2001:db8::1", "443", 0, SOCK_STREAM, 0, 0);
  ask("::1", "443", AF_INET, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "1", AF_INET6, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "1", AF_INET6, SOCK_STREAM, 0, AI_V4MAPPED);
  ask("::ffff:10.0.0.1", "1", AF_INET, SOCK_STREAM, 0, 0);
  ask("fe80::1%7", "1", 0, SOCK_STREAM, 0, 0);
  ask("fe80::1%lo", "1", 0, SOCK_STREAM, 0, 0);
  ask("2001:db8::1%nowhere", "1", 0, SOCK_STREAM, 0, 0);
  ask("a.example", "1", 0, SOCK_STREAM, 0, AI_NUMERICHOST);
  ask("10.0.0", "1", 0, SOCK_STREAM, 0, AI_NUMERICHOST);
  ask("10.0.0.256", "1", 0, SOCK_STREAM, 0, AI_NUMERICHOST);
}

static void own(void) {
  ask(NULL, "80", AF_INET, SOCK_STREAM, 0, AI_PASSIVE);
  ask(NULL, "80", AF_INET6, SOCK_STREAM, 0, AI_PASSIVE);
  ask(NULL, "80", AF_INET, SOCK_STREAM, 0, 0);
  ask(NULL, "80", AF_INET6, SOCK_STREAM, 0, 0);
  ask("*", "80", AF_INET, SOCK_STREAM, 0, 0);
  ask("localhost", "80", AF_INET, SOCK_STREAM, 0, 0);
}

static void services(void) {
  ask("10.0.0.1", "http", 0, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "domain", 0, 0, 0, 0);
  ask("10.0.0.1", "domain", 0, 0, IPPROTO_UDP, 0);
  ask("10.0.0.1", "mail", 0, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "tftp", 0, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "no-such-service", 0, 0, 0, 0);
  ask("10.0.0.1", "http", 0, SOCK_STREAM, 0, AI_NUMERICSERV);
  ask("10.0.0.1", "", 0, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", "65537", 0, SOCK_STREAM, 0, 0);
  ask("10.0.0.1", NULL, 0, SOCK_RAW, IPPROTO_ICMP, 0);
  ask("10.0.0.1", "80", 0, SOCK_RAW, 0, 0);
  ask("10.0.0.1", "80", 0, SOCK_SEQPACKET, 0, 0);
}

static void errors(void) {
  ask(NULL, NULL, 0, 0, 0, 0);
  ask(NULL, "80", 0, 0, 0, AI_CANONNAME);
  ask("10.0.0.1", "80", 0, 0, 0, 0x4000);
  ask("10.0.0.1", "80", AF_UNIX, 0, 0, 0);
  ask("10.0.0.1", "80", 0, 77, 0, 0);
  ask("10.0.0.1", "80", 0, 0, 77, 0);
  ask("10.0.0.1", "80", 0, SOCK_STREAM, IPPROTO_UDP, 0);
  ask("", "80", AF_INET, SOCK_STREAM, 0, 0);
}

int main(void) {
  numbers();
  own();
  services();
  errors();
  return succeed();
}
