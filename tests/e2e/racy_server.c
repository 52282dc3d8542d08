// SPDX-License-Identifier: Apache-2.0
// A server whose replicas may differ, for the live check to find.
//
//   racy_server PORT DIR
//
// A request is a line on a new connection. For the name of a program in DIR the answer is the
// program's output and status. `dice` reads the processor's random numbers, which differ between
// replicas, and calls one of two functions depending on them; the answer does not reveal which.
// `number` answers with the number read; `bytes` with 4,096 equal bytes.
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void send_text(int fd, const char* text, size_t size) {
  while (size > 0) {
    const ssize_t wrote = write(fd, text, size);
    if (wrote <= 0) return;
    text += wrote;
    size -= (size_t)wrote;
  }
}

static unsigned long draw(void) {
#ifdef __x86_64__
  unsigned long drawn = 0;
  unsigned char good = 0;
  while (!good) __asm__ volatile("rdrand %0; setc %1" : "=r"(drawn), "=qm"(good) : : "cc");
  return drawn;
#else
  return 0;
#endif
}

static int dice(void) { return (int)(draw() & 1); }

// Exported, so that the caller of a turn can be found by name.
__attribute__((noinline, visibility("default"))) void throw_dice(void) {
  if (dice()) {
    sched_yield();
  } else {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
  sched_yield();
}

static void run(int client, const char* dir, const char* name) {
  char path[512], text[4096];
  int out[2], status = 0;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  if (pipe(out) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    close(client);
    execl(path, name, (char*)NULL);
    _exit(127);
  }
  close(out[1]);
  for (ssize_t n; (n = read(out[0], text, sizeof text)) > 0;) send_text(client, text, (size_t)n);
  close(out[0]);
  if (child < 0 || waitpid(child, &status, 0) != child) status = -1;
  const int n = snprintf(text, sizeof text, "%s: status %d\n", name, status);
  send_text(client, text, (size_t)n);
}

static void serve(int client, const char* dir) {
  char line[128];
  size_t have = 0;
  while (have < sizeof line - 1 && memchr(line, '\n', have) == NULL) {
    const ssize_t got = read(client, line + have, sizeof line - 1 - have);
    if (got <= 0) return;
    have += (size_t)got;
  }
  line[have] = '\0';
  line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, "dice") == 0) {
    throw_dice();
    send_text(client, "thrown\n", 7);
  } else if (strcmp(line, "number") == 0) {
    char text[32];
    const int n = snprintf(text, sizeof text, "%016lx\n", draw());
    send_text(client, text, (size_t)n);
  } else if (strcmp(line, "bytes") == 0) {
    char text[4096];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    send_text(client, text, sizeof text);
  } else if (strchr(line, '/') == NULL) {
    run(client, dir, line);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  struct sockaddr_in at = {.sin_family = AF_INET};
  at.sin_port = htons((unsigned short)atoi(argv[1]));
  const int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (const struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
    perror("racy_server");
    return 1;
  }
  for (;;) {
    const int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    serve(client, argv[2]);
    close(client);
  }
}
