// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads the members that a JSON object must have, for manifests and messages.
//
// Threads: one object, one thread.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace crane::checkpoint {

// ok() after the last call: the object exists, and has all requested members with their types.
class JsonMembers {
 public:
  // REQUIRES: `json` outlives this object.
  explicit JsonMembers(const nlohmann::json& json) : json_(json), ok_(json.is_object()) {}

  void get(const char* name, std::string& to) {
    if (const auto* at = find(name, &nlohmann::json::is_string)) to = at->get<std::string>();
  }
  void get(const char* name, bool& to) {
    if (const auto* at = find(name, &nlohmann::json::is_boolean)) to = at->get<bool>();
  }
  template <typename Integer>
  void get(const char* name, Integer& to) {
    constexpr auto is = std::is_unsigned_v<Integer> ? &nlohmann::json::is_number_unsigned
                                                    : &nlohmann::json::is_number_integer;
    if (const auto* at = find(name, is)) {
      to = at->template get<Integer>();
      ok_ = *at == to;  // it fits
    }
  }
  // A number as a text of at most 16 hexadecimal digits.
  void get_hexadecimal(const char* name, std::uint64_t& to) {
    std::string text;
    get(name, text);
    char* end = nullptr;
    to = std::strtoull(text.c_str(), &end, 16);
    if (text.empty() || text.size() > 16 || *end != '\0') ok_ = false;
  }
  // nullptr: it is missing, or of another type.
  const nlohmann::json* array(const char* name) { return find(name, &nlohmann::json::is_array); }
  const nlohmann::json* object(const char* name) { return find(name, &nlohmann::json::is_object); }
  bool ok() const { return ok_; }

 private:
  const nlohmann::json* find(const char* name, bool (nlohmann::json::*is)() const noexcept) {
    const auto at = ok_ ? json_.find(name) : json_.end();
    ok_ = ok_ && at != json_.end() && ((*at).*is)();
    return ok_ ? &*at : nullptr;
  }

  const nlohmann::json& json_;
  bool ok_;
};

}  // namespace crane::checkpoint
