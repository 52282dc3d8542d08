// SPDX-License-Identifier: Apache-2.0
// GOAL    A copied tree, or a packed and unpacked one, equals the original in every attribute of
//         every file.
// METHOD  A tree with everything that a file can have; a description of each file, made with other
//         code.
// CHECKS  Equal descriptions; holes stay holes; equal trees make equal packs; damage is found.
// REPLAY  --rng-seed repeats the contents.
#include "checkpoint/pack.h"

#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;

namespace {

void compare_trees(const std::string& one, const std::string& other) {
  const auto a = snapshot(one), b = snapshot(other);
  CHECK(a.size() == b.size());
  for (const auto& [name, text] : a) {
    INFO(name);
    const auto at = b.find(name);
    REQUIRE(at != b.end());
    CHECK(at->second == text);
  }
}

}  // namespace

TEST_CASE("pack: a copied tree equals the original", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  make_hostile_tree(scratch.path() + "/upper", random);
  const auto copied = copy_tree(scratch.path() + "/upper", scratch.path() + "/copy");
  INFO(reason(copied));
  REQUIRE(copied.ok());
  compare_trees(scratch.path() + "/upper", scratch.path() + "/copy");
  CHECK(copy_tree(scratch.path() + "/upper", scratch.path() + "/copy").error().code ==
        Code::kExists);
}

TEST_CASE("pack: an unpacked tree equals the original", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  make_hostile_tree(scratch.path() + "/upper", random);
  fs::create_directory(scratch.path() + "/out");
  const std::string file = scratch.path() + "/upper.pack";
  const auto packed = pack(scratch.path() + "/upper", file, 1);
  INFO(reason(packed));
  REQUIRE(packed.ok());
  CHECK(packed.value().bytes == fs::file_size(file));
  Extractor out(scratch.path() + "/out");
  const auto unpacked = read_pack(file, packed.value(), out);
  INFO(reason(unpacked));
  REQUIRE(unpacked.ok());
  compare_trees(scratch.path() + "/upper", scratch.path() + "/out/upper");
  // A pack of the copy has the same bytes.
  fs::create_directory(scratch.path() + "/again");
  REQUIRE(pack(scratch.path() + "/out/upper", scratch.path() + "/again/upper.pack", 1).ok());
  CHECK(slurp(file) == slurp(scratch.path() + "/again/upper.pack"));
}

TEST_CASE("pack: the holes of a large segment cost nothing and stay holes") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  const std::string segment = scratch.path() + "/segment";
  make_sparse(segment, 400U << 20, 300, random);
  const std::string file = scratch.path() + "/segment.pack";
  const auto packed = pack(segment, file, 1);
  INFO(reason(packed));
  REQUIRE(packed.ok());
  CHECK(packed.value().unpacked < (300U * 3 * 4096) + 100'000);
  fs::create_directory(scratch.path() + "/out");
  Extractor out(scratch.path() + "/out");
  REQUIRE(read_pack(file, packed.value(), out).ok());
  CHECK(describe(segment) == describe(scratch.path() + "/out/segment"));
  REQUIRE(copy_tree(segment, scratch.path() + "/copy").ok());
  CHECK(describe(segment) == describe(scratch.path() + "/copy"));
}

TEST_CASE("a copy omits the given ranges, and nothing else") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  const std::string from = scratch.path() + "/from", to = scratch.path() + "/to";
  std::string whole = random_bytes(random, 5U << 20);
  spill(from, whole);
  constexpr std::size_t kHole = 7U << 19, kHoleSize = 1U << 20;
  const checkpoint::Descriptor fd(::open(from.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kHole, kHoleSize) == 0);
  whole.replace(kHole, kHoleSize, kHoleSize, '\0');
  const std::vector<checkpoint::FileRange> left_out = {{0, 100},
                                                       {4096, 8192},
                                                       {8192, 9000},
                                                       {1U << 20, 3U << 20},
                                                       {whole.size() - 1, whole.size() + 99}};
  REQUIRE(copy_tree(from, to, left_out).ok());
  for (const checkpoint::FileRange& out : left_out) {
    for (auto at = out.from; at < std::min<std::uint64_t>(out.to, whole.size()); ++at)
      whole[at] = 0;
  }
  CHECK((slurp(to) == whole));
  struct stat s {};
  REQUIRE(::stat(to.c_str(), &s) == 0);
  CHECK(s.st_blocks * 512 <= static_cast<std::int64_t>((2U << 20) + 4 * 4096));
}

TEST_CASE("pack: every flipped bit and every truncation is found") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  fs::create_directory(scratch.path() + "/part");
  spill(scratch.path() + "/part/a", "some text, some text, some text");
  spill(scratch.path() + "/part/b", random_bytes(random, 100));
  const std::string file = scratch.path() + "/part.pack";
  const auto packed = pack(scratch.path() + "/part", file, 1);
  REQUIRE(packed.ok());
  const std::string good = slurp(file);
  NullSink null_sink;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (random() % 8)));
    spill(file, bad);
    INFO("byte " << i);
    const auto read = read_pack(file, packed.value(), null_sink);
    REQUIRE(fails(read, Code::kDamaged, file));
    spill(file, good.substr(0, i));
    CHECK(!read_pack(file, packed.value(), null_sink).ok());
    // Also if the manifest describes the damaged file.
    PackedFile shorter = packed.value();
    shorter.bytes = i;
    shorter.crc = 0;
    CHECK(!read_pack(file, shorter, null_sink).ok());
  }
  spill(file, good + "more");
  PackedFile longer = packed.value();
  longer.bytes += 4;
  CHECK(!read_pack(file, longer, null_sink).ok());
  spill(file, good);
  CHECK(read_pack(file, packed.value(), null_sink).ok());
  PackedFile other = packed.value();
  other.name = "other.pack";
  CHECK(!read_pack(file, other, null_sink).ok());
  // Another valid pack of the same size.
  fs::create_directory(scratch.path() + "/other");
  spill(scratch.path() + "/part/b", random_bytes(random, 100));
  REQUIRE(pack(scratch.path() + "/part", scratch.path() + "/other/part.pack", 1).ok());
  PackedFile same_size = packed.value();
  const std::string twin = slurp(scratch.path() + "/other/part.pack");
  same_size.bytes = twin.size();
  spill(file, twin);
  CHECK(read_pack(file, same_size, null_sink).error().code == Code::kDamaged);
}

namespace {

// Hand-made records in the format of pack.h.
struct Bytes {
  std::string text = "CRNPACK1";
  template <typename Integer>
  Bytes& put(Integer v) {
    text.append(reinterpret_cast<const char*>(&v), sizeof v);
    return *this;
  }
  Bytes& name(const std::string& n) {
    put(static_cast<std::uint16_t>(n.size()));
    text += n;
    return *this;
  }
  Bytes& inode(const std::string& n, std::uint32_t mode, std::uint64_t size = 0) {
    put('i').name(n).put(mode).put(0U).put(0U).put(0U).put(std::int64_t{0}).put(std::uint64_t{0});
    return put(size).put(0U).name(S_ISLNK(mode) ? "target" : "").put(0U);
  }
  Bytes& data(std::uint64_t offset, const std::string& bytes) {
    put('d').put(offset).put(static_cast<std::uint32_t>(bytes.size()));
    text += bytes;
    return *this;
  }
  // Ends all open directories and files, then the pack.
  std::string end(int open, std::uint64_t records) {
    for (int i = 0; i < open; ++i) put('u');
    return put('z').put(records).text;
  }
};

bool accepts(const std::string& bytes) {
  std::size_t at = 0;
  const ByteSource source = [&](void* to, std::size_t size) -> Outcome {
    if (size > bytes.size() - at) return Error{Code::kDamaged, 0, "it ends"};
    if (size > 0) std::memcpy(to, bytes.data() + at, size);
    at += size;
    return Done{};
  };
  NullSink null_sink;
  return decode(source, "part", "by hand", null_sink).ok() && at == bytes.size();
}

}  // namespace

TEST_CASE("pack: no name leaves its directory, no data its file", "[IMAGE-2]") {
  const auto named = [](const std::string& name) {
    return Bytes{}.inode("part", S_IFDIR).inode(name, S_IFIFO).end(1, 3);
  };
  CHECK(accepts(named("name")));
  CHECK(accepts(named("...")));
  CHECK(accepts(named(std::string(255, 'n'))));
  for (const std::string& bad :
       {std::string(".."), std::string("."), std::string("../x"), std::string("/x"),
        std::string("x/y"), std::string(), std::string("x\0y", 3), std::string(256, 'n')}) {
    INFO(bad);
    CHECK(!accepts(named(bad)));
  }
  CHECK(!accepts(Bytes{}.inode("other", S_IFDIR).end(1, 2)));
  CHECK(!accepts(Bytes{}.inode("part", S_IFIFO).inode("part", S_IFIFO).end(0, 2)));
  CHECK(!accepts(Bytes{}.end(0, 0)));

  const auto file = [] { return Bytes{}.inode("part", S_IFREG, 10); };
  CHECK(accepts(file().data(0, "abc").data(3, "d").data(9, "e").end(1, 5)));
  CHECK(!accepts(file().data(3, "abc").data(2, "d").end(1, 4)));
  CHECK(!accepts(file().data(3, "abc").data(5, "d").end(1, 4)));
  CHECK(!accepts(file().data(8, "abc").end(1, 3)));
  CHECK(!accepts(file().data(11, "a").end(1, 3)));
  CHECK(!accepts(file().data(~std::uint64_t{0}, "a").end(1, 3)));
  CHECK(!accepts(file().data(0, "").end(1, 3)));
  CHECK(!accepts(file().data(0, "abc").end(1, 4)));
  CHECK(!accepts(file().data(0, "abc").end(2, 4)));
  CHECK(!accepts(file().data(0, "abc").end(0, 2)));
  CHECK(!accepts(file().inode("in a file", S_IFIFO).end(1, 3)));
  CHECK(!accepts(Bytes{}.inode("part", S_IFDIR).data(0, "a").end(1, 3)));
  CHECK(!accepts(Bytes{}.inode("part", S_IFREG, ~std::uint64_t{0}).end(1, 2)));
  CHECK(!accepts(Bytes{}.inode("part", 0xf000).end(0, 1)));
  CHECK(!accepts(Bytes{}.inode("part", S_IFDIR).put('l').name("x").put(1U).end(1, 3)));
  Bytes down;
  down.inode("part", S_IFDIR);
  for (int i = 0; i < 1000; ++i) down.inode("d", S_IFDIR);
  CHECK(!accepts(down.end(1001, 2002)));
}
