// SPDX-License-Identifier: Apache-2.0
// GOAL    Crane parses any message of CRIU, and sends requests that CRIU can read.
// METHOD  Hand-made messages, cut at every place, with bytes of every value.  No CRIU runs;
//         orphan.c plays a CRIU that is killed.
// CHECKS  protobuf.h, the conversation of criu.h, and what criu_shim.c does with CRIU's sleeps.
#include "checkpoint/criu.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/orphans.h"
#include "checkpoint/protobuf.h"
#include "tests/unit/waiting.h"

using namespace crane::checkpoint;
using crane::test::eventually;
using crane::test::slurp;
using What = CriuMessage::What;

namespace {

constexpr int kLimitMs = 20'000;

std::string notification(const std::string& place) {
  std::string notify, message;
  put_bytes(notify, 1, place);
  put_number(message, 1, 6);
  put_number(message, 2, 1);
  put_bytes(message, 5, notify);
  return message;
}

std::string response(unsigned type, bool well) {
  std::string message;
  put_number(message, 1, type);
  put_number(message, 2, well ? 1 : 0);
  return message;
}

// The name that criu_shim.c gives.
std::string directory_of(pid_t pid, const std::string& family) {
  static const std::string kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string digits;
  for (int i = 0; i < 4; ++i, pid /= 62) {
    digits.insert(digits.begin(), kDigits[static_cast<std::size_t>(pid % 62)]);
  }
  return "/tmp/" + family + "cr" + digits;
}

pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

}  // namespace

TEST_CASE("criu: only the empty directories of a CRIU that has ended are removed", "[criu]") {
  const pid_t gone = ended_process();
  const std::string left[] = {directory_of(gone, ".criu.test."), directory_of(gone, "cr-tmpfs.")};
  const std::string kept[] = {
      directory_of(getpid(), ".criu.test."), directory_of(gone, "another-program."),
      directory_of(gone, ".criu.x.") + "y", directory_of(gone, ".criu.full.")};
  for (const auto& path : left) REQUIRE(mkdir(path.c_str(), 0700) == 0);
  for (const auto& path : kept) REQUIRE(mkdir(path.c_str(), 0700) == 0);
  std::ofstream(kept[3] + "/file") << "x";
  remove_directories_of_criu();
  for (const auto& path : left) CHECK_FALSE(std::filesystem::exists(path));
  for (const auto& path : kept) CHECK(std::filesystem::exists(path));
  for (const auto& path : kept) std::filesystem::remove_all(path);
}

TEST_CASE("criu: the children with which it tests the kernel end with it", "[criu]") {
  const std::filesystem::path built = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string shim = built / "criu/criu_shim.so", program = built / "unit/checkpoint/orphan";
  if (!std::filesystem::exists(shim)) {
    std::printf("SKIPPED: criu: children: no %s\n", shim.c_str());
    return;
  }
  const bool late = GENERATE(false, true);  // true: it sleeps after its parent's end
  int out[2];
  REQUIRE(pipe(out) == 0);
  const pid_t parent = fork();
  if (parent == 0) {
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    setenv("LD_PRELOAD", shim.c_str(), 1);
    execl(program.c_str(), program.c_str(), late ? "late" : nullptr, nullptr);
    _exit(127);
  }
  close(out[1]);
  FILE* output = fdopen(out[0], "r");
  char line[64] = "";
  pid_t child = 0;
  REQUIRE(std::fgets(line, sizeof line, output) != nullptr);
  REQUIRE(std::sscanf(line, "child %d", &child) == 1);
  // "35 0x..": nanosleep.
  const std::string call = "/proc/" + std::to_string(child) + "/syscall";
  const auto sleeps = [&] { return slurp(call).rfind("35 ", 0) == 0; };
  if (!late) CHECK(eventually(sleeps, kLimitMs));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  // The child holds the last writing end of the pipe.
  pollfd end{out[0], POLLIN, 0};
  const bool ended = poll(&end, 1, kLimitMs) == 1 && std::fgetc(output) == EOF;
  CHECK(ended);
  if (!ended) kill(child, SIGKILL);
  fclose(output);
}

TEST_CASE("criu: fields are read as they were written", "[criu]") {
  std::string text;
  put_number(text, 1, 0);
  put_number(text, 300, 1ULL << 63);
  put_bytes(text, 2, std::string(200, 'x'));
  put_number(text, 1, 7);
  CHECK(find_field(text, 1)->value == 7);  // the last one counts
  CHECK(find_field(text, 300)->value == 1ULL << 63);
  CHECK(find_field(text, 2)->bytes == std::string(200, 'x'));
  CHECK_FALSE(find_field(text, 3));
  // Wherever the text is cut, nothing is read beyond its end.
  for (std::size_t size = 0; size < text.size(); ++size) {
    std::string_view cut = std::string_view(text).substr(0, size);
    while (const auto field = take_field(cut)) CHECK(field->bytes.size() <= size);
  }
}

TEST_CASE("criu: a property of the server is lasting, a momentary state is not", "[criu]") {
  const auto output = [](const std::string& line) {
    const std::string work = "/tmp/crane-criu-test-" + std::to_string(::getpid());
    std::filesystem::create_directories(work);
    std::ofstream(work + "/criu.log") << "(00.085902)      1: Error (criu/x.c:1): " << line << "\n";
    std::string refusal = criu_refusal(work);
    std::filesystem::remove_all(work);
    return refusal;
  };
  const std::string queue = output("Can't lookup mount=14 for fd=3 path=/q");
  CHECK(queue.find("POSIX message queue, or") != std::string::npos);
  CHECK(queue.find("CRANE_ROOT of crane-entry) (CRIU: Can't lookup mount=14") != std::string::npos);
  CHECK(is_lasting(queue));
  // crane-run doctor knows remedies by these words.
  CHECK(queue.find("overlay of an overlay") != std::string::npos);
  CHECK(output("Can't open sysctl kernel/hostname: Read-only file system").find("read-only here") !=
        std::string::npos);
  CHECK(output("Unable to set a monotonic clock offset: x").find("sys_time") != std::string::npos);
  CHECK(is_lasting(output("fsnotify: Can't dump that handle")));
  const std::string flight = output("unix: Non-empty write queue on an in-flight socket 0x1 (0x2)");
  CHECK(flight.find("is still being set up (CRIU: unix: Non-empty") != std::string::npos);
  CHECK_FALSE(is_lasting(flight));
  CHECK_FALSE(is_lasting(output("an unknown message")));
  CHECK_FALSE(is_lasting("CRIU was killed or did not end in time"));
  CHECK_FALSE(is_lasting(""));
}

TEST_CASE("criu: notifications are distinguished, and any other message is a refusal", "[criu]") {
  CHECK(parse_criu_message(notification("pre-dump")).what == What::kReady);
  CHECK(parse_criu_message(notification("network-lock")).what == What::kStopped);
  CHECK(parse_criu_message(notification("post-dump")).what == What::kDumped);
  CHECK(parse_criu_message(notification("network-unlock")).what == What::kOther);
  CHECK(parse_criu_message(response(1, true)).what == What::kDone);
  CHECK(parse_criu_message(response(1, false)).what == What::kRefused);
  CHECK(parse_criu_message(response(0, true)).what == What::kRefused);
  CHECK(parse_criu_message("").what == What::kRefused);
  const std::string whole = notification("pre-dump");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(parse_criu_message(whole.substr(0, size)).what != What::kReady);
  }
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(parse_criu_message(std::string(40, static_cast<char>(byte))).what == What::kRefused);
  }
  CHECK(find_field(criu_answer(true), 1)->value == 6);
  CHECK(find_field(criu_answer(true), 3)->value == 1);
  CHECK(find_field(criu_answer(false), 3)->value == 0);
}

TEST_CASE("criu: a dump request contains all external resources", "[criu]") {
  CriuCall call;
  call.first = 4711;
  call.externals = {"mnt[/run/crane]:/run/crane", "net[1]:crane.network"};
  const std::string asked = dump_request(call, 8, 9);
  CHECK(find_field(asked, 1)->value == 1);
  const std::string options(find_field(asked, 2)->bytes);
  CHECK(find_field(options, 1)->value == 8);
  CHECK(find_field(options, 2)->value == 4711);
  CHECK(find_field(options, 3)->value == 1);
  CHECK(find_field(options, 12)->value == 1);
  CHECK(find_field(options, 17)->value == 9);
  CHECK(find_field(options, 37)->bytes == call.externals[1]);
  CHECK(find_field(options, 64)->value == 3);
}

TEST_CASE("criu: a dump's statistics are read if they exist", "[criu]") {
  char directory[] = "/tmp/crane-criu-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string work = directory;
  CHECK(criu_stats(work).frozen == -1);
  CHECK(criu_stats(work).memory == -1);
  std::string dump, entry;
  put_number(dump, 1, 100);
  put_number(dump, 2, 5000);
  put_number(dump, 3, 700);
  put_number(dump, 4, 60);
  put_bytes(entry, 1, dump);
  std::ofstream(work + "/stats-dump") << std::string(12, '\0') << entry;
  const CriuStats stats = criu_stats(work);
  CHECK(stats.stopping == 100);
  CHECK(stats.frozen == 5000);
  CHECK(stats.memory == 760);
  CHECK(stats.restore == -1);
  std::ofstream(work + "/stats-dump") << "short";
  CHECK(criu_stats(work).frozen == -1);
  std::filesystem::remove_all(work);
}
