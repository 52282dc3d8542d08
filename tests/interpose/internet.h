// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses for programs with sockets.
#ifndef TESTS_INTERPOSE_INTERNET_H
#define TESTS_INTERPOSE_INTERNET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef struct sockaddr Any;
typedef struct sockaddr_in In;

static inline In at(const char* ip, int port) {
  In a;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons((unsigned short)port);
  inet_pton(AF_INET, ip, &a.sin_addr);
  return a;
}

#endif
