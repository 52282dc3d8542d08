// SPDX-License-Identifier: Apache-2.0
// GOAL    A group does not begin with files that another process may change.
// METHOD  A child process that opens or maps a file of a directory of the test.
// CHECKS  Which descriptors and mappings can write; which process is named; copies and other
//         directories are not in use.
#include "runtime/setup/data_in_use.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace crane;
using namespace crane::setup;
namespace fs = std::filesystem;

namespace {

struct Place {
  std::string path;
  Place() {
    char name[] = "/tmp/crane-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
    fs::create_directories(path + "/data/inner");
    fs::create_directories(path + "/data-2");
    for (const char* file : {"/data/inner/wal", "/data-2/wal"}) std::ofstream(path + file) << "x";
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { fs::remove_all(path); }
};

// A process that has done `what`, and ends with this object.
class Child {
 public:
  explicit Child(const std::function<void()>& what) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      what();
      (void)!write(ready[1], "", 1);
      for (;;) pause();
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("a descriptor can write if it was opened for writing", "[data-in-use]") {
  CHECK(can_write("pos:\t0\nflags:\t0100001\nmnt_id:\t25\n"));
  CHECK(can_write("pos:\t0\nflags:\t02100002\nmnt_id:\t25\n"));
  CHECK_FALSE(can_write("pos:\t0\nflags:\t0100000\nmnt_id:\t25\n"));
  CHECK_FALSE(can_write("pos:\t0\nflags:\t012000002\nmnt_id:\t25\n"));  // O_PATH
  CHECK_FALSE(can_write(""));
}

TEST_CASE("a mapping can write if it is shared and writable", "[data-in-use]") {
  const auto found = writable_mapping(
      "7f00-7f10 rw-s 00000000 fd:01 4711                       /var/lib/shop/a file");
  REQUIRE(found);
  CHECK(*found == WritableMapping{"7f00-7f10", 4711, "/var/lib/shop/a file"});
  const auto low = writable_mapping("00400000-00452000 rw-s 00000000 08:02 9 /x");
  REQUIRE(low);
  CHECK(low->range == "400000-452000");  // without zeros, as in map_files
  for (const char* line :
       {"7f00-7f10 rw-p 00000000 fd:01 4711   /var/lib/shop/file",
        "7f00-7f10 r--s 00000000 fd:01 4711   /var/lib/shop/file",
        "7f00-7f10 rw-s 00000000 00:01 4711", "7f00-7f10 rw-p 0 00:00 0 [heap]", ""}) {
    CAPTURE(line);
    CHECK_FALSE(writable_mapping(line));
  }
}

TEST_CASE("a process that has a file open for writing is found", "[data-in-use]") {
  const Place place;
  const std::string data = place.path + "/data", file = data + "/inner/wal";
  CHECK_FALSE(find_writer(data));
  {
    const Child reads([&] { (void)open(file.c_str(), O_RDONLY); });
    CHECK_FALSE(find_writer(data));
  }
  const Child writes([&] { (void)open(file.c_str(), O_WRONLY); });
  const auto found = find_writer(data);
  REQUIRE(found);
  CHECK(found->pid == writes.pid());
  CHECK(found->file == file);
  CHECK_FALSE(found->maps);
  CHECK_FALSE(found->process.empty());
  CHECK_FALSE(find_writer(place.path + "/data-2"));
  CHECK_FALSE(find_writer(place.path + "/missing"));
}

TEST_CASE("a process that has mapped a file for writing is found", "[data-in-use]") {
  const Place place;
  const std::string data = place.path + "/data", file = data + "/inner/wal";
  const Child maps([&] {
    const int fd = open(file.c_str(), O_RDWR);
    (void)mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  });
  const auto found = find_writer(data);
  REQUIRE(found);
  CHECK(found->pid == maps.pid());
  CHECK(found->file == file);
  CHECK(found->maps);
}

TEST_CASE("data are in use until the group has its own copy", "[data-in-use]") {
  const Place place;
  const std::string data = place.path + "/data", base = place.path + "/base";
  const Child writes([&] { (void)open((data + "/inner/wal").c_str(), O_RDWR); });
  const Outcome refused = check_not_in_use({place.path + "/data-2", data}, base);
  REQUIRE_FALSE(refused);
  CHECK(status_of(refused) == Status::kDataInUse);
  const std::string text = refused.error().text;
  for (const std::string& part :
       {data, std::to_string(writes.pid()), data + "/inner/wal", std::string("stop it")}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  fs::create_directories(base + data);
  CHECK(check_not_in_use({data}, base));
}
