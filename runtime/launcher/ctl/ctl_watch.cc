// SPDX-License-Identifier: Apache-2.0
// The commands crane-ctl top and events.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "runtime/control/journal.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/events.h"
#include "runtime/launcher/ctl/plain_answers.h"
#include "runtime/launcher/ctl/reach.h"
#include "runtime/launcher/ctl/starter.h"
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

constexpr int kEventsMost = 1000;  // in one request

// Adds the events of the replicas on other hosts, as far as their nodes answer.  Returns 0, or the
// exit status after a message for each one that did not.
int add_far_events(const Request& request, const std::string& group, Json& events) {
  const auto reach = reach_of(request, group);
  std::set<int> far;
  for (const int replica : reach->replicas()) {
    if (!is_here(request, group, replica)) far.insert(replica);
  }
  if (far.empty()) return 0;
  const int last = request.last == 0 ? kEventsMost : std::min(request.last, kEventsMost);
  int status = 0;
  for (const auto& [replica, got] :
       reach->ask(far, Json{{"do", "events"}, {"last", last}}.dump())) {
    const std::string name = "replica " + std::to_string(replica);
    const RequestResult result = answer_of(group, replica, got);
    if (result.status != 0) {
      setup::print_message("events are missing: " + result.message);
      status = static_cast<int>(Health::kDegraded);
      continue;
    }
    add_events(events, control::list_in(result.answer, "events"));
    const bool all = control::flag_in(result.answer, "all", true);
    if (request.last == 0 && !all) {
      setup::print_message("older events of " + name + " are on its host only: events.jsonl");
    }
  }
  return status;
}

int show_events(const Request& request) {
  std::vector<std::string> groups;
  if (const int bad = choose_groups(request, groups); bad != 0) return bad;
  std::string text;
  int status = 0;
  for (const auto& group : groups) {
    bool denied = false;
    const std::string home = request.context ? "" : request.home_of(group);
    Json events = request.context ? Json::array() : read_events(home, denied);
    if (denied) {
      setup::print_message("cannot read all events: " + home +
                           ": not permitted; run it as the user who started the group");
      return kNotPermitted;
    }
    status = std::max(status, add_far_events(request, group, events));
    events = control::last_of(events, static_cast<std::size_t>(request.last));
    if (request.output == "json") {
      text +=
          Json{{"version", control::kVersion}, {"group", group}, {"events", events}}.dump(2) + "\n";
    } else {
      if (groups.size() > 1) text += (text.empty() ? "" : "\n") + group + ":\n";
      text += events_table(events);
    }
  }
  print(text);
  return status;
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
          "what happened to the replicas, and when",
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
