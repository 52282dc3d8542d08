// SPDX-License-Identifier: Apache-2.0
// A server process and four client processes, many bytes in each direction: all arrive in order,
// and a writer waits for a slow reader.
#include <sys/wait.h>

#include "tcp_loopback.h"

enum { kClients = 4, kBytes = 1500000 };

static unsigned char byte_at(int who, int i) { return (unsigned char)(who * 31 + i * 7 + i / 251); }

static void client(int port, int who) {
  const int fd = connect_to(port);
  static unsigned char out[kBytes], in[kBytes];
  for (int i = 0; i < kBytes; ++i) out[i] = byte_at(who, i);
  unsigned char name = (unsigned char)who;
  if (write(fd, &name, 1) != 1) _exit(1);
  for (int sent = 0, got = 0; got < kBytes;) {
    struct pollfd p = {fd, (short)(POLLIN | (sent < kBytes ? POLLOUT : 0)), 0};
    if (poll(&p, 1, -1) != 1) _exit(2);
    if ((p.revents & POLLOUT) != 0) {
      const ssize_t n = send(fd, out + sent, (size_t)(kBytes - sent), MSG_DONTWAIT);
      if (n > 0) sent += (int)n;
      if (sent == kBytes) shutdown(fd, SHUT_WR);
    }
    if ((p.revents & POLLIN) != 0) {
      const ssize_t n = recv(fd, in + got, (size_t)(kBytes - got), MSG_DONTWAIT);
      if (n == 0) _exit(3);
      if (n > 0) got += (int)n;
    }
  }
  for (int i = 0; i < kBytes; ++i) {
    if (in[i] != (unsigned char)(out[i] ^ 0x55)) _exit(4);
  }
  char end;
  _exit(recv(fd, &end, 1, 0) == 0 ? 0 : 5);
}

static void* serve(void* given) {
  const int fd = (int)(long)given;
  unsigned char name, bytes[8192];
  CHECK_EQUAL(recv(fd, &name, 1, 0), 1);
  int at = 0;
  for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
    for (ssize_t i = 0; i < n; ++i) {
      CHECK_EQUAL(bytes[i], byte_at(name, at + (int)i));
      bytes[i] ^= 0x55;
    }
    at += (int)n;
    for (ssize_t done = 0; done < n;) {
      const ssize_t w = send(fd, bytes + done, (size_t)(n - done), 0);
      CHECK(w > 0);
      done += w;
    }
  }
  CHECK_EQUAL(at, kBytes);
  close(fd);
  return NULL;
}

int main(void) {
  int port = 0;
  const int listener = listen_at_loopback(kClients, &port);
  pid_t children[kClients];
  for (int i = 0; i < kClients; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      close(listener);
      client(port, i);
    }
  }
  pthread_t threads[kClients];
  for (int i = 0; i < kClients; ++i) {
    const int fd = accept(listener, NULL, NULL);
    CHECK(fd >= 0);
    threads[i] = start(serve, (void*)(long)fd);
  }
  for (int i = 0; i < kClients; ++i) join(threads[i]);
  for (int i = 0; i < kClients; ++i) {
    int status = -1;
    CHECK_EQUAL(waitpid(children[i], &status, 0), children[i]);
    CHECK_EQUAL(status, 0);
  }
  return succeed();
}
