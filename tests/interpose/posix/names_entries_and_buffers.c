// SPDX-License-Identifier: Apache-2.0
// gethostbyname and related calls for numbers and localhost; getnameinfo's flags, short buffers and
// errors. Each printed line equals that of a native run.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "../small.h"

static void print_entry(const char* what, const struct hostent* h) {
  printf("%s:", what);
  if (h == NULL) {
    printf(" none, %d\n", h_errno);
    return;
  }
  printf(" %s %d %d", h->h_name, h->h_addrtype, h->h_length);
  for (char** a = h->h_addr_list; *a != NULL; ++a) {
    char text[INET6_ADDRSTRLEN];
    printf(" %s", inet_ntop(h->h_addrtype, *a, text, sizeof text));
  }
  printf("\n");
}

static void entries(void) {
  print_entry("number", gethostbyname("10.0.0.1"));
  print_entry("number of six", gethostbyname2("2001:db8::1", AF_INET6));
  print_entry("localhost", gethostbyname2("localhost", AF_INET));
  print_entry("six as four", gethostbyname("2001:db8::1"));
  const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
  print_entry("address", gethostbyaddr(&loopback, sizeof loopback, AF_INET));
  struct hostent h, *result = &h;
  char bytes[200];
  int error = 0;
  CHECK_EQUAL(gethostbyname_r("10.0.0.1", &h, bytes, 8, &result, &error), ERANGE);
  CHECK(result == NULL && error == NETDB_INTERNAL);
  CHECK_EQUAL(gethostbyname_r("10.0.0.1", &h, bytes, sizeof bytes, &result, &error), 0);
  CHECK(result == &h && h.h_name >= bytes && h.h_name < bytes + sizeof bytes);
  CHECK(h.h_aliases[0] == NULL && h.h_addr_list[1] == NULL);
  CHECK_EQUAL(gethostbyname2_r("::1", AF_INET6, &h, bytes, sizeof bytes, &result, &error), 0);
  CHECK(result == &h && h.h_length == 16);
  CHECK_EQUAL(gethostbyaddr_r(&loopback, 4, AF_INET, &h, bytes, sizeof bytes, &result, &error), 0);
  CHECK(strcmp(h.h_name, "localhost") == 0);
}

static void name(const char* ip, int port, size_t host_room, size_t service_room, int flags) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port)};
  const int is_four = inet_pton(AF_INET, ip, &four.sin_addr);
  if (!is_four) CHECK_EQUAL(inet_pton(AF_INET6, ip, &six.sin6_addr), 1);
  if (strncmp(ip, "fe80", 4) == 0) six.sin6_scope_id = 1;
  char host[100] = "", service[100] = "";
  const int error = getnameinfo(is_four ? (struct sockaddr*)&four : (struct sockaddr*)&six,
                                is_four ? sizeof four : sizeof six, host, (socklen_t)host_room,
                                service, (socklen_t)service_room, flags);
  printf("%s %d %zu %zu %x: %d", ip, port, host_room, service_room, (unsigned)flags, error);
  printf(error == 0 ? " %s %s\n" : "\n", host, service);
}

static void names(void) {
  name("10.0.0.1", 80, 100, 100, NI_NUMERICHOST | NI_NUMERICSERV);
  name("10.0.0.1", 80, 100, 100, NI_NUMERICHOST);
  name("10.0.0.1", 514, 100, 100, NI_NUMERICHOST | NI_DGRAM);
  name("10.0.0.1", 3, 100, 100, NI_NUMERICHOST);
  name("127.0.0.1", 80, 100, 100, 0);
  name("127.0.0.1", 80, 100, 100, NI_NAMEREQD);
  name("2001:db8::1", 80, 100, 100, NI_NUMERICHOST);
  name("fe80::1", 80, 100, 100, NI_NUMERICHOST);
  name("10.0.0.1", 80, 8, 100, NI_NUMERICHOST);
  name("10.0.0.1", 80, 100, 2, NI_NUMERICHOST | NI_NUMERICSERV);
  name("10.0.0.1", 80, 0, 100, 0);
  name("10.0.0.1", 80, 100, 0, NI_NUMERICHOST);
  name("10.0.0.1", 80, 100, 100, NI_NUMERICHOST | NI_NAMEREQD);
  name("10.0.0.1", 80, 100, 100, 0x4000);
  const struct sockaddr_in a = {.sin_family = AF_INET};
  const struct sockaddr other = {.sa_family = 77};
  char text[100];
  CHECK_EQUAL(getnameinfo((const struct sockaddr*)&a, 4, text, 100, NULL, 0, 0), EAI_FAMILY);
  CHECK_EQUAL(getnameinfo(&other, sizeof other, text, 100, NULL, 0, 0), EAI_FAMILY);
}

int main(void) {
  entries();
  names();
  return succeed();
}
