// SPDX-License-Identifier: Apache-2.0
// A server whose processes find each other by name: through a FIFO, a named semaphore, and a
// condition variable in a mapped file.
//
//   meeting_server PORT DIRECTORY
//   meeting_server partner DIRECTORY
//
// It opens and maps all three when it starts. For each line from a client it starts a partner,
// which opens and maps them again, signals the condition, posts the semaphore, and writes its pid
// into the FIFO. The answer is "met PID".
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char fifo[512], file[512];
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  int came;
} * meeting;
static sem_t* posted;

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int send_line(int fd, const char* form, int pid) {
  char text[64];
  const int n = snprintf(text, sizeof text, form, pid);
  return write(fd, text, (size_t)n) == n;
}

static void meet_at(const char* directory) {
  snprintf(fifo, sizeof fifo, "%s/fifo", directory);
  snprintf(file, sizeof file, "%s/shared", directory);
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) fail(file);
  meeting = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (meeting == MAP_FAILED) fail("mmap");
  close(fd);
  posted = sem_open("/crane-meeting", O_CREAT, 0600, 0);
  if (posted == SEM_FAILED) fail("sem_open");
}

static int partner(void) {
  // The server holds the mutex until it waits for the condition.
  if (pthread_mutex_lock(&meeting->mutex) != 0) return 1;
  meeting->came = 1;
  pthread_cond_signal(&meeting->condition);
  pthread_mutex_unlock(&meeting->mutex);
  if (sem_post(posted) != 0) return 1;
  const int fd = open(fifo, O_WRONLY);
  return fd >= 0 && send_line(fd, "%d\n", (int)getpid()) ? 0 : 1;
}

static int meet(const char* self, const char* directory, int from) {
  pthread_mutex_lock(&meeting->mutex);
  meeting->came = 0;
  const pid_t child = fork();
  if (child == 0) {
    execl(self, self, "partner", directory, (char*)NULL);
    _exit(127);
  }
  while (!meeting->came) pthread_cond_wait(&meeting->condition, &meeting->mutex);
  pthread_mutex_unlock(&meeting->mutex);
  while (sem_wait(posted) != 0) {
  }
  char text[32] = "";
  size_t n = 0;
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return -1;
  while (n + 1 < sizeof text && read(from, text + n, 1) == 1 && text[n] != '\n') ++n;
  return atoi(text);
}

static void serve(int fd, const char* self, const char* directory, int from) {
  char text[128];
  FILE* in = fdopen(dup(fd), "r");
  while (fgets(text, sizeof text, in) != NULL) {
    if (!send_line(fd, "met %d\n", meet(self, directory, from))) break;
  }
  fclose(in);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  meet_at(argv[2]);
  if (strcmp(argv[1], "partner") == 0) return partner();
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&meeting->mutex, &shared);
  pthread_condattr_t condition_shared;
  pthread_condattr_init(&condition_shared);
  pthread_condattr_setpshared(&condition_shared, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&meeting->condition, &condition_shared);
  if (mkfifo(fifo, 0600) != 0) fail(fifo);
  const int from = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  // A writer that stays open, so that the FIFO does not end when a partner exits.
  const int held = open(fifo, O_WRONLY | O_CLOEXEC);
  if (from < 0 || held < 0) fail(fifo);
  fcntl(from, F_SETFL, 0);
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_port = htons((unsigned short)atoi(argv[1]));
  const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (const struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
    fail("listen");
  }
  for (;;) {
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) continue;
    serve(fd, argv[0], argv[2], from);
    close(fd);
  }
}
