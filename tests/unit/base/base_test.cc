// SPDX-License-Identifier: Apache-2.0
// GOAL    The basic types and functions of dmt/base are correct.
// METHOD  Known answers, bit-at-a-time models, damaged input.
// CHECKS  CRC values, codec bounds, Result, ids, messages, futexes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dmt/base/assert.h"
#include "dmt/base/codec.h"
#include "dmt/base/crc.h"
#include "dmt/base/futex.h"
#include "dmt/base/ids.h"
#include "dmt/base/log.h"
#include "dmt/base/oom_kills.h"
#include "dmt/base/process_stat.h"
#include "dmt/base/read_text.h"
#include "dmt/base/result.h"

using namespace crane;

namespace {

std::uint64_t seed_of_run() {
  const char* given = std::getenv("CRANE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// The definition of the CRC, computed one bit at a time.
template <typename Word>
Word crc_by_bits(Word polynomial, const std::string& bytes) {
  Word crc = static_cast<Word>(~Word{0});
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
  }
  return static_cast<Word>(~crc);
}

// Returns the text that `write` wrote with Message.
std::string written(const std::function<void()>& write) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const int before = message_fd();
  set_message_fd(ends[1]);
  write();
  set_message_fd(before);
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  ::close(ends[0]);
  return text;
}

}  // namespace

// --- CRC -----------------------------------------------------------------------------------------

TEST_CASE("crc: the results match the check values of the CRC catalogue", "[crc]") {
  const std::string check = "123456789";
  CHECK(crc32c(check.data(), check.size()) == 0xE3069283);
  CHECK(crc64(check.data(), check.size()) == 0x995DC9BBDF1939FA);
  CHECK(crc32c(nullptr, 0) == 0);
  CHECK(crc64(nullptr, 0) == 0);
  const std::vector<unsigned char> zeros(32, 0);
  CHECK(crc32c(zeros.data(), zeros.size()) == 0x8A9136AA);  // RFC 3720, B.4
}

TEST_CASE("crc: the results match the definition at every length and alignment", "[crc][random]") {
  const std::uint64_t seed = seed_of_run();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (std::size_t size = 0; size < 100; ++size) {
    const std::string bytes = random_bytes(random, size + 8);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      const std::string part = bytes.substr(offset, size);
      REQUIRE(crc32c(bytes.data() + offset, size) == crc_by_bits<std::uint32_t>(0x82F63B78, part));
      REQUIRE(crc64(bytes.data() + offset, size) ==
              crc_by_bits<std::uint64_t>(0xC96C5795D7870F42, part));
    }
  }
}

TEST_CASE("crc: computing it in two parts gives the same value", "[crc][random]") {
  const std::uint64_t seed = seed_of_run();
  INFO("CRANE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::string bytes = random_bytes(random, 1000);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
    const std::size_t rest = bytes.size() - cut;
    REQUIRE(crc32c(bytes.data() + cut, rest, crc32c(bytes.data(), cut)) ==
            crc32c(bytes.data(), bytes.size()));
    REQUIRE(crc64(bytes.data() + cut, rest, crc64(bytes.data(), cut)) ==
            crc64(bytes.data(), bytes.size()));
  }
}

TEST_CASE("crc: every flipped bit changes the value", "[crc]") {
  std::string bytes = "an entry of the log";
  const std::uint32_t right = crc32c(bytes.data(), bytes.size());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    CHECK(crc32c(bytes.data(), bytes.size()) != right);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}

// --- codec ---------------------------------------------------------------------------------------

TEST_CASE("codec: a reader returns the values that were written, in little-endian order",
          "[codec]") {
  std::array<std::byte, 32> bytes{};
  Writer writer(bytes);
  writer.put(std::uint8_t{0x11});
  writer.put(std::uint32_t{0x22334455});
  writer.put(std::int64_t{-2});
  writer.put_bytes("abc", 3);
  REQUIRE(writer.ok());
  CHECK(writer.used() == 16);
  CHECK(bytes[1] == std::byte{0x55});
  Reader reader(std::span<const std::byte>(bytes).first(writer.used()));
  CHECK(reader.get<std::uint8_t>() == 0x11);
  CHECK(reader.get<std::uint32_t>() == 0x22334455);
  CHECK(reader.get<std::int64_t>() == -2);
  CHECK(reader.get_bytes(3).size() == 3);
  CHECK(reader.ok());
  CHECK(reader.left() == 0);
}

TEST_CASE("codec: a reader that ran out of bytes stays bad and returns zeros", "[codec]") {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  Reader reader(bytes);
  CHECK(reader.get<std::uint32_t>() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.get<std::uint8_t>() == 0);
  CHECK(reader.get_bytes(SIZE_MAX).empty());
}

TEST_CASE("codec: a writer never writes past its end", "[codec]") {
  std::array<std::byte, 8> bytes{};
  Writer writer(std::span<std::byte>(bytes).first(5));
  writer.put(std::uint32_t{1});
  writer.put(std::uint32_t{0xffffffff});
  CHECK_FALSE(writer.ok());
  CHECK(writer.used() == 4);
  volatile std::size_t huge = SIZE_MAX;  // unknown to the compiler, which would refuse it
  writer.put_bytes(bytes.data(), huge);
  CHECK(bytes[4] == std::byte{0});
}

// --- values --------------------------------------------------------------------------------------

TEST_CASE("views are unique to a replica and ordered by counter first", "[ids]") {
  const View a = make_view(7, ReplicaId{1});
  const View b = make_view(7, ReplicaId{2});
  const View c = make_view(8, ReplicaId{0});
  CHECK(a < b);
  CHECK(b < c);
  CHECK(view_counter(b) == 7);
  CHECK(view_owner(b) == ReplicaId{2});
  CHECK(Viewstamp{a, Index{9}} < Viewstamp{b, Index{1}});
  CHECK(Viewstamp{a, Index{1}} < Viewstamp{a, Index{2}});
  CHECK(value(next(Index{4})) == 5);
}

TEST_CASE("a result is a value or an error", "[result]") {
  Result<std::string> good(std::string("value"));
  REQUIRE(good.ok());
  CHECK(good.value() == "value");
  CHECK(std::move(good).value() == "value");
  const Result<std::string> bad(Error{Code::kNotFound, ENOENT, "open"});
  CHECK_FALSE(bad);
  CHECK(bad.error().code == Code::kNotFound);
  CHECK(bad.error().detail == ENOENT);
  errno = EMFILE;
  CHECK(system_error("dup").detail == EMFILE);
}

// --- messages and assertions ---------------------------------------------------------------------

TEST_CASE("a message is one line, is cut at the limit, and does not change errno", "[log]") {
  errno = EDOM;
  CHECK(written([] { Message() << "slot " << 7 << " at " << INT64_MIN << "/" << UINT64_MAX; }) ==
        "crane: slot 7 at -9223372036854775808/18446744073709551615\n");
  CHECK(errno == EDOM);
  CHECK(written([] { Message().hex(0xabc); }) == "crane: 0x0000000000000abc\n");
  const std::string cut = written([] { Message() << std::string(2000, 'x').c_str(); });
  CHECK(cut.size() < 512);
  CHECK(cut.back() == '\n');
}

TEST_CASE("a failed assertion prints its place and aborts", "[log]") {
  const std::string text = written([] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGABRT, SIG_DFL);
      CRANE_ASSERT(1 + 1 == 3);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
  });
  CHECK(text.find("crane: assertion failed: 1 + 1 == 3") == 0);
  CHECK(text.find("base_test.cc:") != std::string::npos);
}

// --- futex ---------------------------------------------------------------------------------------

TEST_CASE("futex: a wait returns at once if the word changed, and ends at its timeout", "[futex]") {
  std::atomic<std::uint32_t> word{1};
  errno = EDOM;
  futex_wait(&word, 0);
  CHECK(futex_wait_for(&word, 0, 1'000'000'000));
  CHECK_FALSE(futex_wait_for(&word, 1, 1'000'000));
  CHECK(errno == EDOM);
}

TEST_CASE("futex: a wake reaches a thread and another process", "[futex]") {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto& word = *new (memory) std::atomic<std::uint32_t>(0);
  const auto sleeper = [&word] {
    while (word.load() == 0) futex_wait(&word, 0);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    sleeper();
    ::_exit(7);
  }
  std::thread thread(sleeper);
  word.store(1);
  futex_wake(&word, INT32_MAX);
  thread.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  ::munmap(memory, 4096);
}

TEST_CASE("kills by the kernel's OOM killer count from the beginning", "[base]") {
  char name[] = "/tmp/crane-vmstat-XXXXXX";
  REQUIRE(::close(::mkstemp(name)) == 0);
  const auto count = [&name](int kills) {
    std::ofstream(name) << "nr_free_pages 1\noom_kill " << kills << "\nzone_reclaim_failed 9\n";
  };
  count(3);
  const OomKills kills(name);
  CHECK(kills.since() == 0);
  count(5);
  CHECK(kills.since() == 2);
  std::ofstream(name) << "nr_free_pages 1\n";  // a kernel that does not count
  CHECK(kills.since() == 0);
  CHECK(::unlink(name) == 0);
  CHECK(OomKills(name).since() == 0);
  CHECK(oom_text(0).empty());
  CHECK(oom_text(1).find("has ended 1 process on") != std::string::npos);
}

TEST_CASE("a read that fails ends the text, and does not throw", "[base]") {
  std::ifstream directory("/proc");
  REQUIRE(directory.is_open());
  CHECK(rest_of(directory).empty());
  CHECK(directory.bad());
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
  REQUIRE(stat.is_open());
  CHECK(read_process_stat(child)->parent == ::getpid());
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(rest_of(stat).empty());  // as if it ended while read_process_stat() reads
  CHECK(stat.bad());
  CHECK_FALSE(read_process_stat(child));
  std::ifstream whole("/proc/self/maps");
  CHECK(rest_of(whole).size() > 4096);
  CHECK_FALSE(whole.bad());
}
