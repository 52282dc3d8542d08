// SPDX-License-Identifier: Apache-2.0
// native: no
// A program that seeds libcrypto's generator with bytes that differ from run to run (mod_ssl passes
// uninitialised stack) still gets the same random bytes in every run. Without libcrypto there is
// nothing to test.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

static void feed(void) {
  int ends[2];
  char name[64], text[64] = "";
  CHECK_EQUAL(pipe(ends), 0);
  snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
  CHECK(readlink(name, text, sizeof text - 1) > 0);  // "pipe:[the kernel's number]"
  void (*seed)(const void*, int) = (void (*)(const void*, int))dlsym(RTLD_DEFAULT, "RAND_seed");
  void (*add)(const void*, int, double) =
      (void (*)(const void*, int, double))dlsym(RTLD_DEFAULT, "RAND_add");
  CHECK(seed != NULL && add != NULL);
  seed(text, sizeof text);
  add(text, sizeof text, 8.0);
}

int main(void) {
  void* crypto = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_GLOBAL);
  if (crypto == NULL) return succeed();
  int (*bytes)(unsigned char*, int) = (int (*)(unsigned char*, int))dlsym(crypto, "RAND_bytes");
  CHECK(bytes != NULL);
  for (int i = 0; i < 4; ++i) {
    unsigned char b[16];
    feed();
    CHECK_EQUAL(bytes(b, sizeof b), 1);
    for (int j = 0; j < 16; ++j) printf("%02x", b[j]);
    printf("\n");
  }
  return succeed();
}
