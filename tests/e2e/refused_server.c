// SPDX-License-Identifier: Apache-2.0
// A server that creates a thread or a process for each line, and answers with the outcome.
//
//   refused_server PORT
//
// Lines: "thread", "process". Answers: the same word, or "refused: ERRNO".
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void* nothing(void* x) { return x; }

static int make_thread(void) {
  pthread_t thread;
  const int error = pthread_create(&thread, NULL, nothing, NULL);
  if (error == 0) pthread_join(thread, NULL);
  return error;
}

static int make_process(void) {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  return 0;
}

static void serve(int fd) {
  char line[100];
  FILE* in = fdopen(dup(fd), "r");
  while (fgets(line, sizeof line, in) != NULL) {
    const int error = line[0] == 't' ? make_thread() : make_process();
    if (error != 0) snprintf(line, sizeof line, "refused: %d\n", error);
    if (write(fd, line, strlen(line)) < 0) break;
  }
  fclose(in);
  close(fd);
}

int main(int count, char** words) {
  if (count != 2) return 2;
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 8) != 0) return 1;
  for (;;) {
    const int fd = accept(listener, NULL, NULL);
    if (fd >= 0) serve(fd);
  }
}
