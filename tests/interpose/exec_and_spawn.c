// SPDX-License-Identifier: Apache-2.0
// Programs that replace programs: the exec family, environments without our variables, scripts,
// posix_spawn with file actions, system, popen (traps 29, 42; rule 15).
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

extern char** environ;
static const char* self;

static void* sleep_long(void* x) {
  sleep(100000);
  return x;
}

static int finish(pid_t pid) {
  int status;
  CHECK_EQUAL(waitpid(pid, &status, 0), pid);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

// The program's part when it executes itself.
static int as_child(int argc, char** argv) {
  CHECK_EQUAL(argc, 3);
  sigset_t mask;
  sigprocmask(SIG_SETMASK, NULL, &mask);
  struct sigaction a;
  sigaction(SIGUSR1, NULL, &a);
  CHECK(a.sa_handler == SIG_DFL);
  sigaction(SIGUSR2, NULL, &a);
  CHECK(a.sa_handler == SIG_IGN);
  pthread_t t;
  CHECK_EQUAL(pthread_create(&t, NULL, sleep_long, NULL), 0);
  CHECK_EQUAL(pthread_cancel(t), 0);
  CHECK_EQUAL(pthread_join(t, NULL), 0);
  printf("child %s %s\n", argv[2], getenv("WORD") ? getenv("WORD") : "-");
  fflush(stdout);
  return atoi(argv[2]);
}

static void handle(int s) { (void)s; }

static void test_exec(void) {
  char* const words[] = {(char*)self, "child", "5", NULL};
  char* const variables[] = {"WORD=w", NULL};
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t t;
    pthread_create(&t, NULL, sleep_long, NULL);
    execve(self, words, variables);
    _exit(99);
  }
  CHECK_EQUAL(finish(pid), 5);
  pid = fork();
  if (pid == 0) {
    execl(self, self, "child", "6", (char*)NULL);
    _exit(99);
  }
  CHECK_EQUAL(finish(pid), 6);
  pid = fork();
  if (pid == 0) {
    execle(self, self, "child", "7", (char*)NULL, variables);
    _exit(99);
  }
  CHECK_EQUAL(finish(pid), 7);
  pid = fork();
  if (pid == 0) {
    execlp("sh", "sh", "-c", "exit 8", (char*)NULL);
    _exit(99);
  }
  CHECK_EQUAL(finish(pid), 8);
  CHECK(execv("/nonexistent", words) == -1 && errno == ENOENT);
  CHECK(execv("/etc/passwd", words) == -1 && errno == EACCES);
  CHECK(execvp("crane-test-no-such-program", words) == -1 && errno == ENOENT);
  printf("exec\n");
}

static void test_script(void) {
  char path[] = "/tmp/crane-test-XXXXXX";
  const int fd = mkstemp(path);
  CHECK(fd >= 0);
  const char text[] = "#!/bin/sh\nexit $1\n";
  CHECK_EQUAL(write(fd, text, sizeof text - 1), sizeof text - 1);
  fchmod(fd, 0700);
  close(fd);
  const pid_t pid = fork();
  if (pid == 0) {
    execl(path, path, "9", (char*)NULL);
    _exit(99);
  }
  CHECK_EQUAL(finish(pid), 9);
  unlink(path);
  printf("script\n");
}

static void test_spawn(void) {
  char path[] = "/tmp/crane-test-XXXXXX";
  const int fd = mkstemp(path);
  char* const words[] = {(char*)self, "child", "10", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addclose(&actions, fd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t set;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid;
  CHECK_EQUAL(posix_spawn(&pid, self, &actions, &attributes, words, environ), 0);
  CHECK_EQUAL(finish(pid), 10);
  char text[64] = "";
  CHECK(pread(fd, text, sizeof text - 1, 0) > 0);
  CHECK_EQUAL(strcmp(text, "child 10 -\n"), 0);
  close(fd);
  unlink(path);
  char* const nothing[] = {"x", NULL};
  CHECK_EQUAL(posix_spawn(&pid, "/nonexistent", NULL, NULL, nothing, environ), ENOENT);
  char* const shell[] = {"sh", "-c", "exit 11", NULL};
  CHECK_EQUAL(posix_spawnp(&pid, "sh", NULL, NULL, shell, environ), 0);
  CHECK_EQUAL(finish(pid), 11);
  printf("spawn\n");
}

static void test_shell(void) {
  CHECK_EQUAL(WEXITSTATUS(system("exit 12")), 12);
  CHECK(system(NULL) != 0);
  FILE* f = popen("echo one; echo two", "r");
  CHECK(f != NULL);
  char line[32];
  CHECK(fgets(line, sizeof line, f) != NULL);
  CHECK_EQUAL(strcmp(line, "one\n"), 0);
  CHECK(fgets(line, sizeof line, f) != NULL);
  CHECK(fgets(line, sizeof line, f) == NULL);
  CHECK_EQUAL(pclose(f), 0);
  fflush(stdout);
  f = popen("cat; exit 13", "w");
  CHECK(f != NULL);
  fprintf(f, "through a pipe\n");
  CHECK_EQUAL(WEXITSTATUS(pclose(f)), 13);
  printf("shell\n");
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  self = argv[0];
  if (argc > 1) return as_child(argc, argv);
  signal(SIGUSR1, handle);
  signal(SIGUSR2, SIG_IGN);
  test_exec();
  test_script();
  test_spawn();
  test_shell();
  return succeed();
}
