// SPDX-License-Identifier: Apache-2.0
// A server that stops after its first client: two threads lock two mutexes in opposite order.
//
//   deadlock_server PORT
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_have_one;

static void* other(void* unused) {
  pthread_mutex_lock(&second);
  pthread_barrier_wait(&both_have_one);
  pthread_mutex_lock(&first);
  return unused;
}

int main(int argc, char** argv) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 0));
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
    perror("deadlock_server");
    return 1;
  }
  const int client = accept(listener, NULL, NULL);
  if (write(client, "hello\n", 6) != 6) return 1;
  pthread_t thread;
  pthread_barrier_init(&both_have_one, NULL, 2);
  pthread_create(&thread, NULL, other, NULL);
  pthread_mutex_lock(&first);
  pthread_barrier_wait(&both_have_one);
  pthread_mutex_lock(&second);
  return 0;
}
