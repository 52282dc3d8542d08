// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages of two replicas when one fetches a checkpoint from the other: pure functions between
// bytes and messages, no I/O, no state.
//
//   receiver                            sender
//   kAsk    what it could use      ->
//                                  <-   kHave      the newest usable one, or why none
//   kFetch  a name                 ->
//                                  <-   kManifest  its text
//   kWant   file, offset, size     ->
//                                  <-   kPiece ... that many bytes of it, in pieces
//   kWant   ...                    ->
//   (ends the connection)
//
// In place of any answer the sender may send kRefusal, a sentence; both then close the connection.
//
// A frame is its body's size (4 bytes, little-endian), its kind (1 byte), and the body.  Fuzzers
// call decode(): any bytes give kMore, kFrame or kBad.
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
// Decodes the frame at the beginning of `in`. kMore: it is not complete yet. kBad: no frame begins
// like that.
Decoded decode(std::span<const std::byte> in, Frame& out) noexcept;
// Appends a frame.  REQUIRES: the body is not longer than its kind allows.
void encode(std::vector<std::byte>& out, Kind kind, std::span<const std::byte> body);
void encode(std::vector<std::byte>& out, Kind kind, std::string_view text);

struct Ask {
  Expected expected;   // the receiver's properties
  Index behind{};      // the receiver needs a checkpoint at a later entry
  std::string resume;  // name of a checkpoint that it has in part; empty: none
  friend bool operator==(const Ask&, const Ask&) = default;
};
struct Have {
  std::string name;  // the newest usable one; empty: none
  Index index{};
  std::uint64_t bytes = 0;
  bool resumes = false;  // the sender also has Ask::resume, and it is usable
  bool known = false;    // the sender's group has had contact with the receiver before
  std::string why;       // a sentence, when `name` is empty
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
// False: the text is invalid.
bool parse(const std::string& text, Ask& to);
bool parse(const std::string& text, Have& to);
bool parse(const std::string& text, Want& to);

}  // namespace crane::checkpoint::transfer
