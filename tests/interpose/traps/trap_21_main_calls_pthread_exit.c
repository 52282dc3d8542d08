// SPDX-License-Identifier: Apache-2.0
// main ends by pthread_exit: the process continues until its last thread ends, then its status is
// 0.
#include "../small.h"

static void* go_on(void* main_thread) {
  CHECK_EQUAL(pthread_join(*(pthread_t*)main_thread, NULL), 0);
  sleep_ms(5);
  succeed();
  return NULL;
}

int main(void) {
  static pthread_t self;
  self = pthread_self();
  CHECK_EQUAL(pthread_detach(start(go_on, &self)), 0);
  pthread_exit(NULL);
}
