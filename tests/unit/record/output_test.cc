// SPDX-License-Identifier: Apache-2.0
// GOAL    A replica's output can be read back exactly, however its writer ended, and the comparison
//         of crane-diff finds every difference and no other.
// METHOD  Recordings written to a temporary directory, cut and damaged at every byte; generated
//         outputs cut into other pieces (seeded).
// REPLAY  the seed is printed: CRANE_SEED=<n> test-record

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "dmt/base/crc.h"
#include "proxy/record/output_compare.h"
#include "proxy/record/output_hash.h"
#include "proxy/record/output_record.h"

namespace {

using namespace crane;
using namespace crane::proxy;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Fixture {
  std::string dir = [] {
    std::string name = std::filesystem::temp_directory_path() / "crane-output-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  ~Fixture() { std::filesystem::remove_all(dir); }

  // Completes the recording when it goes out of scope.
  struct Finish {
    void operator()(OutputRecorder* r) const {
      r->finish();
      delete r;
    }
  };
  std::unique_ptr<OutputRecorder, Finish> record(std::uint8_t replica) {
    auto recorder = OutputRecorder::open(dir, replica);
    REQUIRE(recorder.ok());
    return std::unique_ptr<OutputRecorder, Finish>(std::move(recorder).value().release());
  }
  std::string path(int replica) const {
    return dir + "/replica-" + std::to_string(replica) + ".out";
  }
  std::string contents(int replica) const {
    std::ifstream file(path(replica), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(int replica, const std::string& text) const {
    std::ofstream(path(replica), std::ios::binary) << text;
  }
  Recording read(int replica) const {
    auto recording = Recording::open(path(replica));
    REQUIRE(recording.ok());
    return std::move(recording).value();
  }
  Comparison compared(int replicas, bool prefix = false) const {
    std::vector<Recording> all;
    for (int i = 0; i < replicas; ++i) all.push_back(read(i));
    CompareOptions options;
    options.prefix = prefix;
    return compare(all, options);
  }
};

void exchange(OutputRecorder& r, std::uint64_t conn, const std::string& answer,
              const char* how = "closed") {
  r.connected(ConnId{conn}, 80, "127.0.0.1:4000");
  r.bytes(ConnId{conn}, bytes_of(answer));
  r.closed(ConnId{conn}, how);
}

std::string text_of(const Recording::Connection& c) {
  std::string text;
  for (const auto piece : c.pieces) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return text;
}

std::uint32_t seed() {
  const char* given = std::getenv("CRANE_SEED");
  const auto value = given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                      : std::random_device{}();
  UNSCOPED_INFO("CRANE_SEED=" << value);
  return value;
}

}  // namespace

TEST_CASE("recording: written output is read back, connection by connection", "[record]") {
  Fixture fixture;
  {
    auto r = fixture.record(2);
    r->connected(ConnId{7}, 6379, "[::1]:99");
    r->connected(ConnId{9}, 80, "10.0.0.1:1");
    r->bytes(ConnId{7}, bytes_of("+O"));
    r->bytes(ConnId{9}, bytes_of(std::string(3'000'000, 'x')));
    r->bytes(ConnId{7}, bytes_of("K\r\n"));
    r->closed(ConnId{7}, "reset");
  }
  const Recording recording = fixture.read(2);
  CHECK(recording.replica() == 2);
  CHECK_FALSE(recording.ends_early());
  CHECK(recording.bytes() == 3'000'005);
  REQUIRE(recording.connections().size() == 2);
  const auto& seven = recording.connections().at(7);
  CHECK(text_of(seven) == "+OK\r\n");
  CHECK(seven.port == 6379);
  CHECK(seven.peer == "[::1]:99");
  CHECK(seven.how == "reset");
  CHECK(text_of(recording.connections().at(9)) == std::string(3'000'000, 'x'));
  CHECK_FALSE(recording.connections().at(9).closed);
}

TEST_CASE("recording: the name of a connection shows which side opened it", "[record]") {
  Fixture fixture;
  {
    auto r = fixture.record(2);
    r->connected(ConnId{7}, 6379, "[::1]:99");
    r->connected(ConnId{kOutboundBit | 9}, 80, "10.0.0.1:80");
  }
  const Recording recording = fixture.read(2);
  CHECK(recording.name_of(7) == "connection 7 (port 6379, client [::1]:99)");
  CHECK(recording.name_of(8) == "connection 8");
  CHECK(recording.name_of(kOutboundBit | 9) == "outbound connection of clock 9 (to 10.0.0.1:80)");
}

TEST_CASE("recording: a failed replica's recording ends early and holds all written output",
          "[record]") {
  Fixture fixture;
  {
    auto opened = OutputRecorder::open(fixture.dir, 0);
    REQUIRE(opened.ok());
    auto failed = std::move(opened).value();
    exchange(*failed, 1, "answer");
  }
  CHECK(fixture.read(0).end() == RecordingEnd::kEndsEarly);
  CHECK(fixture.read(0).bytes() == 6);
}

TEST_CASE("recording: cut at any byte, it ends early and keeps every whole record", "[record]") {
  Fixture fixture;
  {
    auto r = fixture.record(0);
    for (std::uint64_t conn = 1; conn <= 4; ++conn) exchange(*r, conn, "answer");
  }
  const std::string whole = fixture.contents(0);
  std::uint64_t before = 0;
  for (std::size_t size = 32; size < whole.size(); ++size) {
    // A killed writer has not marked the end, either.
    std::string cut = whole.substr(0, size);
    cut[24] = 0;
    fixture.replace(1, cut);
    const Recording recording = fixture.read(1);
    REQUIRE(recording.ends_early());
    REQUIRE(recording.bytes() >= before);
    before = recording.bytes();
  }
  CHECK(before == 4 * 6);
}

TEST_CASE("recording: any byte changed inside is damage or a torn end, never other bytes",
          "[record]") {
  Fixture fixture;
  {
    auto r = fixture.record(0);
    for (std::uint64_t conn = 1; conn <= 3; ++conn) exchange(*r, conn, "the answer");
  }
  const std::string whole = fixture.contents(0);
  int damaged = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= 24 && at < 32) continue;  // these words record how it ended
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    fixture.replace(1, changed);
    const auto recording = Recording::open(fixture.path(1));
    INFO("byte " << at);
    if (!recording.ok()) {
      ++damaged;
      continue;
    }
    REQUIRE(recording.value().torn());
    for (const auto& [conn, c] : recording.value().connections()) {
      REQUIRE((c.size == 0 || text_of(c) == "the answer"));
    }
  }
  CHECK(damaged > 200);
}

TEST_CASE("recording: a full disk stops the recording, not the caller, and the file records it",
          "[record]") {
  Fixture fixture;
  {
    auto r = fixture.record(0);
    exchange(*r, 1, "first");
    r->flush();
    r->test_only_room(10);
    exchange(*r, 2, "second");
    r->flush();
    CHECK_FALSE(r->recording());
    const std::string message = r->take_message();
    CHECK(message.find("No space left on device") != std::string::npos);
    CHECK(r->take_message().empty());
    exchange(*r, 3, "third");
  }
  const Recording recording = fixture.read(0);
  CHECK(recording.end() == RecordingEnd::kStopped);
  CHECK(recording.stop_error() == ENOSPC);
  CHECK_FALSE(recording.torn());
  CHECK(recording.connections().size() == 1);
}

TEST_CASE("recording: a foreign file, another version and a missing file have different errors",
          "[record]") {
  Fixture fixture;
  fixture.record(0).reset();
  std::string other = fixture.contents(0);
  other[8] = 9;
  fixture.replace(1, other);
  fixture.replace(2, "GET / HTTP/1.0\r\n\r\n, and more than a header's worth of it");
  fixture.replace(3, "");
  CHECK(Recording::open(fixture.path(1)).error().code == Code::kWrongVersion);
  CHECK(Recording::open(fixture.path(2)).error().code == Code::kDamaged);
  CHECK(Recording::open(fixture.path(3)).error().code == Code::kDamaged);
  CHECK(Recording::open(fixture.path(4)).error().code == Code::kSystem);
  CHECK(Recording::open(fixture.dir).error().code == Code::kDamaged);
  CHECK_FALSE(OutputRecorder::open("/proc/no/such", 0).ok());
}

TEST_CASE("compare: pieces and order between connections do not matter, every byte does",
          "[compare]") {
  std::mt19937 random(seed());
  Fixture fixture;
  std::vector<std::string> answers;
  for (int i = 0; i < 20; ++i) {
    std::string text(random() % 9000 + 1, ' ');
    for (auto& c : text) c = static_cast<char>(random());
    answers.push_back(text);
  }
  const auto write = [&](std::uint8_t replica, const std::vector<std::string>& texts) {
    auto r = fixture.record(replica);
    std::vector<std::size_t> at(texts.size(), 0);
    for (std::uint64_t conn = 0; conn < texts.size(); ++conn) r->connected(ConnId{conn}, 80, "a:1");
    for (std::size_t open = texts.size(); open > 0;) {
      const std::size_t conn = random() % texts.size();
      if (at[conn] > texts[conn].size()) continue;
      const std::size_t n = random() % 2000;
      if (at[conn] < texts[conn].size()) {
        r->bytes(ConnId{conn}, bytes_of(texts[conn].substr(at[conn], n)));
        at[conn] = std::min(at[conn] + n, texts[conn].size());
      } else {
        r->closed(ConnId{conn}, "closed");
        at[conn] = texts[conn].size() + 1;
        --open;
      }
    }
  };
  for (std::uint8_t replica = 0; replica < 3; ++replica) write(replica, answers);
  CHECK(fixture.compared(3).equal());

  const std::size_t conn = random() % answers.size();
  const std::size_t at = random() % answers[conn].size();
  answers[conn][at] = static_cast<char>(answers[conn][at] ^ 1);
  write(1, answers);
  const Comparison c = fixture.compared(3);
  CHECK(c.different == 1);
  REQUIRE(c.differences.size() == 1);
  const Difference& d = c.differences[0];
  CHECK(d.kind == DifferenceKind::kBytes);
  CHECK(d.conn == conn);
  CHECK(d.offset == at);
  CHECK(d.left == 0);
  CHECK(d.right == 1);
  const std::size_t mark = d.offset - d.context_offset;
  REQUIRE(mark < d.right_bytes.size());
  CHECK(d.right_bytes[mark] == static_cast<std::byte>(answers[conn][at]));
  CHECK(d.left_bytes[mark] != d.right_bytes[mark]);
}

TEST_CASE("compare: each kind of difference is reported", "[compare]") {
  Fixture fixture;
  const auto pair = [&](auto&& left, auto&& right) {
    left(*fixture.record(0));
    right(*fixture.record(1));
    const Comparison c = fixture.compared(2);
    REQUIRE(c.differences.size() == 1);
    return c.differences[0];
  };
  const auto normal = [](OutputRecorder& r) { exchange(r, 5, "hello"); };
  CHECK(pair(normal, [](OutputRecorder&) {}).kind == DifferenceKind::kMissing);
  CHECK(pair([](OutputRecorder&) {}, normal).kind == DifferenceKind::kMissing);
  CHECK(pair(normal, [](OutputRecorder& r) { exchange(r, 5, "hello", "reset"); }).kind ==
        DifferenceKind::kClosing);
  const auto shorter = pair(normal, [](OutputRecorder& r) { exchange(r, 5, "hell"); });
  CHECK(shorter.kind == DifferenceKind::kLength);
  CHECK(shorter.offset == 4);
  CHECK(pair(normal, [](OutputRecorder& r) {
          r.connected(ConnId{5}, 81, "127.0.0.1:4000");
          r.bytes(ConnId{5}, bytes_of("hello"));
          r.closed(ConnId{5}, "closed");
        }).kind == DifferenceKind::kPeer);
}

TEST_CASE("compare: with --prefix a killed replica may have less output, but no other output",
          "[compare]") {
  Fixture fixture;
  for (std::uint8_t replica = 0; replica < 2; ++replica) {
    auto r = fixture.record(replica);
    for (std::uint64_t conn = 1; conn <= 3; ++conn) exchange(*r, conn, "answer");
  }
  std::string killed = fixture.contents(1).substr(0, fixture.contents(1).size() - 60);
  killed[24] = 0;
  fixture.replace(1, killed);
  CHECK_FALSE(fixture.compared(2).equal());
  CHECK(fixture.compared(2).differences[0].kind == DifferenceKind::kEndsEarly);
  const Comparison prefix = fixture.compared(2, true);
  CHECK(prefix.equal());
  CHECK(prefix.shorter >= 1);

  auto other = fixture.record(0);
  for (std::uint64_t conn = 1; conn <= 3; ++conn) exchange(*other, conn, "Answer");
  other.reset();
  CHECK(fixture.compared(2, true).different >= 2);
  // A replica that stopped cleanly must be complete, whichever it is,
  exchange(*fixture.record(1), 1, "Answer");
  CHECK_FALSE(fixture.compared(2, true).equal());
  for (std::uint64_t conn = 1; conn <= 3; ++conn) exchange(*fixture.record(1), conn, "Answer");
  fixture.replace(2, fixture.contents(0));
  exchange(*fixture.record(0), 3, "Answer");
  CHECK_FALSE(fixture.compared(3, true).equal());
  // and a closed connection ends where it ends, even in the recording of a killed replica.
  exchange(*fixture.record(0), 1, "Answer");
  exchange(*fixture.record(1), 1, "Ans");
  std::string early = fixture.contents(1);
  early[24] = 0;
  fixture.replace(1, early);
  CHECK(fixture.compared(2, true).different == 1);
}

TEST_CASE("hash: H1, equal streams have equal digests however they are cut and mixed", "[hash]") {
  std::mt19937 random(seed());
  std::string a(random() % 20000, 'a'), b(random() % 20000, 'b');
  for (auto& c : a) c = static_cast<char>(random());
  for (auto& c : b) c = static_cast<char>(random());
  const auto digest = [&](std::size_t step, bool close) {
    OutputHash hash;
    for (std::size_t at = 0; at < std::max(a.size(), b.size()); at += step) {
      if (at < a.size()) hash.bytes(ConnId{1}, bytes_of(a.substr(at, step)));
      if (at < b.size()) hash.bytes(ConnId{2}, bytes_of(b.substr(at, step)));
    }
    if (close) hash.closed(ConnId{1});
    CHECK(hash.open_connections() == (close ? 1u : 2u) - (b.empty() ? 1 : 0));
    return hash.digest();
  };
  a += "x", b += "y";
  CHECK(digest(1, true) == digest(4000, true));
  CHECK(digest(7, false) == digest(1536, false));
  CHECK(digest(7, false) != digest(7, true));
  const auto before = digest(100, true);
  b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 4);
  CHECK(digest(100, true) != before);
}

TEST_CASE("hash: swapped bytes, swapped connections and a shifted border all change it", "[hash]") {
  const auto digest = [](const std::vector<std::pair<std::uint64_t, std::string>>& streams) {
    OutputHash hash;
    for (const auto& [conn, text] : streams) hash.bytes(ConnId{conn}, bytes_of(text));
    return hash.digest();
  };
  CHECK(digest({{1, "ab"}, {2, "cd"}}) == digest({{2, "cd"}, {1, "ab"}}));
  CHECK(digest({{1, "ab"}, {2, "cd"}}) != digest({{1, "cd"}, {2, "ab"}}));
  CHECK(digest({{1, "ab"}, {2, "cd"}}) != digest({{1, "abc"}, {2, "d"}}));
  CHECK(digest({{1, std::string(1536, 'x')}}) != digest({{1, std::string(3072, 'x')}}));
  CHECK(digest({{1, "ab"}}) != digest({{1, "ba"}}));
}

TEST_CASE("hash: a bucket is the CRC64 that dmt/base computes", "[hash]") {
  // The digest of one whole bucket depends only on its CRC64; two implementations must agree on it.
  const std::string text(kHashBucketBytes, 'q');
  OutputHash once, bytewise;
  once.bytes(ConnId{1}, bytes_of(text));
  for (const char c : text) bytewise.bytes(ConnId{1}, bytes_of(std::string(1, c)));
  CHECK(once.buckets(ConnId{1}) == 1);
  CHECK(once.buckets_digest(ConnId{1}) == bytewise.buckets_digest(ConnId{1}));
  const std::string check = "123456789";
  CHECK(crc64(check.data(), check.size()) == 0x995dc9bbdf1939faULL);
  CHECK(OutputHash::test_only_crc64(bytes_of(check)) == crc64(check.data(), check.size()));
}
