// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/transfer_frame.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

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

// Reads the members that a message must have; good() if all exist with their types.
class Reader {
 public:
  explicit Reader(const std::string& text) : json_(Json::parse(text, nullptr, false)) {
    good_ = json_.is_object();
  }
  void get(const char* name, std::string& to) {
    if (const Json* at = find(name, &Json::is_string)) to = at->get<std::string>();
  }
  void get(const char* name, std::uint64_t& to) {
    if (const Json* at = find(name, &Json::is_number_unsigned)) to = at->get<std::uint64_t>();
  }
  void get(const char* name, bool& to) {
    if (const Json* at = find(name, &Json::is_boolean)) to = at->get<bool>();
  }
  void get(const char* name, Index& to) {
    std::uint64_t number = 0;
    get(name, number);
    to = Index{number};
  }
  bool good() const { return good_; }

 private:
  const Json* find(const char* name, bool (Json::*is)() const noexcept) {
    if (!good_) return nullptr;
    const auto at = json_.find(name);
    good_ = at != json_.end() && ((*at).*is)();
    return good_ ? &*at : nullptr;
  }
  Json json_;
  bool good_ = false;
};

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
  Reader r(text);
  std::uint64_t layout = 0;
  r.get("group", to.expected.group);
  r.get("log", to.expected.log_digest);
  r.get("layout_version", layout);
  r.get("program", to.expected.program);
  r.get("behind", to.behind);
  r.get("resume", to.resume);
  to.expected.layout_version = static_cast<std::uint32_t>(layout);
  // An empty field would mean any (manifest.h), so only a stranger sends one.
  return r.good() && layout != 0 && layout <= UINT32_MAX && !to.expected.group.empty() &&
         !to.expected.log_digest.empty() && !to.expected.program.empty();
}

bool parse(const std::string& text, Have& to) {
  Reader r(text);
  r.get("name", to.name);
  r.get("index", to.index);
  r.get("bytes", to.bytes);
  r.get("resumes", to.resumes);
  r.get("known", to.known);
  r.get("why", to.why);
  std::uint64_t view = 0, index = 0;
  return r.good() &&
         (to.name.empty() || (parse_name(to.name, view, index) && Index{index} == to.index));
}

bool parse(const std::string& text, Want& to) {
  Reader r(text);
  r.get("file", to.file);
  r.get("offset", to.offset);
  r.get("bytes", to.bytes);
  return r.good() && is_pack_name(to.file) && to.bytes > 0;
}

}  // namespace crane::checkpoint::transfer
