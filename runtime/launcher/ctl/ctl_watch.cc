// SPDX-License-Identifier: Apache-2.0
// The commands crane-ctl top and events.
#include <poll.h>
#include <unistd.h>

#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/events.h"
#include "runtime/launcher/ctl/plain_answers.h"
#include "runtime/launcher/ctl/top.h"

namespace crane::launcher {

using Json = nlohmann::json;

namespace {

int top(const Request& request) {
  constexpr int kBetweenMs = 2'000;
  const bool redraws = request.output == "table" && isatty(STDOUT_FILENO) != 0 && !request.once;
  Look before;
  for (;;) {
    std::vector<std::string> groups;
    if (const int bad = choose_groups(request, groups); bad != 0) return bad;
    Look now = look_at(request, groups);
    if (before.at_ns != 0) {
      const Json rates = rates_between(before, now);
      print((redraws ? "\033[H\033[2J" : "") + (request.output == "json"
                                                    ? rates.dump(request.once ? 2 : -1) + "\n"
                                                    : top_table(rates) + slowness_text(rates)));
      if (request.once) return 0;
    }
    before = std::move(now);
    poll(nullptr, 0, kBetweenMs);
  }
}

int show_events(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  std::string text;
  for (const auto& group : groups) {
    const std::string home = request.home_of(group);
    bool denied = false;
    const Json events = last_of(read_events(home, denied), static_cast<std::size_t>(request.last));
    if (denied) {
      setup::print_message("cannot read all events: " + home +
                           ": not permitted; run it as the user who started the group");
      return kNotPermitted;
    }
    if (request.output == "json") {
      text +=
          Json{{"version", control::kVersion}, {"group", group}, {"events", events}}.dump(2) + "\n";
    } else {
      if (groups.size() > 1) text += (text.empty() ? "" : "\n") + group + ":\n";
      text += events_table(events);
    }
  }
  print(text);
  return 0;
}

}  // namespace

Command top_command(Request& r) {
  return {"top",
          "rates, clients and processor time of each replica, every 2 seconds",
          {all_groups_word(r),
           output_word(r),
           {"--once", Word::Flag{&r.once}, "one table after 2 seconds"}},
          {},
          [&r] { return top(r); }};
}

Command events_command(Request& r) {
  return {"events",
          "what happened to the replicas of this machine, and when",
          {all_groups_word(r),
           output_word(r),
           {"-n,--last",
            &r.last,
            "number of the newest events (default {}: all)",
            {.bounds = {{0, 1'000'000}}}}},
          {},
          [&r] { return show_events(r); }};
}

}  // namespace crane::launcher
