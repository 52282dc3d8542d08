// SPDX-License-Identifier: Apache-2.0
// Archives of `crane-ctl data` and `backup`, before compression: for any bytes the reader reports
// only valid trees, with names that stay in their tree.

#include <sys/stat.h>

#include <algorithm>

#include "checkpoint/archive.h"
#include "checkpoint/tar_format.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/strict_tree.h"

namespace {

using namespace crane;
using namespace crane::checkpoint;

constexpr char kHead[] = "about.json";

class Strict final : public fuzz::StrictTree {
 public:
  bool is_whole() const { return is_closed(); }

 private:
  void check(const std::string& name) override {
    CRANE_ASSERT(!name.empty() && name.front() != '/' && name.back() != '/');
    CRANE_ASSERT(("/" + name + "/").find("/../") == std::string::npos);
    CRANE_ASSERT(name.find('\0') == std::string::npos);
    if (is_closed()) return;
    CRANE_ASSERT(name.find('/') == std::string::npos && in_directory());
  }
};

std::string member(const std::string& path, std::uint32_t mode, std::uint64_t size = 0,
                   std::uint32_t link = 0) {
  tar::Member m;
  m.path = path;
  m.inode.mode = mode;
  m.inode.size = size;
  m.inode.link = link;
  if (S_ISLNK(mode)) m.inode.target = "../x";
  m.inode.attributes = {{"user.a=b", "y"}};
  std::string bytes = tar::encode(m);
  bytes.append((size + tar::kBlock - 1) / tar::kBlock * tar::kBlock, 'x');
  return bytes;
}

std::string second_name(const std::string& path, const std::string& first) {
  tar::Member m;
  m.path = path;
  m.is_link = true;
  m.first = first;
  m.inode.mode = S_IFREG;
  return tar::encode(m);
}

std::string ended(std::string bytes) {
  bytes.append(2 * tar::kBlock, '\0');
  return bytes;
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  const std::string head = member(kHead, S_IFREG | 0600, 2);
  return {ended(head),
          ended(head + member("var/db", S_IFDIR | 0700) + member("var/db/f", S_IFREG, 5000, 1) +
                second_name("var/db/g", "var/db/f") + member("var/db/l", S_IFLNK | 0777) +
                member("var/db/d", S_IFDIR | 0755) + member("var/db/d/fifo", S_IFIFO | 0600)),
          ended(head + member(std::string(150, 'n'), S_IFREG | 0600, 1))};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  Strict sink;
  ArchiveReader reader(crane::fuzz::source_of(input), "fuzzed");
  const bool accepted = reader.head(kHead).ok() && reader.read(sink).ok();
  CRANE_ASSERT(!accepted || sink.is_whole());
  crane::fuzz::check_seed(data, size, accepted);
  return 0;
}
