// SPDX-License-Identifier: Apache-2.0
// getrandom returns the requested number of bytes and refuses unknown flags; getentropy returns up
// to 256; arc4random and the devices return bytes as well, different each time.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/random.h>

#include "../small.h"

int main(void) {
  static unsigned char a[100000], b[sizeof a];
  CHECK_EQUAL(getrandom(a, 16, 0), 16);
  CHECK_EQUAL(getrandom(b, 16, GRND_NONBLOCK), 16);
  CHECK(memcmp(a, b, 16) != 0);
  CHECK_EQUAL(getrandom(a, 256, GRND_RANDOM | GRND_NONBLOCK), 256);
  CHECK_EQUAL(getrandom(a, sizeof a, 0), sizeof a);
  CHECK_EQUAL(getrandom(a, 0, 0), 0);
  CHECK(getrandom(a, 16, 0x1000) == -1 && errno == EINVAL);
  CHECK_EQUAL(getentropy(a, 256), 0);
  CHECK(getentropy(a, 257) == -1 && errno == EIO);
  CHECK_EQUAL(getentropy(b, 256), 0);
  CHECK(memcmp(a, b, 256) != 0);
  arc4random_buf(a, 64);
  arc4random_buf(b, 64);
  CHECK(memcmp(a, b, 64) != 0);
  for (int i = 0; i < 1000; ++i) CHECK(arc4random_uniform(10) < 10);
  const char* const devices[] = {"/dev/urandom", "/dev/random"};
  for (int i = 0; i < 2; ++i) {
    const int f = open(devices[i], O_RDONLY);
    CHECK(f >= 0);
    CHECK_EQUAL(read(f, a, 500), 500);
    CHECK_EQUAL(read(f, b, 500), 500);
    CHECK(memcmp(a, b, 500) != 0);
    CHECK_EQUAL(pread(f, a, 10, 1000), 10);
    CHECK_EQUAL(close(f), 0);
  }
  return succeed();
}
