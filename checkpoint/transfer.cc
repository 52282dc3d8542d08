// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/transfer.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "checkpoint/fault_points.h"

namespace crane::checkpoint {
namespace {

using transfer::Ask;
using transfer::Decoded;
using transfer::Frame;
using transfer::Have;
using transfer::Kind;
using transfer::Want;

constexpr std::size_t kReadStep = 64U << 10;
constexpr int kAttempts = 2;           // for a checkpoint that was damaged on the way
constexpr std::size_t kWhyMax = 2000;  // length of a forwarded sentence
constexpr int kDecimal = 10;           // tenths of a megabyte

Error other_protocol() {
  return failure(Code::kBadArgument, "listen", "it does not speak this version's protocol");
}

// Sends and receives whole messages.
class TransferSession {
 public:
  TransferSession(Wire& wire) : wire_(wire) {}

  Outcome send(Kind kind, std::span<const std::byte> body) {
    out_.clear();
    transfer::encode(out_, kind, body);
    const Outcome sent = wire_.put(out_);
    return sent ? sent : lost(sent.error());
  }
  Outcome send(Kind kind, const std::string& text) {
    return send(kind, std::as_bytes(std::span(text)));
  }
  // Sends a refusal instead of an answer.
  Outcome refuse(const std::string& sentence) {
    return send(Kind::kRefusal, sentence.substr(0, kWhyMax));
  }

  // The next message; its body is valid until the next call.  False: the connection has ended.
  Result<bool> receive(Frame& frame) {
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(consumed_));
    consumed_ = 0;
    for (;;) {
      const Decoded found = transfer::decode(in_, frame);
      if (found == Decoded::kFrame) break;
      if (found == Decoded::kBad) return other_protocol();
      const std::size_t before = in_.size();
      in_.resize(before + kReadStep);
      const auto got = wire_.get({in_.data() + before, kReadStep});
      in_.resize(before + (got ? got.value() : 0));
      if (!got) return lost(got.error());
      if (got.value() == 0) return false;
    }
    consumed_ = frame.bytes;
    return true;
  }
  // A message of this kind; any other is an error, and the error of a refusal has its sentence.
  Outcome receive(Kind kind, Frame& frame) {
    const auto received = receive(frame);
    if (!received) return received.error();
    if (!received.value()) return failure(Code::kPeerFailed, "listen", "it ended the connection");
    if (frame.kind == Kind::kRefusal) return failure(Code::kBusy, "listen", frame.text());
    if (frame.kind == kind) return Done{};
    return other_protocol();
  }

 private:
  Error lost(const Error& error) {
    return failure(Code::kPeerFailed, "talk", std::string("the connection broke: ") + error.what);
  }

  Wire& wire_;
  std::vector<std::byte> in_, out_;
  std::size_t consumed_ = 0;
};

std::string megabytes(std::uint64_t bytes) {
  const std::uint64_t tenths = (bytes * kDecimal + 999'999) / 1'000'000;
  return std::to_string(tenths / kDecimal) + "." + std::to_string(tenths % kDecimal) + " MB";
}

std::string entry(Index index) { return "the checkpoint at entry " + std::to_string(value(index)); }

// --- the sending half ---------------------------------------------------------------------------

// Whether `one` may be sent; an error contains the reason against it.
Outcome fits(const Listed& one, const Ask& ask) {
  const auto unfit = [](const std::string& sentence) {
    return failure(Code::kBadArgument, "give a checkpoint", sentence);
  };
  if (!one.damage.empty()) return unfit(one.damage);
  if (auto same = compare(one.manifest, ask.expected, one.name); !same) return same;
  if (!one.verified) return unfit("checkpoint " + one.name + " is not verified yet");
  if (one.manifest.at.index > ask.behind) return Done{};
  return unfit("its newest, at entry " + std::to_string(value(one.manifest.at.index)) +
               ", is not after entry " + std::to_string(value(ask.behind)));
}

Have newest_usable(Checkpoints& here, const Ask& ask) {
  Have have;
  const auto all = here.list();
  if (!all) {
    have.why = all.error().message().substr(0, kWhyMax);
    return have;
  }
  for (const Listed& one : all.value()) {
    if (const auto fit = fits(one, ask); !fit) {
      if (have.why.empty()) have.why = fit.error().message().substr(0, kWhyMax);
      continue;
    }
    have.resumes = have.resumes || one.name == ask.resume;
    if (!have.name.empty()) continue;
    have.name = one.name;
    have.index = one.manifest.at.index;
    have.bytes = one.bytes();
  }
  if (!have.name.empty()) have.why.clear();
  if (have.name.empty() && have.why.empty()) have.why = "it has none";
  return have;
}

bool is_part(const Manifest& manifest, const Want& want) {
  return std::any_of(manifest.files.begin(), manifest.files.end(), [&](const PackedFile& file) {
    return file.name == want.file && want.offset < file.bytes &&
           want.bytes <= file.bytes - want.offset;
  });
}

// The bytes of the checkpoint before that part: a receiver requests its files in order.
std::uint64_t bytes_before(const Manifest& manifest, const Want& want) {
  std::uint64_t all = want.offset;
  for (const PackedFile& file : manifest.files) {
    if (file.name == want.file) break;
    all += file.bytes;
  }
  return all;
}

Outcome send_part(TransferSession& session, Outgoing& outgoing, const Want& want,
                  std::vector<std::byte>& piece, std::uint64_t& given,
                  const std::function<void(std::uint64_t done)>& on_sent) {
  for (std::uint64_t done = 0; done < want.bytes;) {
    const std::size_t size = std::min<std::uint64_t>(piece.size(), want.bytes - done);
    const auto read = outgoing.read(want.file, want.offset + done, {piece.data(), size});
    if (!read) {
      (void)session.refuse(read.error().message()).ok();
      return read.error();
    }
    const auto sent = session.send(Kind::kPiece, {piece.data(), read.value()});
    if (!sent) return sent;
    fault_point("send.piece");
    done += read.value();
    given += read.value();
    on_sent(done);
  }
  return Done{};
}

// --- the receiving half -------------------------------------------------------------------------

struct Offer {
  int replica = -1;
  Have have;
  bool operator<(const Offer& other) const {  // the worse offer is smaller
    return std::tuple(have.resumes, have.index) < std::tuple(other.have.resumes, other.have.index);
  }
};

Outcome ask_one(Wire& wire, const Ask& ask, Have& have) {
  TransferSession session(wire);
  Frame frame;
  if (auto sent = session.send(Kind::kAsk, to_text(ask)); !sent) return sent;
  if (auto received = session.receive(Kind::kHave, frame); !received) return received;
  if (parse(frame.text(), have)) return Done{};
  return other_protocol();
}

// The received manifest, if it is the requested one.
Result<Manifest> parse_requested(const std::string& text, const Ask& ask, const std::string& name) {
  auto manifest = parse_manifest(text, "the manifest that arrived");
  if (!manifest) return manifest;
  const Manifest& m = manifest.value();
  if (auto same = compare(m, ask.expected, name); !same) return same.error();
  if (name_of(m.at) == name && m.at.index > ask.behind) return manifest;
  return failure(Code::kBadArgument, "receive",
                 "checkpoint " + name_of(m.at) + " arrived instead of " + name);
}

// Receives everything that `incoming` needs.
Outcome receive_parts(TransferSession& session, Incoming& incoming, Fetched& fetched,
                      const std::function<void()>& on_piece) {
  while (!incoming.wanted().file.empty()) {
    const Want want{incoming.wanted().file, incoming.wanted().offset, incoming.wanted().bytes};
    if (auto sent = session.send(Kind::kWant, to_text(want)); !sent) return sent;
    for (std::uint64_t left = want.bytes; left > 0;) {
      Frame frame;
      if (auto received = session.receive(Kind::kPiece, frame); !received) return received;
      if (frame.body.size() > left) {
        return failure(Code::kBadArgument, "receive",
                       "more bytes of " + want.file + " arrived than it has");
      }
      if (auto added = incoming.add(frame.body); !added) return added;
      fetched.bytes += frame.body.size();
      left -= frame.body.size();
      on_piece();
    }
  }
  return Done{};
}

Outcome fetch(Wire& wire, const Ask& ask, const std::string& name, Checkpoints& here,
              Fetched& fetched, const LogLine& say) {
  Have have;
  if (auto asked = ask_one(wire, ask, have); !asked) return asked;
  TransferSession session(wire);
  Frame frame;
  if (auto sent = session.send(Kind::kFetch, name); !sent) return sent;
  if (auto received = session.receive(Kind::kManifest, frame); !received) return received;
  const std::string text = frame.text();
  const auto manifest = parse_requested(text, ask, name);
  if (!manifest) return manifest.error();
  fault_point("fetch.agreed");
  Incoming incoming(here);
  if (auto begun = incoming.begin(text); !begun) return begun;
  fetched.index = manifest.value().at.index;
  fetched.had = incoming.arrived();
  say("fetching " + entry(fetched.index) + " from replica " + std::to_string(fetched.from) + ": " +
      megabytes(manifest.value().bytes()) +
      (fetched.had > 0 ? ", of which " + megabytes(fetched.had) + " have arrived already" : ""));
  const auto report = [&] {
    here.report_bytes(fetched.had + fetched.bytes, manifest.value().bytes());
  };
  for (int attempt = 1;; ++attempt) {
    if (auto taken = receive_parts(session, incoming, fetched, report); !taken) return taken;
    const auto finished = incoming.finish();
    if (finished) return Done{};
    const bool may_help = finished.error().code == Code::kDamaged && attempt < kAttempts;
    if (!may_help) return finished;
    say(finished.error().message() + "; it is fetched again");
  }
}

}  // namespace

Result<Served> serve(Wire& wire, Checkpoints& here, bool known) {
  TransferSession session(wire);
  Frame frame;
  Ask ask;
  Served served;
  if (auto received = session.receive(Kind::kAsk, frame); !received) return received.error();
  if (!parse(frame.text(), ask)) {
    (void)session.refuse("the request does not belong to this version's protocol").ok();
    return other_protocol();
  }
  fault_point("send.asked");
  Have have = newest_usable(here, ask);
  have.known = known;
  served.lacks = have.name.empty();
  served.behind = ask.behind;
  if (auto sent = session.send(Kind::kHave, to_text(have)); !sent) return sent.error();
  auto received = session.receive(frame);
  if (!received) return received.error();
  if (!received.value()) return served;
  const std::string name = frame.kind == Kind::kFetch ? frame.text() : "";
  const auto found = here.find(name);
  if (!found) {
    (void)session.refuse("there is no checkpoint " + name + " any more").ok();
    return served;
  }
  if (const auto fit = fits(found.value(), ask); !fit) {
    (void)session.refuse(fit.error().message()).ok();
    return served;
  }
  Outgoing outgoing(here);
  if (auto begun = outgoing.begin(name); !begun) {
    (void)session.refuse(begun.error().message()).ok();
    return begun.error();
  }
  served.name = name;
  if (auto sent = session.send(Kind::kManifest, outgoing.manifest_text()); !sent)
    return sent.error();
  fault_point("send.manifest");
  std::vector<std::byte> piece(transfer::kPieceMax);
  for (;;) {
    received = session.receive(frame);
    if (!received) return received.error();
    if (!received.value()) return served;
    Want want;
    const bool good = frame.kind == Kind::kWant && parse(frame.text(), want);
    if (!good || !is_part(outgoing.manifest(), want)) {
      (void)session.refuse("checkpoint " + name + " has no such part").ok();
      return failure(Code::kBadArgument, "listen",
                     "it requested a part that the checkpoint does not have");
    }
    const std::uint64_t before = bytes_before(outgoing.manifest(), want);
    const auto report = [&](std::uint64_t done) {
      here.report_bytes(before + done, outgoing.manifest().bytes());
    };
    if (auto given = send_part(session, outgoing, want, piece, served.bytes, report); !given) {
      return given.error();
    }
  }
}

Result<Fetched> fetch_newest(const Others& others, const Expected& expected, Index behind,
                             Checkpoints& here, const LogLine& say) {
  const auto begin = std::chrono::steady_clock::now();
  const Ask ask{expected, behind, here.arriving().name};
  std::vector<Offer> offers;
  std::string sentences;
  bool answered = false, known = false;
  const auto note = [&](int replica, const std::string& what) {
    sentences +=
        (sentences.empty() ? "replica " : "; replica ") + std::to_string(replica) + ": " + what;
  };
  for (const int replica : others.replicas) {
    Offer offer{replica, {}};
    const auto wire = others.dial(replica);
    const Outcome asked = wire ? ask_one(*wire.value(), ask, offer.have) : Outcome(wire.error());
    answered = answered || asked.ok();
    known = known || offer.have.known;
    if (asked && !offer.have.name.empty() && (offer.have.resumes || offer.have.index > behind)) {
      offers.push_back(std::move(offer));
    } else {
      note(replica, asked ? offer.have.why : asked.error().message());
    }
  }
  fault_point("fetch.answered");
  if (offers.empty()) {
    const Code code = known ? Code::kGone : answered ? Code::kNotFound : Code::kPeerFailed;
    return failure(code, "fetch a checkpoint", sentences);
  }
  std::stable_sort(offers.rbegin(), offers.rend());
  Error last{Code::kPeerFailed, 0, "fetch a checkpoint"};
  for (const Offer& offer : offers) {
    Fetched fetched;
    fetched.from = offer.replica;
    fetched.name = offer.have.resumes ? ask.resume : offer.have.name;
    const auto wire = others.dial(offer.replica);
    const Outcome received =
        wire ? fetch(*wire.value(), ask, fetched.name, here, fetched, say) : Outcome(wire.error());
    if (received) {
      fetched.ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now() - begin)
                       .count();
      return fetched;
    }
    note(offer.replica, received.error().message());
    last = received.error();
    if (last.code == Code::kPeerFailed) last.code = Code::kBusy;  // the peer has a checkpoint
    // Another replica's checkpoint would not help.
    if (last.code == Code::kFull || last.code == Code::kExists) break;
  }
  return failure(last.code, "fetch a checkpoint", sentences);
}

}  // namespace crane::checkpoint
