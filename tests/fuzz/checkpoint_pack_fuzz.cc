// SPDX-License-Identifier: Apache-2.0
// Packs of a checkpoint, before compression: for any bytes the reader reports only valid trees,
// with names that stay in their directory.

#include <sys/stat.h>

#include "checkpoint/pack.h"
#include "dmt/base/assert.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/strict_tree.h"

namespace {

using namespace crane;
using namespace crane::checkpoint;

class Strict final : public fuzz::StrictTree {
 public:
  bool is_whole() const { return is_closed() && seen_; }

 private:
  void check(const std::string& name) override {
    CRANE_ASSERT(!name.empty() && name.find('/') == std::string::npos && name != "." &&
                 name != ".." && name.size() <= 255);
    CRANE_ASSERT(is_closed() ? !seen_ && name == "part" : in_directory());
    seen_ = true;
  }
  bool seen_ = false;
};

void put_text(std::string& out, const std::string& text) {
  fuzz::put(out, static_cast<std::uint16_t>(text.size()));
  out += text;
}

void put_inode(std::string& out, const std::string& name, std::uint32_t mode, std::uint64_t size,
               std::uint32_t link, const std::string& target, const std::string& attribute) {
  out += 'i';
  put_text(out, name);
  for (const std::uint32_t v : {mode, 1U, 2U, 3U}) fuzz::put(out, v);
  fuzz::put(out, std::int64_t{1'700'000'000});
  fuzz::put(out, std::uint64_t{0});
  fuzz::put(out, size);
  fuzz::put(out, link);
  put_text(out, target);
  fuzz::put(out, static_cast<std::uint32_t>(attribute.empty() ? 0 : 1));
  if (attribute.empty()) return;
  put_text(out, attribute);
  fuzz::put(out, std::uint32_t{1});
  out += 'y';
}

std::string tree() {
  std::string out = kPackMagic;
  put_inode(out, "part", S_IFDIR | 0755, 0, 0, "", "trusted.overlay.opaque");
  put_inode(out, "file", S_IFREG | 0644, 10, 1, "", "");
  out += 'd';
  fuzz::put(out, std::uint64_t{4});
  fuzz::put(out, std::uint32_t{6});
  out += "abcdefu";
  put_inode(out, "link", S_IFLNK | 0777, 0, 0, "../x", "");
  put_inode(out, "whiteout", S_IFCHR, 0, 2, "", "");
  out += 'l';
  put_text(out, "again");
  fuzz::put(out, std::uint32_t{1});
  out += "uz";
  fuzz::put(out, std::uint64_t{8});
  return out;
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  std::string one = kPackMagic;
  put_inode(one, "part", S_IFREG | 0600, 1 << 20, 0, "", "");
  one += "uz";
  put(one, std::uint64_t{2});
  return {tree(), one};
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  crane::fuzz::Input input(data, size);
  Strict sink;
  const bool accepted = decode(crane::fuzz::source_of(input), "part", "fuzzed", sink).ok();
  CRANE_ASSERT(!accepted || sink.is_whole());
  crane::fuzz::check_seed(data, size, accepted);
  return 0;
}
