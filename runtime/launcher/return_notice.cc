// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/return_notice.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "dmt/base/clock.h"
#include "dmt/base/read_text.h"
#include "runtime/launcher/node_setup.h"

namespace crane::launcher {
namespace {

using Json = nlohmann::json;

std::string file_of(const std::string& home) { return home + "/returning.json"; }

}  // namespace

void write_notice(const std::string& home, const supervise::WriteNotice& notice) {
  const Json text{{"why", notice.why},
                  {"attempts", notice.attempts},
                  {"next_unix_ms", unix_ms() + std::max<std::int64_t>(0, notice.in_ms)},
                  {"command", notice.command}};
  (void)write_file(file_of(home), text.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void remove_notice(const std::string& home) { (void)unlink(file_of(home).c_str()); }

Json read_notice(const std::string& home) {
  std::ifstream in(file_of(home));
  if (!in) return nullptr;
  Json notice = Json::parse(rest_of(in), nullptr, false);
  if (!notice.is_object()) return nullptr;
  const auto next = notice.find("next_unix_ms");
  const bool known = next != notice.end() && next->is_number_integer();
  notice["next_in_ms"] =
      known ? std::max<std::int64_t>(0, next->get<std::int64_t>() - unix_ms()) : 0;
  return notice;
}

}  // namespace crane::launcher
