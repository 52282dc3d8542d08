// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sentences that answer an operator's question from what crane-ctl's tables contain: whether this
// host may be rebooted (status), why the group is slow (top), what lasts (list).
//
// Threads: plain functions; only lasting_of() reads a file.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace crane::launcher {

// "reboot of this host: yes: ...\n", from the summary of crane-ctl status; "": no node answers.
std::string reboot_text(const nlohmann::json& summary);

// One line per group, from the rows of crane-ctl top: "shop: not slow: ...\n" or
// "shop: slow: CAUSE\n".
std::string slowness_text(const nlohmann::json& rates);

// What outlives the group with this directory, for crane-ctl list: "log, /var/lib/redis" or
// "nothing".  `durability`: as its nodes report it.
std::string lasting_of(const std::string& home, const std::string& durability);

}  // namespace crane::launcher
