// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/transfer_frame.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "checkpoint/json_members.h"
#include "dmt/base/assert.h"

namespace crane::checkpoint::transfer {
namespace {

using Json = nlohmann::json;

std::size_t longest(Kind kind) noexcept {
  switch (kind) {
    case Kind::kManifest:
      return kManifestMax;
    case Kind::kPiece:
      return kPieceMax;
    case Kind::kAsk:
    case Kind::kHave:
    case Kind::kFetch:
    case Kind::kWant:
    case Kind::kRefusal:
      return kTextMax;
  }
  return 0;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Decoded decode(std::span<const std::byte> in, Frame& out) noexcept {
  if (in.size() < kHeadBytes) return Decoded::kMore;
  std::uint32_t size = 0;
  std::memcpy(&size, in.data(), sizeof size);
  const auto kind = static_cast<Kind>(in[sizeof size]);
  const std::size_t most = longest(kind);
  if (most == 0 || size > most || (size == 0 && kind == Kind::kPiece)) return Decoded::kBad;
  if (in.size() - kHeadBytes < size) return Decoded::kMore;
  out = {kind, in.subspan(kHeadBytes, size), kHeadBytes + size};
  return Decoded::kFrame;
}

void encode(std::vector<std::byte>& out, Kind kind, std::span<const std::byte> body) {
  CRANE_ASSERT(body.size() <= longest(kind));
  const auto size = static_cast<std::uint32_t>(body.size());
  const auto head = std::as_bytes(std::span(&size, 1));
  out.insert(out.end(), head.begin(), head.end());
  out.push_back(static_cast<std::byte>(kind));
  out.insert(out.end(), body.begin(), body.end());
}

void encode(std::vector<std::byte>& out, Kind kind, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  encode(out, kind, kind == Kind::kRefusal ? bytes.first(std::min(bytes.size(), kTextMax)) : bytes);
}

std::string to_text(const Ask& a) {
  return dump({{"group", a.expected.group},
               {"log", a.expected.log_digest},
               {"layout_version", a.expected.layout_version},
               {"program", a.expected.program},
               {"behind", value(a.behind)},
               {"resume", a.resume}});
}

std::string to_text(const Have& h) {
  return dump({{"name", h.name},
               {"index", value(h.index)},
               {"bytes", h.bytes},
               {"resumes", h.resumes},
               {"known", h.known},
               {"why", h.why}});
}

std::string to_text(const Want& w) {
  return dump({{"file", w.file}, {"offset", w.offset}, {"bytes", w.bytes}});
}

bool parse(const std::string& text, Ask& to) {
  const Json json = Json::parse(text, nullptr, false);
  JsonMembers m(json);
  std::uint64_t behind = 0;
  m.get("group", to.expected.group);
  m.get("log", to.expected.log_digest);
  m.get("layout_version", to.expected.layout_version);
  m.get("program", to.expected.program);
  m.get("behind", behind);
  m.get("resume", to.resume);
  to.behind = Index{behind};
  // An empty field would mean any (manifest.h), so only a stranger sends one.
  return m.ok() && to.expected.layout_version != 0 && !to.expected.group.empty() &&
         !to.expected.log_digest.empty() && !to.expected.program.empty();
}

bool parse(const std::string& text, Have& to) {
  const Json json = Json::parse(text, nullptr, false);
  JsonMembers m(json);
  std::uint64_t at = 0, view = 0, index = 0;
  m.get("name", to.name);
  m.get("index", at);
  m.get("bytes", to.bytes);
  m.get("resumes", to.resumes);
  m.get("known", to.known);
  m.get("why", to.why);
  to.index = Index{at};
  return m.ok() && (to.name.empty() || (parse_name(to.name, view, index) && index == at));
}

bool parse(const std::string& text, Want& to) {
  const Json json = Json::parse(text, nullptr, false);
  JsonMembers m(json);
  m.get("file", to.file);
  m.get("offset", to.offset);
  m.get("bytes", to.bytes);
  return m.ok() && is_pack_name(to.file) && to.bytes > 0;
}

}  // namespace crane::checkpoint::transfer
