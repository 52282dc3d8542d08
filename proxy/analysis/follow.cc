// SPDX-License-Identifier: Apache-2.0
#include "proxy/analysis/follow.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "proxy/analysis/findings.h"

namespace crane::node {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kReadBytes = 64 * 1024;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

class ReportWriter {
 public:
  explicit ReportWriter(const FollowRequest& request) : json_(request.json) {
    if (request.log.empty()) return;
    // A new file, because another process may still write to the old one or read it.
    ::unlink(request.log.c_str());
    report_ = ::open(request.log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (report_ < 0) failure_ = request.log + ": " + std::strerror(errno);
  }
  ~ReportWriter() {
    if (report_ >= 0) ::close(report_);
    if (server_log_ >= 0) ::close(server_log_);
  }
  ReportWriter(const ReportWriter&) = delete;
  ReportWriter& operator=(const ReportWriter&) = delete;

  const std::string& failure() const { return failure_; }

  void report_progress(const ReplayProgress& progress) {
    read_log(*progress.config);
    for (const std::string& text : findings_.fresh()) {
      ++findings_written_;
      print_record({{"t", "finding"}, {"number", findings_written_}, {"text", text}},
                   fmt::format("finding {}: {}", findings_written_, text));
    }
    if (progress.difference && !std::exchange(differs_, true)) {
      print_record({{"t", "differs"},
                    {"index", progress.difference->index},
                    {"text", progress.difference->text}},
                   fmt::format("differs at entry {}: {}", progress.difference->index,
                               progress.difference->text));
    }
    Json now{{"t", "progress"},
             {"entry", progress.entry},
             {"position", progress.position},
             {"findings", findings_.count()},
             {"reports", findings_.reports()},
             {"digests", progress.digests},
             {"equal_to", progress.equal_cut}};
    if (now == last_) return;
    last_ = now;
    print_record(
        now, fmt::format("entry {}: {} findings, {} digests equal, the last at entry {}",
                         progress.entry, findings_.count(), progress.digests, progress.equal_cut));
  }

  void print_record(const Json& object, const std::string& text) const {
    const std::string line =
        json_ ? object.dump(-1, ' ', false, Json::error_handler_t::replace) : text;
    write_all(STDOUT_FILENO, line + "\n");
  }

 private:
  void read_log(const Config& config) {
    if (server_log_ < 0) {
      server_log_ = ::open((config.replica_dir() + "/server.log").c_str(), O_RDONLY | O_CLOEXEC);
    }
    std::vector<char> bytes(kReadBytes);
    for (ssize_t n;
         server_log_ >= 0 && (n = ::read(server_log_, bytes.data(), bytes.size())) > 0;) {
      findings_.take({bytes.data(), static_cast<std::size_t>(n)});
      keep(findings_.report());
    }
  }

  void keep(const std::string& text) {
    if (report_ < 0 || kept_ >= kFollowReportMax || text.empty()) return;
    kept_ += text.size();
    write_all(report_, text);
    if (kept_ < kFollowReportMax) return;
    write_all(report_, "The report ends here: it has become too long.\n");
  }

  const bool json_;
  int report_ = -1, server_log_ = -1;
  std::uint64_t kept_ = 0, findings_written_ = 0;
  std::string failure_;
  Findings findings_;
  bool differs_ = false;
  Json last_;
};

}  // namespace

ReplayStatus follow_history(const FollowRequest& request) {
  ReportWriter writer(request);
  const auto end = [&](ReplayStatus status, const std::string& why) {
    writer.print_record({{"t", "end"}, {"status", static_cast<int>(status)}, {"text", why}},
                        why.empty() ? "the history has ended" : "ended: " + why);
    return status;
  };
  if (!writer.failure().empty()) return end(ReplayStatus::kNotHere, writer.failure());
  LoadedRecording loaded;
  if (const auto problem = load_growing(request.directory, request.replica, loaded); !problem) {
    return end(status_of(problem), problem.error().text);
  }
  ReplayRequest replay;
  replay.valgrind = request.valgrind;
  replay.verbose = request.verbose;
  replay.place_dir = request.place_dir;
  replay.place_name = request.place_name;
  replay.on_progress = [&](const ReplayProgress& progress) { writer.report_progress(progress); };
  const ReplayReport report = run_replay(loaded, std::move(replay));
  if (!report.problem) return end(status_of(report.problem), report.problem.error().text);
  return end(report.verdict, "");
}

}  // namespace crane::node
