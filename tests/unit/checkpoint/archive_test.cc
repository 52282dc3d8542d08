// SPDX-License-Identifier: Apache-2.0
// GOAL    An extracted archive gives the archived tree; tar reads the archive; damage, and names
//         that leave their tree, are refused.
// METHOD  A tree with everything that a file can have; archives with every byte flipped and of
//         every length; hand-made tar archives with invalid names.
// CHECKS  Equal descriptions and digests; the code and the sentence of each refusal.
// REPLAY  --rng-seed repeats the contents.
#include "checkpoint/archive.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "checkpoint/content.h"
#include "checkpoint/tar_format.h"
#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;
using checkpoint::ArchiveReader;
using checkpoint::ArchiveWriter;
using checkpoint::CompressedFile;
using checkpoint::ContentDigest;
using checkpoint::Inode;
using checkpoint::NumberedTrees;
using checkpoint::SelectedDirectories;
using checkpoint::TeeSink;
using checkpoint::TreeSink;
using checkpoint::walk;
namespace tar = checkpoint::tar;

namespace {

Descriptor fresh(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}
Descriptor opened(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Passes a tree without its sockets, like a server's files.
Outcome tell(const std::string& tree, const std::string& name, TreeSink& sink) {
  SelectedDirectories selected({"/" + name}, sink);
  Inode top;
  top.mode = S_IFDIR | 0700;
  if (auto outcome = selected.inode("upper", top); !outcome) return outcome;
  if (auto outcome = walk(tree, name, selected); !outcome) return outcome;
  return selected.leave();
}

std::string digest_of(const std::string& tree, const std::string& name) {
  ContentDigest digest;
  const auto outcome = tell(tree, name, digest);
  INFO(reason(outcome));
  REQUIRE(outcome.ok());
  return digest.finish();
}

void write_archive(const std::string& tree, const std::string& name, const std::string& path) {
  ArchiveWriter writer(fresh(path), path);
  REQUIRE(writer.head("about.json", "{}").ok());
  const auto outcome = tell(tree, name, writer);
  INFO(reason(outcome));
  REQUIRE(outcome.ok());
  REQUIRE(writer.finish(true).ok());
}

Outcome read_archive(const std::string& path, TreeSink& sink, std::string* about = nullptr) {
  ArchiveReader reader(opened(path), path);
  auto head = reader.head("about.json");
  if (!head) return head.error();
  if (about != nullptr) *about = head.value();
  return reader.read(sink);
}

// A tar archive of these members, with zeros as their bytes.
void write_members(const std::string& path, const std::vector<tar::Member>& members) {
  CompressedFile file(fresh(path), path, 1);
  tar::Member head;
  head.path = "about.json";
  head.inode.mode = S_IFREG | 0600;
  std::string bytes = tar::encode(head);
  for (const auto& member : members) bytes += tar::encode(member);
  bytes.append(2 * tar::kBlock, '\0');
  REQUIRE(file.put(bytes.data(), bytes.size()).ok());
  REQUIRE(file.end().ok());
}

tar::Member member(const std::string& path, std::uint32_t mode) {
  tar::Member m;
  m.path = path;
  m.inode.mode = mode;
  if (S_ISLNK(mode)) m.inode.target = "/etc/passwd";
  return m;
}

void make_socket(const std::string& path) {
  const Descriptor fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
}

}  // namespace

TEST_CASE("archive: an extracted tree equals the archived one", "[root]") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  const std::string tree = scratch.path() + "/tree", file = scratch.path() + "/a.tar.zst";
  make_hostile_tree(tree, random);
  make_sparse(tree + "/sparse", 64U << 20, 20, random);
  const std::string digest = digest_of(tree, "data");
  write_archive(tree, "data", file);

  fs::create_directory(scratch.path() + "/out");
  Extractor out(scratch.path() + "/out");
  ContentDigest passed;
  TeeSink tee(passed, out);
  std::string about;
  const auto read = read_archive(file, tee, &about);
  INFO(reason(read));
  REQUIRE(read.ok());
  CHECK(about == "{}");
  CHECK(passed.finish() == digest);
  CHECK(digest_of(scratch.path() + "/out/data", "data") == digest);
  struct stat s {};
  REQUIRE(::stat((scratch.path() + "/out/data/sparse").c_str(), &s) == 0);
  CHECK(s.st_size == 64 << 20);
  CHECK(s.st_blocks * 512 < 2 << 20);
}

TEST_CASE("archive: tar reads it") {
  if (std::system("tar --zstd --version >/dev/null 2>&1 && command -v zstd >/dev/null") != 0)
    return;
  std::mt19937_64 random(Catch::rngSeed());
  Scratch scratch;
  const std::string tree = scratch.path() + "/tree", file = scratch.path() + "/a.tar.zst";
  const std::string name(120, 'n');
  fs::create_directories(tree + "/" + name);
  spill(tree + "/" + name + "/one", random_bytes(random, 300'000));
  fs::create_hard_link(tree + "/" + name + "/one", tree + "/two");
  fs::create_symlink(std::string(130, 't'), tree + "/sym");
  ArchiveWriter writer(fresh(file), file);
  REQUIRE(writer.head("about.json", "{}").ok());
  REQUIRE(walk(tree, "srv/data", writer).ok());
  REQUIRE(writer.finish(true).ok());
  const std::string out = scratch.path() + "/out";
  fs::create_directory(out);
  REQUIRE(std::system(("tar --zstd -C " + out + " -xpf " + file).c_str()) == 0);
  const auto digest = [](const std::string& path) {
    ContentDigest one;
    REQUIRE(walk(path, "srv", one).ok());
    return one.finish();
  };
  CHECK(digest(tree) == digest(out + "/srv/data"));
}

TEST_CASE("archive: every truncation and every flipped bit is found") {
  std::mt19937_64 random(Catch::rngSeed());
  INFO("seed " << Catch::rngSeed());
  Scratch scratch;
  const std::string tree = scratch.path() + "/tree", file = scratch.path() + "/a.tar.zst";
  fs::create_directory(tree);
  spill(tree + "/a", "some text");
  spill(tree + "/b", random_bytes(random, 100));
  write_archive(tree, "data", file);
  const std::string good = slurp(file), digest = digest_of(tree, "data");
  const auto check = [&](const std::string& bytes, std::size_t at) {
    spill(file, bytes);
    ContentDigest passed;
    const auto read = read_archive(file, passed);
    INFO(at << " of " << good.size() << ": " << reason(read));
    // A flip of a bit that zstd ignores is harmless: the content is the same.
    if (bytes.size() == good.size() && read.ok() && passed.finish() == digest) return;
    CHECK_FALSE(read.ok());
    CHECK((fails(read, Code::kDamaged, file) || fails(read, Code::kBadArgument, file)));
  };
  for (std::size_t size = 0; size < good.size(); ++size) check(good.substr(0, size), size);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
    check(bytes, at);
  }
  check(good + "x", good.size());
}

TEST_CASE("archive: no name leaves its tree") {
  Scratch scratch;
  const std::string file = scratch.path() + "/a.tar.zst";
  const auto refused = [&](const std::vector<tar::Member>& members) {
    write_members(file, members);
    fs::create_directories(scratch.path() + "/out/deep");
    Extractor out(scratch.path() + "/out/deep");
    NumberedTrees named({"data"}, file, out);
    const auto read = read_archive(file, named);
    INFO(members.back().path << ": " << reason(read));
    CHECK_FALSE(read.ok());
    CHECK(std::distance(fs::directory_iterator(scratch.path()), {}) == 2);
    CHECK(std::distance(fs::directory_iterator(scratch.path() + "/out"), {}) == 1);
    fs::remove_all(scratch.path() + "/out");
    return reason(read);
  };
  const auto directory = member("data", S_IFDIR | 0700);
  for (const char* path : {"../x", "data/../../x", "/x", "data//x", "data/./x", "data/..", "."}) {
    refused({directory, member(path, S_IFREG | 0600)});
  }
  CHECK(refused({directory, member("other", S_IFDIR | 0700)}).find("other") != std::string::npos);
  refused({directory, member("data/no/x", S_IFREG | 0600)});
  // A link must not lead out, either.
  refused({directory, member("data/link", S_IFLNK | 0777), member("data/link/x", S_IFREG | 0600)});
  tar::Member link = member("data/hard", S_IFREG | 0600);
  link.is_link = true;
  link.first = "/etc/passwd";
  refused({directory, link});
  write_members(file, {directory, member("data/x", S_IFREG | 0600)});
  NullSink null_sink;
  CHECK(read_archive(file, null_sink).ok());
}

TEST_CASE("archive: another file, and another archive, are refused by name") {
  Scratch scratch;
  const std::string file = scratch.path() + "/some.txt";
  NullSink null_sink;
  spill(file, "text");
  CHECK(fails(read_archive(file, null_sink), Code::kBadArgument, "some.txt does not begin with"));
  ArchiveWriter writer(fresh(file), file);
  REQUIRE(writer.head("other.json", "{}").ok());
  REQUIRE(writer.finish(true).ok());
  CHECK(fails(read_archive(file, null_sink), Code::kBadArgument, "about.json"));
}

TEST_CASE("archive: one that was cut before its head's end is called damaged") {
  Scratch scratch;
  const std::string file = scratch.path() + "/some.backup";
  NullSink null_sink;
  ArchiveWriter writer(fresh(file), file);
  REQUIRE(writer.head("about.json", "{}").ok());
  REQUIRE(writer.finish(true).ok());
  for (const std::uintmax_t size :
       {fs::file_size(file) - 1, std::uintmax_t{20}, std::uintmax_t{2}, std::uintmax_t{0}}) {
    CAPTURE(size);
    fs::resize_file(file, size);
    CHECK(fails(read_archive(file, null_sink), Code::kDamaged, "some.backup is damaged"));
  }
}

TEST_CASE("selected directories: only those, as their user sees them", "[root]") {
  Scratch scratch;
  const std::string upper = scratch.path() + "/upper", out = scratch.path() + "/out";
  fs::create_directories(upper + "/var/lib/db/deep");
  fs::create_directories(upper + "/var/lib/db2");
  fs::create_directory(out);
  spill(upper + "/var/lib/outside", "x");
  spill(upper + "/var/lib/db/deep/file", "x");
  make_socket(upper + "/var/lib/db/socket");
  REQUIRE(::mknod((upper + "/var/lib/db/gone").c_str(), S_IFCHR, 0) == 0);
  REQUIRE(::setxattr((upper + "/var/lib/db").c_str(), "trusted.overlay.opaque", "y", 1, 0) == 0);

  ContentDigest digest;
  Extractor extractor(out);
  NumberedTrees numbered({"var/lib/db"}, "", extractor);
  TeeSink tee(digest, numbered);
  SelectedDirectories selected({"/var/lib/db", "/absent"}, tee);
  REQUIRE(walk(upper, "upper", selected).ok());
  CHECK(selected.found() == std::vector<std::string>{"/var/lib/db"});
  CHECK(selected.sockets() == 1);
  CHECK(digest.files() == 1);
  CHECK(slurp(out + "/0/deep/file") == "x");
  CHECK_FALSE(fs::exists(out + "/0/gone"));
  CHECK(::getxattr((out + "/0").c_str(), "trusted.overlay.opaque", nullptr, 0) < 0);

  fs::create_hard_link(upper + "/var/lib/outside", upper + "/var/lib/db2/z");
  NullSink null_sink;
  SelectedDirectories other({"/var/lib/db2"}, null_sink);
  // The file's first name, in the order of a walk, is inside.
  CHECK(walk(upper, "upper", other).ok());
  fs::create_hard_link(upper + "/var/lib/outside", upper + "/var/lib/a");
  SelectedDirectories again({"/var/lib/db2"}, null_sink);
  CHECK(fails(walk(upper, "upper", again), Code::kUnsupported, "/var/lib/db2/z"));
}
