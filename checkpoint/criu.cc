// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/criu.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "checkpoint/protobuf.h"
#include "dmt/base/descriptor_limit.h"
#include "dmt/base/read_text.h"
#include "dmt/base/shell_word.h"

namespace crane::checkpoint {
namespace {

constexpr const char* kLog = "criu.log";
constexpr const char* kOutput = "criu.out";  // the program's own output, before its log begins
// The largest file without a name that the images may contain.
constexpr std::uint32_t kUnnamedFileMax = 1U << 30;
constexpr int kFirstInherited = 3;
constexpr int kScratchFd = 100;  // above all inherited descriptors
constexpr int kExecFailed = 127;
constexpr std::uint64_t kDumpMessage = 1, kNotifyMessage = 6;  // types of CRIU's messages

// The meaning of CRIU's usual complaints, for a user who does not know CRIU.
struct Complaint {
  const char* piece;
  const char* meaning;
  bool lasting = false;  // caused by the kind of server, not by a momentary state
};
constexpr Complaint kComplaints[] = {
    {"[io_uring]", "a process has an io_uring", true},
    {"[userfaultfd]", "a process has a userfaultfd", true},
    {"[perf_event]", "a process has a performance counter", true},
    {"External socket is used", "a unix socket is connected to a process outside", true},
    {"Can't lookup mount",
     "a file is on no mount of the server, like a POSIX message queue, or a program that is on an "
     "overlay of an overlay (in a container image: CRANE_ROOT of crane-entry)",
     true},
    {"Can't dump ghost file", "a file without a name is too big", true},
    {"fsnotify: Can't dump that handle", "a process watches files with inotify or fanotify", true},
    {"send_fds failed", "a process has a descriptor that cannot be passed on, like an io_uring",
     true},
    {"Can't open sysctl",
     "settings below /proc/sys are read-only here (a container that is not privileged)"},
    {"monotonic clock offset", "the capability sys_time is missing here"},
    {"in-flight socket", "a connection between processes of the server is still being set up"},
    {"Unexpected EOF", "an image is missing or cut short"},
    {"magic doesn't match", "an image is damaged"},
    {"has bad size", "a mapped file has another size than at the time of the dump"},
};

// Not a reason for a failure: printed on machines that withhold CAP_SYS_RESOURCE; CRIU continues.
constexpr std::string_view kHarmless[] = {"Can't setup RLIMIT_NOFILE for self"};

bool executable(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// "(00.085902)      1: Error (criu/files.c:1221): Unable to open" -> "Unable to open"
std::optional<std::string> complaint_in(const std::string& line) {
  constexpr std::string_view kError = "Error (";
  const auto error = line.find(kError);
  if (error == std::string::npos) return std::nullopt;
  const auto text = line.find("): ", error);
  if (text == std::string::npos) return std::nullopt;
  for (const auto harmless : kHarmless) {
    if (line.find(harmless) != std::string::npos) return std::nullopt;
  }
  return line.substr(text + 3);
}

std::vector<std::string> arguments(const std::string& program, const CriuCall& call) {
  if (call.kind == CriuCall::Kind::kDump) {
    return {program, "swrk", std::to_string(kFirstInherited)};
  }
  std::vector<std::string> words = {program, "restore", "--no-default-config"};
  const auto add = [&words](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  add({"--images-dir", call.images, "--work-dir", call.work, "--log-file", kLog, "-v1"});
  add({"--manage-cgroups=ignore", "--file-locks"});
  for (const auto& key : call.externals) add({"--external", key});
  // A sibling of CRIU is a child of the supervisor: the supervisor sees its end, and it dies with
  // the supervisor.
  add({"--root", call.root, "--restore-detached", "--restore-sibling", "--pidfile", "pid"});
  // LXC changes the mode of a container's standard output.
  add({"--skip-file-rwx-check"});
  int fd = kFirstInherited;
  for (const auto& file : call.inherited) {
    add({"--inherit-fd", "fd[" + std::to_string(fd++) + "]:" + file.key});
  }
  return words;
}

[[noreturn]] void become_criu(const std::vector<std::string>& words, const CriuCall& call,
                              int channel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A restored process gets CRIU's personality; its children must get equal addresses.
  if (call.kind == CriuCall::Kind::kRestore) personality(ADDR_NO_RANDOMIZE);
  setpgid(0, 0);
  // CRIU uses numbers beyond those of the processes it restores (container.cc leaves some).
  limit_descriptors(RLIM_INFINITY);
  signal(SIGPIPE, SIG_DFL);
  std::vector<int> high;
  if (channel >= 0) high.push_back(fcntl(channel, F_DUPFD, kScratchFd));
  for (const auto& file : call.inherited) high.push_back(fcntl(file.fd, F_DUPFD, kScratchFd));
  const int output = open((call.work + "/" + kOutput).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(output, 2);
  int fd = kFirstInherited;
  for (const int source : high) dup2(source, fd++);
  close_range(static_cast<unsigned>(fd), ~0U, 0);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // CRIU searches it for tar; the caller's may be long.
  setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  execv(argv[0], argv.data());
  _exit(kExecFailed);
}

}  // namespace

Result<std::string> find_criu() {
  if (const char* named = std::getenv("CRANE_CRIU"); named != nullptr && *named != '\0') {
    if (executable(named)) return std::string(named);
    return Error{Code::kNotFound, 0, "CRANE_CRIU does not name an executable program"};
  }
  std::error_code unknown;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  for (const std::string& ours :
       {self.parent_path().string() + "/criu/criu", std::string(kFetchedCriu) + "/criu"}) {
    if (executable(ours)) return ours;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && executable(folder + "/criu")) return folder + "/criu";
  }
  return Error{Code::kNotFound, 0, "no CRIU is installed (get_criu.sh of Crane gets one)"};
}

Result<std::string> criu_version(const std::string& program) {
  std::FILE* output = popen((shell_word(program) + " --version 2>/dev/null").c_str(), "re");
  if (output == nullptr) return system_error("run criu --version");
  char line[128], version[64] = "";
  while (std::fgets(line, sizeof line, output) != nullptr) {
    (void)std::sscanf(line, "Version: %63s", version);
  }
  pclose(output);
  if (version[0] == '\0') return Error{Code::kSystem, 0, "criu --version prints no version"};
  return std::string(version);
}

Result<pid_t> start_criu(const std::string& program, const CriuCall& call, int channel) {
  const auto words = arguments(program, call);
  const pid_t child = fork();
  if (child == 0) become_criu(words, call, channel);
  if (child < 0) return system_error("fork");
  return child;
}

std::string criu_refusal(const std::string& work) {
  std::string reason, last;
  for (const char* name : {kLog, kOutput}) {
    std::ifstream file(work + "/" + name);
    for (std::string line; reason.empty() && std::getline(file, line);) {
      if (auto found = complaint_in(line)) reason = *found;
      if (!line.empty()) last = line;
    }
  }
  if (reason.empty()) reason = last.empty() ? "it left no message" : last;
  for (const auto& complaint : kComplaints) {
    if (reason.find(complaint.piece) != std::string::npos) {
      return std::string(complaint.meaning) + " (CRIU: " + reason + ")";
    }
  }
  return "CRIU: " + reason;
}

bool is_lasting(std::string_view refusal) {
  return std::any_of(std::begin(kComplaints), std::end(kComplaints), [&](const Complaint& c) {
    return c.lasting && refusal.starts_with(c.meaning);
  });
}

CriuStats criu_stats(const std::string& work) {
  CriuStats stats;
  const auto read = [&work](const char* name, std::uint64_t part) -> std::string {
    constexpr std::size_t kHead = 12;  // two magic numbers and the size
    const std::string kept = text_of_file(work + "/" + name);
    if (kept.size() < kHead) return "";
    const auto found = find_field(std::string_view(kept).substr(kHead), part);
    return found ? std::string(found->bytes) : "";
  };
  const auto number = [](const std::string& text, std::uint64_t field) -> std::int64_t {
    const auto found = find_field(text, field);
    return found ? static_cast<std::int64_t>(found->value) : -1;
  };
  const std::string dump = read("stats-dump", 1), restore = read("stats-restore", 2);
  stats.stopping = number(dump, 1);
  stats.frozen = number(dump, 2);
  const std::int64_t read_us = number(dump, 3), written_us = number(dump, 4);
  if (read_us >= 0) stats.memory = read_us + std::max<std::int64_t>(written_us, 0);
  stats.forking = number(restore, 3);
  stats.restore = number(restore, 4);
  return stats;
}

// --- the conversation of a dump: fields of criu_req, criu_opts, criu_resp and criu_notify --------

std::string dump_request(const CriuCall& call, int images, int work) {
  std::string options;
  put_number(options, 1, static_cast<std::uint64_t>(images));
  put_number(options, 2, static_cast<std::uint64_t>(call.first));
  put_number(options, 3, 1);  // leave the server running
  put_number(options, 8, 1);  // file locks
  put_number(options, 9, 1);  // log: errors
  put_bytes(options, 10, kLog);
  put_number(options, 12, 1);  // send notifications
  put_number(options, 17, static_cast<std::uint64_t>(work));
  put_number(options, 18, 1);  // make a name for a file without one
  put_number(options, 34, 0);  // control groups: ignored
  put_number(options, 35, kUnnamedFileMax);
  for (const auto& key : call.externals) put_bytes(options, 37, key);
  put_number(options, 64, 3);  // the network is not locked: nothing comes through it
  std::string request;
  put_number(request, 1, kDumpMessage);
  put_bytes(request, 2, options);
  return request;
}

CriuMessage parse_criu_message(std::string_view message) {
  using What = CriuMessage::What;
  const auto type = find_field(message, 1), well = find_field(message, 2);
  if (!type || !well || well->value == 0) return {What::kRefused};
  if (type->value == kDumpMessage) return {What::kDone};
  const auto notification = find_field(message, 5);
  const auto place = notification ? find_field(notification->bytes, 1) : std::nullopt;
  if (type->value != kNotifyMessage || !place) return {What::kRefused};
  if (place->bytes == "pre-dump") return {What::kReady};
  if (place->bytes == "network-lock") return {What::kStopped};
  if (place->bytes == "post-dump") return {What::kDumped};
  return {What::kOther};
}

std::string criu_answer(bool go_on) {
  std::string answer;
  put_number(answer, 1, kNotifyMessage);
  put_number(answer, 3, go_on ? 1 : 0);
  return answer;
}

std::string external_key(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return "";
  const auto inode = static_cast<unsigned long long>(info.st_ino);
  if (S_ISFIFO(info.st_mode)) return "pipe:[" + std::to_string(inode) + "]";
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) return "";
  std::ifstream about("/proc/self/fdinfo/" + std::to_string(fd));
  unsigned mount = 0;
  for (std::string line; std::getline(about, line);) {
    if (std::sscanf(line.c_str(), "mnt_id: %u", &mount) == 1) break;
  }
  char key[64];
  std::snprintf(key, sizeof key, "file[%x:%llx]", mount, inode);
  return key;
}

}  // namespace crane::checkpoint
