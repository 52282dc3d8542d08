// SPDX-License-Identifier: Apache-2.0
// nftw before and after the contents, fts by name, scandir with a filter, glob with its flags: all
// see the whole tree, each name once.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <sys/stat.h>

#include "../small.h"

static int files, directories, after, links, stop_at;

static int visit(const char* path, const struct stat* s, int type, struct FTW* w) {
  CHECK_EQUAL(path[0], '/');
  files += type == FTW_F && S_ISREG(s->st_mode);
  directories += type == FTW_D;
  after += type == FTW_DP;
  links += type == FTW_SL;
  if (type == FTW_F) CHECK_EQUAL(path[w->base], 'f');
  return stop_at != 0 && files == stop_at ? 77 : 0;
}

static int of_name(const FTSENT** a, const FTSENT** b) {
  return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int starts_f(const struct dirent* e) { return e->d_name[0] == 'f'; }

int main(void) {
  char dir[] = "/tmp/walkXXXXXX", pattern[64], order[64] = "";
  CHECK(mkdtemp(dir) != NULL);
  const int d = open(dir, O_RDONLY);
  CHECK_EQUAL(mkdirat(d, "a", 0700), 0);
  CHECK_EQUAL(mkdirat(d, "a/b", 0700), 0);
  const char* const names[] = {"f2", "f1", "a/f3", "a/b/f4"};
  for (int i = 0; i < 4; ++i) CHECK_EQUAL(close(openat(d, names[i], O_CREAT | O_RDWR, 0600)), 0);
  CHECK_EQUAL(symlinkat("a", d, "s"), 0);
  CHECK_EQUAL(nftw(dir, visit, 8, FTW_PHYS), 0);
  CHECK(files == 4 && directories == 3 && after == 0 && links == 1);
  CHECK_EQUAL(nftw(dir, visit, 8, FTW_PHYS | FTW_DEPTH), 0);
  CHECK(files == 8 && directories == 3 && after == 3 && links == 2);
  files = 0;
  stop_at = 2;
  CHECK_EQUAL(nftw(dir, visit, 8, FTW_PHYS), 77);
  char* const roots[] = {dir, NULL};
  FTS* const fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, of_name);
  for (FTSENT* e; (e = fts_read(fts)) != NULL;) {
    if (e->fts_level > 0 && e->fts_info != FTS_DP) strcat(strcat(order, e->fts_name), " ");
  }
  CHECK_EQUAL(fts_close(fts), 0);
  CHECK_EQUAL(strcmp(order, "a b f4 f3 f1 f2 s "), 0);
  struct dirent** list;
  CHECK_EQUAL(scandir(dir, &list, starts_f, alphasort), 2);
  CHECK_EQUAL(strcmp(list[0]->d_name, "f1"), 0);
  CHECK_EQUAL(strcmp(list[1]->d_name, "f2"), 0);
  glob_t g;
  snprintf(pattern, sizeof pattern, "%s/*", dir);
  CHECK_EQUAL(glob(pattern, GLOB_MARK, NULL, &g), 0);
  CHECK_EQUAL(g.gl_pathc, 4);
  CHECK_EQUAL(strcmp(g.gl_pathv[0] + strlen(dir), "/a/"), 0);
  globfree(&g);
  snprintf(pattern, sizeof pattern, "%s/x*", dir);
  CHECK_EQUAL(glob(pattern, 0, NULL, &g), GLOB_NOMATCH);
  CHECK_EQUAL(unlinkat(d, "s", 0), 0);
  for (int i = 0; i < 4; ++i) CHECK_EQUAL(unlinkat(d, names[i], 0), 0);
  CHECK_EQUAL(unlinkat(d, "a/b", AT_REMOVEDIR), 0);
  CHECK_EQUAL(unlinkat(d, "a", AT_REMOVEDIR), 0);
  CHECK_EQUAL(rmdir(dir), 0);
  return succeed();
}
