// SPDX-License-Identifier: Apache-2.0
// says: limit: .*streams of popen
// Commands are opened until the limit; closing one makes room for another.
#include "../limit.h"

#define MOST 70

int main(void) {
  static FILE* streams[MOST];
  int made = 0, refusals = 0;
  while (made < MOST && refusals < 20) {
    streams[made] = popen("exit 5", "r");
    if (streams[made] != NULL) {
      ++made;
    } else {
      check_refusal(errno, EMFILE, EAGAIN, ENOMEM, 0);
      ++refusals;
    }
  }
  CHECK(made > 10);
  CHECK_EQUAL(pclose(streams[3]), 5 << 8);
  streams[3] = popen("exit 6", "r");
  CHECK(streams[3] != NULL);
  for (int i = 0; i < made; ++i) CHECK_EQUAL(pclose(streams[i]), i == 3 ? 6 << 8 : 5 << 8);
  return succeed();
}
