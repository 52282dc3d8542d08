// SPDX-License-Identifier: Apache-2.0
// select's third set, epoll's EPOLLPRI and a blocking reader wait for an urgent byte that another
// thread sends.
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/select.h>

#include "tcp_urgent.h"

static int to;
static void* send_byte(void* text) {
  sleep_ms(20);
  send_text(to, text, MSG_OOB);
  return NULL;
}

static void* send_stream(void* text) {
  sleep_ms(20);
  send_text(to, text, 0);
  return NULL;
}

int main(void) {
  int e[2];
  connected_pair(e);
  to = e[0];
  const int from = e[1];

  pthread_t t = start(send_byte, "1");
  fd_set in, special;
  FD_ZERO(&in);
  FD_ZERO(&special);
  FD_SET(from, &in);
  FD_SET(from, &special);
  CHECK_EQUAL(select(from + 1, &in, NULL, &special, NULL), 1);
  CHECK(!FD_ISSET(from, &in) && FD_ISSET(from, &special));
  join(t);
  expect_text_with(from, "1", MSG_OOB);

  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLPRI | EPOLLET, .data.fd = from};
  CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, from, &event), 0);
  CHECK_EQUAL(epoll_wait(epoll, &event, 1, 0), 0);
  t = start(send_byte, "a2");
  CHECK_EQUAL(epoll_wait(epoll, &event, 1, 5000), 1);
  CHECK_EQUAL(event.events, EPOLLPRI);
  join(t);
  expect_text_with(from, "2", MSG_OOB);
  expect_text(from, "a");
  CHECK_EQUAL(close(epoll), 0);

  // A waiting reader skips the byte, and continues to wait.
  t = start(send_byte, "3");
  const pthread_t u = start(send_stream, "b");
  char byte = 0;
  CHECK_EQUAL(recv(from, &byte, 1, 0), 1);
  CHECK_EQUAL(byte, 'b');
  join(t);
  join(u);
  return succeed();
}
