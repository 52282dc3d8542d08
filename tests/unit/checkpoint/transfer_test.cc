// SPDX-License-Identifier: Apache-2.0
// GOAL    Another replica's checkpoint arrives complete or not at all, whatever happens to the
//         connection or to either side, and only where it can be used (IMAGE-6).
// METHOD  The sending half in a separate process behind a unix socket, the receiving half in this
//         one.  The connection between them cuts, flips and counts.  Senders and receivers that
//         break the protocol; both killed at each named fault point in turn, then tried again.
// CHECKS  Equal files, one name, a mark; bytes that came before an interruption are not sent again;
//         the sentences of refusals.
// REPLAY  --rng-seed repeats the contents and the places.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>

#include "checkpoint/transfer.h"
#include "tests/unit/checkpoint/image_harness.h"

using namespace crane;
using namespace crane::test;
using checkpoint::fetch_newest;
using checkpoint::Fetched;
using checkpoint::kTransferFaultPoints;
using checkpoint::Others;
using checkpoint::serve;
using checkpoint::Wire;
namespace transfer = checkpoint::transfer;

namespace {

constexpr int kSilenceMs = 10'000;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

// The damage to the bytes that the receiver gets, counted over all connections.
struct Weather {
  std::uint64_t came = 0;
  std::uint64_t cut_at = kNever;       // the connection ends there
  std::vector<std::uint64_t> flip_at;  // one bit is flipped there
};

class Socket final : public Wire {
 public:
  explicit Socket(int fd, Weather* weather = nullptr) : fd_(fd), weather_(weather) {}
  Outcome put(std::span<const std::byte> bytes) override {
    const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(bytes.size())) return Done{};
    return Error{Code::kPeerFailed, 0, "it is gone"};
  }
  Result<std::size_t> get(std::span<std::byte> to) override {
    pollfd fd{fd_.get(), POLLIN, 0};
    if (::poll(&fd, 1, kSilenceMs) <= 0) return Error{Code::kPeerFailed, 0, "it is silent"};
    std::size_t room = to.size();
    if (weather_ != nullptr)
      room = std::min<std::uint64_t>(room, weather_->cut_at - weather_->came);
    if (room == 0) return std::size_t{0};
    const ssize_t n = ::recv(fd_.get(), to.data(), room, 0);
    if (n < 0) return std::size_t{0};  // reset: the sender was killed
    if (weather_ == nullptr) return static_cast<std::size_t>(n);
    for (const std::uint64_t at : weather_->flip_at) {
      const std::uint64_t from = weather_->came;
      if (at >= from && at < from + static_cast<std::uint64_t>(n)) to[at - from] ^= std::byte{16};
    }
    weather_->came += static_cast<std::uint64_t>(n);
    return static_cast<std::size_t>(n);
  }

 private:
  Descriptor fd_;
  Weather* weather_;
};

// A process that calls `visit` for every connection, one after another.
class Sender {
 public:
  Sender(const std::string& path, const std::function<void(Wire&)>& visit, const char* dies = "") {
    ::unlink(path.c_str());
    address_.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address_.sun_path);
    std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
    const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(listener.get(), as_address(), sizeof address_) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGTERM, SIG_DFL);  // replaces the test framework's handler
    if (dies[0] != '\0' && !die_at(dies)) ::_exit(3);
    for (;;) {
      const int fd = ::accept(listener.get(), nullptr, nullptr);
      if (fd < 0) ::_exit(0);
      Socket wire(fd);
      visit(wire);
    }
  }
  ~Sender() { (void)end(); }
  // True: its fault point had killed it.
  bool end() {
    if (pid_ < 0) return false;
    int status = 0;
    ::kill(pid_, SIGTERM);  // a fault point uses SIGKILL; this call may come first
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  Result<std::unique_ptr<Wire>> dial(Weather* weather) const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, as_address(), sizeof address_) == 0) {
      return std::unique_ptr<Wire>(std::make_unique<Socket>(fd, weather));
    }
    ::close(fd);
    return failure(Code::kPeerFailed, "connect", "it cannot be reached");
  }

 private:
  const sockaddr* as_address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  sockaddr_un address_{};
  pid_t pid_ = -1;
};

// A replica with a checkpoint of some megabytes, and one without.
struct World {
  Scratch scratch;
  std::mt19937_64 random{Catch::rngSeed()};
  std::string from = scratch.path() + "/from/checkpoints";
  std::string there = scratch.path() + "/to/checkpoints";
  std::string name;
  std::uint64_t bytes = 0;
  Weather weather;
  std::vector<std::string> lines;
  std::string why;
  Expected ours = kOurs;

  World() { name = make(from, 2, 9); }
  std::string make(const std::string& where, std::uint64_t view, std::uint64_t index) {
    Checkpoints all({where, 1, {}});
    auto staging = all.begin(Index{index});
    REQUIRE(staging.ok());
    fill(staging.value(), random);
    spill(staging.value().images() + "/pages.img", random_bytes(random, 1'500'000));
    const auto made = all.publish(staging.value(), manifest_at(view, index));
    REQUIRE(made.ok());
    REQUIRE(all.verify(made.value()).ok());
    bytes = 0;
    const Manifest manifest = all.find(made.value()).value().manifest;
    for (const PackedFile& f : manifest.files) bytes += f.bytes;
    return made.value();
  }
  static std::function<void(Wire&)> honest(const std::string& where, bool known = false) {
    return [where, known](Wire& wire) {
      Checkpoints all({where, 1, {}});
      (void)serve(wire, all, known).ok();
    };
  }
  std::string door(int replica) const { return scratch.path() + "/door" + std::to_string(replica); }
  Sender sender(const char* dies = "") const { return {door(0), honest(from), dies}; }
  Result<Fetched> fetch(const std::vector<const Sender*>& senders, Index behind = Index{0}) {
    return fetch(senders, ours, behind);
  }
  Result<Fetched> fetch(const std::vector<const Sender*>& senders, const Expected& expected,
                        Index behind = Index{0}) {
    Others others;
    for (int i = 0; i < static_cast<int>(senders.size()); ++i) others.replicas.push_back(i);
    others.dial = [&](int i) { return senders[static_cast<std::size_t>(i)]->dial(&weather); };
    Checkpoints here({there, 1, {}});
    auto got = fetch_newest(others, expected, behind, here,
                            [this](const std::string& line) { lines.push_back(line); });
    why = reason(got);
    return got;
  }
  // All of it arrived, and nothing else exists.
  void check_arrived(const std::string& what) {
    CHECK(names_in(there) == std::vector<std::string>{".lock", what});
    for (const std::string& file : names_in(from + "/" + what)) {
      INFO(file);
      const bool same =
          slurp(from + "/" + what + "/" + file) == slurp(there + "/" + what + "/" + file);
      CHECK(same);
    }
    Checkpoints here({there, 1, {}});
    const auto found = here.find(what);
    REQUIRE(found.ok());
    CHECK(found.value().verified);
    const auto unpacked = here.unpack(what, scratch.path() + "/restored", kOurs);
    INFO(reason(unpacked));
    CHECK(unpacked.ok());
    fs::remove_all(scratch.path() + "/restored");
  }
  // The number of bytes from earlier attempts.
  std::uint64_t partial() const {
    std::uint64_t all = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(there + "/.ship-" + name, none)) {
      const std::string file = entry.path().filename();
      if (file.find(".pack") != std::string::npos) all += fs::file_size(entry.path());
    }
    return all;
  }
};

// A sender of arbitrary messages.
std::function<void(Wire&)> sending(std::vector<std::pair<transfer::Kind, std::string>> words) {
  return [words](Wire& wire) {
    for (const auto& [kind, text] : words) {
      std::vector<std::byte> piece(4096), out;
      if (!wire.get(piece).ok()) return;
      transfer::encode(out, kind, text);
      if (!wire.put(out)) return;
    }
  };
}

}  // namespace

TEST_CASE("transfer: the newest usable checkpoint arrives", "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  w.make(w.from, 2, 7);
  const std::string newer = w.make(w.scratch.path() + "/other/checkpoints", 3, 8);
  // The newest one is not verified.
  REQUIRE(::unlink((w.from + "/" + w.name + "/verified").c_str()) == 0);
  const Sender first = w.sender();
  const Sender second(w.door(1), w.honest(w.scratch.path() + "/other/checkpoints"));
  const auto got = w.fetch({&first, &second});
  INFO(w.why);
  REQUIRE(got.ok());
  CHECK(got.value().name == newer);
  CHECK(got.value().index == Index{8});
  CHECK(got.value().from == 1);
  CHECK(got.value().bytes == w.bytes);
  CHECK(got.value().had == 0);
  REQUIRE(w.lines.size() == 1);
  CHECK(w.lines[0].find("the checkpoint at entry 8 from replica 1") != std::string::npos);
  w.from = w.scratch.path() + "/other/checkpoints";
  w.check_arrived(newer);
  // It has arrived; no replica has a later one.
  CHECK(w.fetch({&first, &second}).error().code == Code::kExists);
  CHECK(w.fetch({&first, &second}, Index{8}).error().code == Code::kNotFound);
  CHECK(w.why.find("replica 0: checkpoint") != std::string::npos);
  CHECK(w.why.find("is not verified yet") != std::string::npos);
  CHECK(w.why.find("its newest, at entry 8, is not after entry 8") != std::string::npos);
  // Unless they know this replica.
  const Sender third(w.door(2), World::honest(w.from, true));
  CHECK(w.fetch({&first, &third}, Index{8}).error().code == Code::kGone);
}

TEST_CASE("transfer: a transfer cut at any place resumes where it stopped",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const Sender sender = w.sender();
  std::uint64_t resumed = 0;
  for (int round = 0; round < 12; ++round) {
    fs::remove_all(w.there);
    std::uint64_t sent = 0;
    // Repeat until done: each attempt transfers somewhat more than the requests.
    for (int attempt = 0;; ++attempt) {
      REQUIRE(attempt < 200);
      w.weather = {};
      w.weather.cut_at = 1 + w.random() % 900'000;
      const std::uint64_t before = w.partial();
      const auto got = w.fetch({&sender});
      INFO("attempt " << attempt << ", cut at " << w.weather.cut_at << ": " << w.why);
      if (got.ok()) {
        CHECK(got.value().had == before);
        CHECK(got.value().bytes == w.bytes - before);
        CHECK(sent + got.value().bytes == w.bytes);  // nothing was sent twice
        resumed += before > 0 ? 1 : 0;
        break;
      }
      const Code code = got.error().code;
      CHECK((code == Code::kBusy || code == Code::kPeerFailed));
      sent += w.partial() - before;
    }
    w.check_arrived(w.name);
  }
  CHECK(resumed > 0);
}

TEST_CASE("transfer: the sender reports the place up to which the receiver has been sent all",
          "[root][processes][progress]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const std::string reports = w.scratch.path() + "/reports";
  const Sender sender(w.door(0), [&](Wire& wire) {
    std::ofstream out(reports, std::ios::app);
    Checkpoints all({w.from, 1, {}, [&](std::uint64_t done, std::uint64_t of) {
                       out << done << ' ' << of << std::endl;
                     }});
    (void)serve(wire, all, false).ok();
  });
  w.weather.cut_at = 900'000;
  CHECK(!w.fetch({&sender}).ok());
  const std::uint64_t arrived = w.partial();
  REQUIRE(arrived > 0);
  w.weather = {};
  REQUIRE(w.fetch({&sender}).ok());
  std::ifstream in(reports);
  std::vector<std::uint64_t> all_done;
  std::uint64_t resumed_at = 0;
  for (std::uint64_t done = 0, of = 0; in >> done >> of;) {
    REQUIRE(of == w.bytes);
    // The second attempt begins where the receiver has nothing, which may be before the place up to
    // which the first one had sent.
    if (!all_done.empty() && done < all_done.back()) resumed_at = done;
    all_done.push_back(done);
  }
  REQUIRE(!all_done.empty());
  CHECK(all_done.front() < w.bytes);
  CHECK(all_done.back() == w.bytes);
  if (resumed_at > 0) CHECK(resumed_at > arrived);
}

TEST_CASE("transfer: damage on the way is detected, and the bytes are fetched again",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const Sender sender = w.sender();
  // In the middle of the largest part.
  w.weather.flip_at = {w.bytes / 2};
  const auto got = w.fetch({&sender});
  INFO(w.why);
  REQUIRE(got.ok());
  CHECK(got.value().bytes > w.bytes);
  REQUIRE(w.lines.size() == 2);
  CHECK(w.lines[1].find("is damaged") != std::string::npos);
  w.check_arrived(w.name);
  // Damage at a source with a mark is never accepted.
  fs::remove_all(w.there);
  const std::string pack = w.from + "/" + w.name + "/images.pack";
  std::string bad = slurp(pack);
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  spill(pack, bad);
  w.weather = {};
  CHECK(w.fetch({&sender}).error().code == Code::kDamaged);
  CHECK(w.why.find("images.pack") != std::string::npos);
  CHECK(Checkpoints({w.there, 1, {}}).list().value().empty());
}

TEST_CASE("transfer: a sender whose files end early reports it, and another's is used",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const std::string other = w.scratch.path() + "/other/checkpoints";
  REQUIRE(Checkpoints({w.from, 1, {}}).ship(w.name, other).ok());
  fs::resize_file(w.from + "/" + w.name + "/images.pack", 1000);
  {
    const Sender sender = w.sender();
    CHECK(!w.fetch({&sender}).ok());
    CHECK(w.why.find("images.pack is damaged (it ends early)") != std::string::npos);
    CHECK(Checkpoints({w.there, 1, {}}).list().value().empty());
  }
  const Sender first = w.sender(), second(w.door(1), w.honest(other));
  const auto got = w.fetch({&first, &second});
  INFO(w.why);
  REQUIRE(got.ok());
  CHECK(got.value().from == 1);
  CHECK(got.value().had > 0);
  w.from = other;
  w.check_arrived(w.name);
}

TEST_CASE("transfer: a foreign checkpoint is neither sent nor accepted",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const Sender sender = w.sender();
  const std::pair<std::function<void(Expected&)>, std::string> cases[] = {
      {[](Expected& e) { e.group = "other"; }, "belongs to another group"},
      {[](Expected& e) { e.log_digest = digest_of_log("web", 4712); }, "belongs to another log"},
      {[](Expected& e) { e.program = "/bin/other"; }, "belongs to another program"},
      {[](Expected& e) { ++e.layout_version; }, "another layout"},
  };
  for (const auto& [change, sentence] : cases) {
    Expected other = w.ours;
    change(other);
    CHECK(w.fetch({&sender}, other).error().code == Code::kNotFound);
    INFO(w.why);
    CHECK(w.why.find(sentence) != std::string::npos);
  }
  // A replica that would accept any checkpoint is not of this version.
  CHECK(!w.fetch({&sender}, Expected{}).ok());
  // A sender that sends it nevertheless.
  const transfer::Have have{w.name, Index{9}, w.bytes, false, false, ""};
  const std::string manifest = slurp(w.from + "/" + w.name + "/manifest.json");
  const Sender liar(w.door(2), [&](Wire& wire) {
    sending({{transfer::Kind::kHave, to_text(have)}, {transfer::Kind::kManifest, manifest}})(wire);
  });
  for (const auto& [change, sentence] : cases) {
    Expected other = w.ours;
    change(other);
    CHECK(!w.fetch({&liar}, other).ok());
    INFO(w.why);
    CHECK(w.why.find(sentence) != std::string::npos);
  }
  CHECK(names_in(w.there).empty());
  REQUIRE(w.fetch({&sender}).ok());
  w.check_arrived(w.name);
}

TEST_CASE("transfer: each side withstands a faulty peer", "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  World w;
  const std::string manifest = slurp(w.from + "/" + w.name + "/manifest.json");
  const transfer::Have have{w.name, Index{9}, w.bytes, false, false, ""};
  const transfer::Have other{name_of(manifest_at(2, 10).at), Index{10}, w.bytes, false, false, ""};
  using transfer::Kind;
  const std::vector<std::vector<std::pair<Kind, std::string>>> senders = {
      {{Kind::kHave, "{}"}},
      {{Kind::kHave,
        R"({"name":"../x","index":1,"bytes":1,"resumes":false,"known":false,"why":""})"}},
      {{Kind::kPiece, "x"}},
      {{Kind::kHave, to_text(have)}, {Kind::kPiece, "x"}},
      {{Kind::kHave, to_text(have)}, {Kind::kManifest, "{}"}},
      {{Kind::kHave, to_text(have)}, {Kind::kManifest, manifest.substr(1)}},
      {{Kind::kHave, to_text(other)}, {Kind::kManifest, manifest}},
      {{Kind::kHave, to_text(have)}, {Kind::kManifest, manifest}, {Kind::kHave, to_text(have)}},
      {{Kind::kHave, to_text(have)}, {Kind::kManifest, manifest}, {Kind::kRefusal, "not now"}},
  };
  for (const auto& words : senders) {
    INFO(words.back().second.substr(0, 80));
    const Sender liar(w.door(1), sending(words));
    CHECK(!w.fetch({&liar}).ok());
    CHECK(!w.why.empty());
    CHECK(Checkpoints({w.there, 1, {}}).list().value().empty());
  }
  // More bytes of a part than it has.
  const Sender generous(w.door(2), [&](Wire& wire) {
    sending({{Kind::kHave, to_text(have)},
             {Kind::kManifest, manifest},
             {Kind::kPiece, std::string(transfer::kPieceMax, 'x')}})(wire);
    for (;;) {
      std::vector<std::byte> out;
      transfer::encode(out, Kind::kPiece, std::string(transfer::kPieceMax, 'x'));
      if (!wire.put(out)) return;
    }
  });
  CHECK(!w.fetch({&generous}).ok());
  CHECK(Checkpoints({w.there, 1, {}}).list().value().empty());
  fs::remove_all(w.there);
  // Receivers: each is refused, and the next one is served.
  const Sender sender = w.sender();
  const transfer::Ask ask{w.ours, Index{0}, ""};
  const std::string wants[] = {to_text(transfer::Want{"../manifest.pack", 0, 1}),
                               to_text(transfer::Want{"none.pack", 0, 1}),
                               to_text(transfer::Want{"images.pack", 0, w.bytes * 2}),
                               to_text(transfer::Want{"images.pack", kNever, 1}),
                               to_text(transfer::Want{"images.pack", 1, kNever}),
                               "{}"};
  for (const std::string& want : wants) {
    const auto wire = sender.dial(nullptr);
    REQUIRE(wire.ok());
    std::string received;
    for (const auto& [kind, text] : std::vector<std::pair<Kind, std::string>>{
             {Kind::kAsk, to_text(ask)}, {Kind::kFetch, w.name}, {Kind::kWant, want}}) {
      std::vector<std::byte> out, piece(1 << 16);
      transfer::encode(out, kind, text);
      REQUIRE(wire.value()->put(out).ok());
      const auto got = wire.value()->get(piece);
      REQUIRE(got.ok());
      received.assign(reinterpret_cast<const char*>(piece.data()), got.value());
    }
    INFO(want);
    CHECK(received.find("has no such part") != std::string::npos);
  }
  REQUIRE(w.fetch({&sender}).ok());
  w.check_arrived(w.name);
}

TEST_CASE("transfer: either side is killed at each point, and the transfer resumes",
          "[root][processes][IMAGE-6]") {
  INFO("seed " << Catch::rngSeed());
  std::vector<std::string> points(kTransferFaultPoints.begin(), kTransferFaultPoints.end());
  for (const std::string name : kFaultPoints) {
    if (name.rfind("ship.", 0) == 0) points.push_back(name);
  }
  int deaths = 0;
  for (const std::string& point : points) {
    const bool sends = point.rfind("send.", 0) == 0;
    for (int pass = 1; pass <= 4; ++pass) {
      World w;
      const std::string spec = point + ":" + std::to_string(pass);
      INFO(spec);
      bool died = false;
      {
        Sender sender = w.sender(sends ? spec.c_str() : "");
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
          if (!sends && !die_at(spec.c_str())) ::_exit(3);
          ::_exit(w.fetch({&sender}).ok() ? 0 : 2);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        INFO("status " << status);
        REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) != 3));
        died = sends ? sender.end() : WIFSIGNALED(status);
      }
      if (!died) {
        CHECK(pass > 1);  // each point was reached
        break;
      }
      ++deaths;
      const auto listed = Checkpoints({w.there, 1, {}}).list();
      REQUIRE(listed.ok());
      for (const Listed& one : listed.value()) CHECK(one.verified);  // IMAGE-1
      const std::uint64_t before = w.partial();
      const Sender sender = w.sender();
      const auto got = w.fetch({&sender});
      INFO(w.why);
      REQUIRE((got.ok() || got.error().code == Code::kExists));
      if (got.ok()) CHECK(got.value().had == before);
      if (got.ok()) CHECK(got.value().bytes == w.bytes - before);
      w.check_arrived(w.name);
    }
  }
  std::printf("  transfer: killed %d times\n", deaths);
  CHECK(deaths >= static_cast<int>(points.size()));
}

TEST_CASE("transfer: frames and messages", "[IMAGE-6]") {
  using transfer::Decoded;
  using transfer::Kind;
  std::vector<std::byte> out;
  transfer::encode(out, Kind::kFetch, std::string("name"));
  transfer::Frame frame;
  for (std::size_t n = 0; n < out.size(); ++n) {
    CHECK(transfer::decode(std::span(out).first(n), frame) == Decoded::kMore);
  }
  REQUIRE(transfer::decode(out, frame) == Decoded::kFrame);
  CHECK(frame.kind == Kind::kFetch);
  CHECK(frame.text() == "name");
  CHECK(frame.bytes == out.size());
  const auto head = [](std::uint32_t size, int kind) {
    std::vector<std::byte> bytes(transfer::kHeadBytes);
    std::memcpy(bytes.data(), &size, sizeof size);
    bytes[4] = static_cast<std::byte>(kind);
    return bytes;
  };
  CHECK(transfer::decode(head(1, 0), frame) == Decoded::kBad);
  CHECK(transfer::decode(head(1, 99), frame) == Decoded::kBad);
  CHECK(transfer::decode(head(0, static_cast<int>(Kind::kPiece)), frame) == Decoded::kBad);
  CHECK(transfer::decode(head(transfer::kPieceMax + 1, static_cast<int>(Kind::kPiece)), frame) ==
        Decoded::kBad);
  CHECK(transfer::decode(head(transfer::kTextMax + 1, static_cast<int>(Kind::kAsk)), frame) ==
        Decoded::kBad);
  transfer::Ask ask{kOurs, Index{77}, "00000002.000000000009"};
  transfer::Ask ask2;
  ask.expected.program.clear();
  CHECK(!parse(to_text(ask), ask2));  // any program
  ask.expected.program = kOurs.program;
  REQUIRE(parse(to_text(ask), ask2));
  CHECK(ask2 == ask);
  // 2^32 + 1: as a number of 32 bits it would be 1.
  CHECK(!parse(R"({"group":"a","log":"b","layout_version":4294967297,"program":"c","behind":1,)"
               R"("resume":""})",
               ask2));
  const transfer::Have have{"00000002.000000000009", Index{9}, 5, true, true, "a \"sentence\""};
  transfer::Have have2;
  REQUIRE(parse(to_text(have), have2));
  CHECK(have2 == have);
  const transfer::Want want{"images.pack", 3, 4};
  transfer::Want want2;
  REQUIRE(parse(to_text(want), want2));
  CHECK(want2 == want);
  CHECK(!parse("[]", want2));
  CHECK(!parse(R"({"file":"images.pack","offset":-1,"bytes":4})", want2));
}
