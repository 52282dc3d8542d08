// SPDX-License-Identifier: Apache-2.0
// native: no
// solo: --clients tests/interpose/io_names.script
// Name queries that the leader's resolver answers: addresses, the canonical name, errors. A signal
// handler runs while a thread waits; a resolver with its own protocol is refused.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <resolv.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void ask(const char* name, int family, int flags) {
  const struct addrinfo hints = {
      .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
  struct addrinfo* list = NULL;
  const int error = getaddrinfo(name, "80", &hints, &list);
  printf("%s: %d", name, error);
  for (const struct addrinfo* a = list; a != NULL; a = a->ai_next) {
    char host[100], port[20];
    getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    printf(" %s:%s %s", host, port, a->ai_canonname ? a->ai_canonname : "-");
  }
  printf("\n");
  freeaddrinfo(list);
}

static volatile sig_atomic_t rang;
static void ring(int signo) { rang = signo; }

int main(void) {
  ask("two.example", AF_UNSPEC, AI_CANONNAME);
  ask("six.example", AF_INET6, 0);
  ask("mapped.example", AF_INET6, AI_V4MAPPED);
  ask("no.example", AF_UNSPEC, 0);
  const struct hostent* h = gethostbyname("entry.example");
  printf("entry: %s %d\n", h->h_name, h->h_length);
  h = gethostbyname("no.example");
  printf("no entry: %s %d\n", h == NULL ? "none" : h->h_name, h_errno);
  char text[100];
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000001)}};
  int error = getnameinfo((struct sockaddr*)&a, sizeof a, text, sizeof text, NULL, 0, 0);
  printf("name: %d %s\n", error, text);
  error = getnameinfo((struct sockaddr*)&a, sizeof a, text, sizeof text, NULL, 0, 0);
  printf("no name: %d %s\n", error, text);
  error = getnameinfo((struct sockaddr*)&a, sizeof a, text, sizeof text, NULL, 0, NI_NAMEREQD);
  printf("a name is required: %d\n", error);
  signal(SIGALRM, ring);
  alarm(1);
  ask("late.example", AF_UNSPEC, 0);
  printf("a handler ran: %d\n", rang == SIGALRM);
  struct gaicb one = {.ar_name = "a.example", .ar_service = "80"}, *all[] = {&one, NULL};
  error = getaddrinfo_a(GAI_WAIT, all, 2, NULL);
  printf("getaddrinfo_a: %d %d %d\n", error, gai_error(&one), one.ar_result != NULL);
  freeaddrinfo(one.ar_result);
  unsigned char answer[512];
  error = res_query("a.example", 1, 1, answer, sizeof answer);
  printf("res_query: %d %d\n", error, h_errno);
  ask("unanswered.example", AF_UNSPEC, 0);
  return 0;
}
