// SPDX-License-Identifier: Apache-2.0
// lio_listio without waiting notifies once, by its own signal, when all requests have ended, in
// addition to each request's notification; with waiting, a failed request is EIO.
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>

#include "../small.h"

int main(void) {
  char path[] = "/tmp/aio-list-XXXXXX", first[] = "abcd", second[] = "efgh", got[9] = {0};
  const int fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK_EQUAL(unlink(path), 0);
  sigset_t set = set_of_signal(SIGRTMIN);
  sigaddset(&set, SIGRTMIN + 1);
  CHECK_EQUAL(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
  struct aiocb a = {.aio_fildes = fd, .aio_buf = first, .aio_nbytes = 4}, b = a, c = a;
  a.aio_lio_opcode = b.aio_lio_opcode = LIO_WRITE;
  a.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  a.aio_sigevent.sigev_signo = SIGRTMIN;
  a.aio_sigevent.sigev_value.sival_int = 11;
  b.aio_sigevent.sigev_notify = c.aio_sigevent.sigev_notify = SIGEV_NONE;
  b.aio_buf = second;
  b.aio_offset = 4;
  c.aio_lio_opcode = LIO_NOP;
  struct sigevent all;
  memset(&all, 0, sizeof all);
  all.sigev_notify = SIGEV_SIGNAL;
  all.sigev_signo = SIGRTMIN + 1;
  all.sigev_value.sival_int = 22;
  struct aiocb* list[] = {&a, NULL, &c, &b};
  CHECK_EQUAL(lio_listio(LIO_NOWAIT, list, 4, &all), 0);
  siginfo_t info;
  const sigset_t one = set_of_signal(SIGRTMIN), two = set_of_signal(SIGRTMIN + 1);
  CHECK_EQUAL(sigwaitinfo(&one, &info), SIGRTMIN);
  CHECK_EQUAL(info.si_code, SI_ASYNCIO);
  CHECK_EQUAL(info.si_value.sival_int, 11);
  CHECK_EQUAL(sigwaitinfo(&two, &info), SIGRTMIN + 1);
  CHECK_EQUAL(info.si_code, SI_ASYNCIO);
  CHECK_EQUAL(info.si_value.sival_int, 22);
  CHECK_EQUAL(aio_error(&a), 0);
  CHECK_EQUAL(aio_return(&b), 4);
  CHECK_EQUAL(pread(fd, got, 8, 0), 8);
  CHECK_EQUAL(strcmp(got, "abcdefgh"), 0);
  a.aio_sigevent.sigev_notify = SIGEV_NONE;
  a.aio_lio_opcode = LIO_READ;
  b.aio_fildes = 1000;
  CHECK_EQUAL(lio_listio(LIO_WAIT, list, 4, NULL), -1);
  CHECK_EQUAL(errno, EIO);
  CHECK_EQUAL(aio_error(&a), 0);
  CHECK_EQUAL(aio_return(&a), 4);
  CHECK_EQUAL(aio_error(&b), EBADF);
  CHECK_EQUAL(lio_listio(LIO_WAIT, list, 0, NULL), 0);
  return succeed();
}
