// SPDX-License-Identifier: Apache-2.0
// getaddrinfo for numbers and localhost, and getnameinfo back; an invalid number or service is
// EAI_NONAME.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "../small.h"

int main(void) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  struct addrinfo* r;
  char host[64], service[16];
  CHECK_EQUAL(getaddrinfo("192.0.2.1", "80", &hints, &r), 0);
  const struct sockaddr_in* const a = (const struct sockaddr_in*)r->ai_addr;
  CHECK(r->ai_family == AF_INET && r->ai_protocol == IPPROTO_TCP && r->ai_next == NULL);
  CHECK(a->sin_port == htons(80) && a->sin_addr.s_addr == inet_addr("192.0.2.1"));
  CHECK_EQUAL(getnameinfo(r->ai_addr, r->ai_addrlen, host, sizeof host, service, sizeof service,
                          NI_NUMERICHOST | NI_NUMERICSERV),
              0);
  CHECK(strcmp(host, "192.0.2.1") == 0 && strcmp(service, "80") == 0);
  freeaddrinfo(r);
  CHECK_EQUAL(getaddrinfo("::1", NULL, &hints, &r), 0);
  CHECK_EQUAL(r->ai_family, AF_INET6);
  freeaddrinfo(r);
  CHECK_EQUAL(getaddrinfo("word", NULL, &hints, &r), EAI_NONAME);
  CHECK_EQUAL(getaddrinfo("127.0.0.1", "word", &hints, &r), EAI_NONAME);
  CHECK_EQUAL(getaddrinfo(NULL, NULL, &hints, &r), EAI_NONAME);
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_family = AF_INET;
  CHECK_EQUAL(getaddrinfo(NULL, "7", &hints, &r), 0);
  CHECK_EQUAL(((const struct sockaddr_in*)r->ai_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
  freeaddrinfo(r);
  hints.ai_flags = 0;
  CHECK_EQUAL(getaddrinfo("localhost", "7", &hints, &r), 0);
  CHECK_EQUAL(((const struct sockaddr_in*)r->ai_addr)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  freeaddrinfo(r);
  return succeed();
}
