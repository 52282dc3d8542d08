// SPDX-License-Identifier: Apache-2.0
#pragma once
// What two replicas say to each other when one fetches a checkpoint of the other's: pure functions
// between bytes and messages, no I/O, no state.
//
//   receiver                            sender
//   kAsk    what it could use      ->
//                                  <-   kHave      the newest of that, or why none
//   kFetch  a name                 ->
//                                  <-   kManifest  its text
//   kWant   a file, from, how much ->
//                                  <-   kPiece ... so many bytes of it, in pieces
//   kWant   ...                    ->
//   (ends the connection)
//
// At any place of the sender's: kRefusal, a sentence; the connection is of no more use.
//
// A frame is its body's size (4 bytes, little-endian), its kind (1 byte), and the body.  decode()
// is what a fuzzer should call: any bytes whatever give kMore, kFrame or kBad.
//
// Threads: pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/manifest.h"

namespace crane::checkpoint::transfer {

enum class Kind : std::uint8_t { kAsk = 1, kHave, kFetch, kManifest, kWant, kPiece, kRefusal };

inline constexpr std::size_t kHeadBytes = 5;
inline constexpr std::size_t kPieceMax = 256U << 10;
inline constexpr std::size_t kTextMax = 16U << 10;

struct Frame {
  Kind kind{};
  std::span<const std::byte> body;
  std::size_t bytes = 0;  // head and body
  std::string text() const { return {reinterpret_cast<const char*>(body.data()), body.size()}; }
};

enum class Decoded : std::uint8_t { kMore, kFrame, kBad };
// Looks at the beginning of `in`.  kMore: it is not whole yet.  kBad: no frame begins like that.
Decoded decode(std::span<const std::byte> in, Frame& out) noexcept;
// Appends one.  REQUIRES: the body is not longer than its kind may be.
void encode(std::vector<std::byte>& out, Kind kind, std::span<const std::byte> body);
void encode(std::vector<std::byte>& out, Kind kind, std::string_view text);

struct Ask {
  Expected expected;   // what the receiver is
  Index behind{};      // it needs one at a later entry
  std::string resume;  // the name of one of which it has a part already; empty: of none
  friend bool operator==(const Ask&, const Ask&) = default;
};
struct Have {
  std::string name;  // the newest that can be used; empty: none
  Index index{};
  std::uint64_t bytes = 0;
  bool resumes = false;  // it has Ask::resume as well, and that can be used
  bool known = false;    // the sender's group has heard of this receiver before
  std::string why;       // a sentence, when there is none
  friend bool operator==(const Have&, const Have&) = default;
};
struct Want {
  std::string file;
  std::uint64_t offset = 0, bytes = 0;
  friend bool operator==(const Want&, const Want&) = default;
};

std::string to_text(const Ask& ask);
std::string to_text(const Have& have);
std::string to_text(const Want& want);
// False: it is none.
bool parse(const std::string& text, Ask& to);
bool parse(const std::string& text, Have& to);
bool parse(const std::string& text, Want& to);

}  // namespace crane::checkpoint::transfer
