// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/findings.h"

#include <algorithm>
#include <utility>

#include "proxy/replay/replay_valgrind.h"

namespace crane::node {
namespace {

constexpr std::size_t kLineMax = 64 * 1024;
constexpr std::size_t kFramesMax = 12;
constexpr std::size_t kKnownMax = 100'000;

// "   at 0x109398: work (server.c:24)" and "   by ...": "work (server.c:24)"; else empty.
std::string_view frame_of(std::string_view report_text) {
  const bool is_frame = report_text.starts_with("   at 0x") || report_text.starts_with("   by 0x");
  const auto colon = report_text.find(": ");
  return is_frame && colon != std::string_view::npos ? report_text.substr(colon + 2)
                                                     : std::string_view{};
}

// Removes threads and addresses, which do not make a finding new.
std::string_view without_places(std::string_view head) {
  for (const char* word : {" at 0x", " by thread", " is at 0x", ": 0x"}) {
    head = head.substr(0, head.find(word));
  }
  return head;
}

// Whether the frame is wrapper code of the tool or of Crane, and so not the place of the finding.
bool is_wrapper(std::string_view frame) {
  return frame.find("vgpreload_") != std::string_view::npos ||
         frame.find("hg_intercepts.c") != std::string_view::npos ||
         frame.find("vg_replace_") != std::string_view::npos ||
         frame.find("libcrane.so") != std::string_view::npos;
}

}  // namespace

void Findings::take(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) {
      if (rest_.size() + text.size() <= kLineMax) rest_ += text;
      return;
    }
    rest_ += text.substr(0, end);
    text.remove_prefix(end + 1);
    take_line(rest_);
    rest_.clear();
  }
}

void Findings::take_line(std::string_view line) {
  // "==<process>== <text>"
  if (!line.starts_with("==")) return;
  const auto mark = line.find("==", 2);
  if (mark == std::string_view::npos) return;
  const std::string_view process = line.substr(2, mark - 2);
  const bool named = !process.empty() && std::all_of(process.begin(), process.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
  if (!named) return;
  report_.append(line).append("\n");
  std::string_view report_text = line.substr(mark + 2);
  if (report_text.starts_with(' ')) report_text.remove_prefix(1);
  auto at = open_.find(process);
  const std::string_view frame = frame_of(report_text);
  if (at != open_.end() && !frame.empty()) {
    if (at->second.frames.size() < kFramesMax) at->second.frames.emplace_back(frame);
    return;
  }
  // The first stack of a report is the place; later stacks describe the other side.
  if (at != open_.end() && (!at->second.frames.empty() || begins_report(report_text))) {
    close(at->second);
    open_.erase(at);
  }
  if (!begins_report(report_text)) return;
  ++reports_;
  open_[std::string(process)] = Open{std::string(without_places(report_text)), {}};
}

void Findings::close(const Open& open) {
  std::vector<std::string_view> own;
  for (const std::string& f : open.frames) {
    if (!is_wrapper(f)) own.emplace_back(f);
  }
  if (own.empty()) own.assign(open.frames.begin(), open.frames.end());
  std::string what = open.what;
  if (!own.empty()) what.append(" at ").append(own[0]);
  if (known_.size() >= kKnownMax || !known_.insert(what).second) return;
  ++count_;
  if (own.size() > 1) what.append(", called from ").append(own[1]);
  fresh_.push_back(std::move(what));
}

std::vector<std::string> Findings::fresh() { return std::exchange(fresh_, {}); }

std::string Findings::report() { return std::exchange(report_, {}); }

}  // namespace crane::node
