// SPDX-License-Identifier: Apache-2.0
// stdio on pipes: a child whose stdout is a pipe, before and after exec, fdopen on both ends.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void lines_of_child(const char* self, int with_exec) {
  int out[2], in[2];
  pipe(out);
  pipe(in);
  fflush(stdout);
  if (fork() == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(in[0], STDIN_FILENO);
    closefrom(3);
    if (with_exec) execl(self, self, "child", NULL);
    printf("without exec\n");
    fflush(stdout);
    char line[32];
    if (fgets(line, sizeof line, stdin) != NULL) printf("again %s", line);
    fflush(stdout);
    _exit(0);
  }
  close(out[1]);
  close(in[0]);
  FILE* from = fdopen(out[0], "r");
  FILE* to = fdopen(in[1], "w");
  char line[64];
  printf("parent read: %s", fgets(line, sizeof line, from));
  fprintf(to, "question %d\n", 42);
  fclose(to);
  while (fgets(line, sizeof line, from) != NULL) printf("parent read: %s", line);
  printf("fileno %d\n", fileno(from) == out[0]);
  fclose(from);
  int status = -1;
  wait(&status);
  printf("status %d\n", status);
}

// More than the pipe holds, written by printf.
static void long_output(const char* self) {
  FILE* from = popen("printf 'by the shell\\n'", "r");
  char line[128];
  printf("popen %s", fgets(line, sizeof line, from));
  printf("pclose %d\n", pclose(from));
  int out[2];
  pipe(out);
  fflush(stdout);
  if (fork() == 0) {
    dup2(out[1], STDOUT_FILENO);
    closefrom(3);
    execl(self, self, "long", NULL);
    _exit(9);
  }
  close(out[1]);
  size_t total = 0;
  for (ssize_t n; (n = read(out[0], line, sizeof line)) > 0;) total += (size_t)n;
  wait(NULL);
  printf("long %zu\n", total);
  close(out[0]);
}

static void print(int fd, const char* form, ...) {
  va_list list;
  va_start(list, form);
  printf("vdprintf %d\n", vdprintf(fd, form, list));
  va_end(list);
}

// libc formats and writes without calling a wrapped function.
static void to_descriptor(void) {
  int ends[2];
  char text[9000];
  pipe(ends);
  printf("dprintf %d\n", dprintf(ends[1], "%s %d\n", "answer", 42));
  print(ends[1], "%*d|", 7000, 7);
  close(ends[1]);
  size_t total = 0;
  for (ssize_t n; (n = read(ends[0], text + total, sizeof text - total)) > 0;) total += (size_t)n;
  printf("%zu bytes: %.9s .. %.2s\n", total, text, text + total - 2);
  printf("closed %d\n", dprintf(ends[1], "nobody"));
  close(ends[0]);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    printf("after exec\n");
    fflush(stdout);
    char line[32];
    if (fgets(line, sizeof line, stdin) != NULL) printf("again %s", line);
    return 0;
  }
  if (argc > 1) {
    for (int i = 0; i < 20000; ++i) printf("line %6d\n", i);
    return 0;
  }
  lines_of_child(argv[0], 1);
  lines_of_child(argv[0], 0);
  long_output(argv[0]);
  to_descriptor();
  printf("EXIT-SUCCESS\n");
  return 0;
}
