// SPDX-License-Identifier: Apache-2.0
// A server with one data race, which helgrind must find in a replay. Its other data is ordered
// without a mutex: by a semaphore, a condition, a barrier, a join.
//
//   planted_race PORT
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static long by_condition, by_semaphore, by_barrier[2], planted;
static int ready;

static void* work(void* x) {
  const long me = (long)x;
  ++planted;
  if (me == 0) {
    by_semaphore = 7;
    sem_post(&semaphore);
    by_condition = 5;
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&condition);
  } else {
    sem_wait(&semaphore);
    ++by_semaphore;
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    ++by_condition;
  }
  by_barrier[me] = me + 1;
  pthread_barrier_wait(&barrier);
  return (void*)by_barrier[1 - me];
}

static void serve(int client) {
  char text[128];
  pthread_t threads[2];
  while (read(client, text, sizeof text) > 0) {
  }
  ready = 0;
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  const int size =
      snprintf(text, sizeof text, "%ld %ld %ld\n", by_condition, by_semaphore, planted);
  if (write(client, text, (size_t)size) != size) perror("write");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  sem_init(&semaphore, 0, 0);
  pthread_barrier_init(&barrier, NULL, 2);
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(argv[1]));
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) return 3;
  listen(listener, 16);
  for (;;) {
    const int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    serve(client);
    close(client);
  }
}
