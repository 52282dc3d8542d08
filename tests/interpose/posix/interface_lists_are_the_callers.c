// SPDX-License-Identifier: Apache-2.0
// A caller's changes to its list of interfaces, and freeing it, affect no other caller.
#define _GNU_SOURCE
#include <ifaddrs.h>
#include <net/if.h>

#include "../small.h"

static int length(const struct ifaddrs* list) {
  int n = 0;
  for (; list != NULL; list = list->ifa_next) {
    CHECK(list->ifa_name != NULL && list->ifa_name[0] != '?' && list->ifa_name[0] != '\0');
    ++n;
  }
  return n;
}

int main(void) {
  struct ifaddrs *a, *b;
  CHECK_EQUAL(getifaddrs(&a), 0);
  CHECK_EQUAL(getifaddrs(&b), 0);
  CHECK(a != b);
  const int n = length(b);
  CHECK(n > 0 && length(a) == n);
  for (struct ifaddrs* i = a; i != NULL; i = i->ifa_next) i->ifa_name[0] = '?';
  CHECK_EQUAL(length(b), n);
  freeifaddrs(a);
  CHECK_EQUAL(length(b), n);
  freeifaddrs(b);
  struct if_nameindex *c = if_nameindex(), *d = if_nameindex();
  CHECK(c != NULL && d != NULL && c != d);
  c[0].if_index = 0;
  CHECK(d[0].if_index != 0);
  if_freenameindex(c);
  CHECK(if_nametoindex(d[0].if_name) == d[0].if_index);
  if_freenameindex(d);
  return succeed();
}
