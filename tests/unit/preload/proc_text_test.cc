// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "runtime/preload/files/proc_kernel.h"
#include "runtime/preload/files/proc_text.h"

namespace crane {
namespace {

class File {
 public:
  explicit File(const std::string& text) {
    const int fd = ::mkstemp(name_);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(fd);
  }
  ~File() { ::unlink(name_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/crane-proc-XXXXXX";
};

std::string rewritten(long (*rewrite)(const char*, ProcText&) noexcept, const std::string& text) {
  const File file(text);
  static ProcText out;
  out.begin("test", true);
  REQUIRE(rewrite(file.name(), out) == 0);
  const long fd = out.finish();
  REQUIRE(fd >= 0);
  std::string got(1 << 16, '\0');
  const ssize_t size = ::pread(static_cast<int>(fd), got.data(), got.size(), 0);
  ::close(static_cast<int>(fd));
  REQUIRE(size >= 0);
  got.resize(static_cast<std::size_t>(size));
  return got;
}

TEST_CASE("mounts are numbered in order, independent of the kernel's numbers") {
  const auto mounts = [](const std::string& first, const std::string& second,
                         const std::string& replica) {
    return first + " 1 0:" + first + " / / rw,relatime shared:" + first +
           " - overlay overlay rw,lowerdir=/a,upperdir=/b/" + replica + ",xino=off\n" + second +
           " " + first + " 0:" + second + " /x /proc rw,nosuid - proc proc rw\n" + first + "7 " +
           first + " 0:" + first + " / /etc rw master:1 propagate_from:2 - overlay overlay rw\n";
  };
  const std::string one = rewritten(write_mountinfo, mounts("998", "999", "r0"));
  CHECK(one ==
        "1 0 0:1 / / rw,relatime - overlay overlay rw\n"
        "2 1 0:2 / /proc rw,nosuid - proc proc rw\n"
        "3 1 0:1 / /etc rw - overlay overlay rw\n");
  CHECK(rewritten(write_mountinfo, mounts("1002", "1003", "r1")) == one);
}

TEST_CASE("mounts are listed without places and sizes of the machine") {
  CHECK(rewritten(write_mounts,
                  "/dev/vda / ext4 rw,relatime,stripe=4 0 0\n"
                  "tmpfs /run tmpfs size=10k,rw,mode=755 0 0\n") ==
        "ext4 / ext4 rw,relatime 0 0\ntmpfs /run tmpfs rw 0 0\n");
}

TEST_CASE("the mapping of a file has an inode derived from its name") {
  const auto maps = [](const std::string& inode) {
    return "7f00-7f10 r-xp 00002000 fe:0" + inode + " 12" + inode + "    /usr/lib/a b.so\n" +
           "7f10-7f20 rw-p 00000000 00:00 0 \n";
  };
  const std::string one = rewritten(write_maps, maps("1"));
  CHECK(rewritten(write_maps, maps("2")) == one);
  CHECK(one.find("7f00-7f10 r-xp 00002000 08:01 ") == 0);
  CHECK(one.find(" /usr/lib/a b.so\n7f10-7f20 rw-p 00000000 00:00 0\n") != std::string::npos);
}

TEST_CASE("lines longer than the buffer are passed on whole, except across a break") {
  const std::string large(40000, 'x');
  std::string got = rewritten(write_fdinfo, "pos:\t0\n" + large + "\nmnt_id:\t7\nflags:\t02\n");
  CHECK(got == "pos:\t0\nflags:\t02\n");
  // The last line has no end.
  CHECK(rewritten(write_fdinfo, "pos:\t12") == "pos:\t12\n");
  CHECK(rewritten(write_fdinfo, "").empty());
}

TEST_CASE("files of the machine are distinguished from files of the kernel") {
  CHECK(sort_of("/sys/fs/cgroup/memory.max") == SysFile::kHidden);
  CHECK(sort_of("/sys/class/net/lo/statistics/rx_bytes") == SysFile::kCounter);
  CHECK(sort_of("/sys/devices/system/node/node0/vmstat") == SysFile::kCounter);
  CHECK(sort_of("/proc/fs/ext4/vda/options") == SysFile::kCounter);
  CHECK(sort_of("/sys/devices/system/cpu/cpu0/cpuidle/state1/time") == SysFile::kCounter);
  CHECK(sort_of("/sys/devices/system/cpu/cpuidle/current_driver") == SysFile::kKernels);
  CHECK(sort_of("/sys/devices/system/edac/mc/mc0/ce_count") == SysFile::kCounter);
  CHECK(sort_of("/sys/class/rtc/rtc0/since_epoch") == SysFile::kCounter);
  CHECK(sort_of("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") == SysFile::kCounter);
  CHECK(sort_of("/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans") == SysFile::kCounter);
  CHECK(sort_of("/sys/class/net/lo/mtu") == SysFile::kKernels);
  CHECK(sort_of("/sys/kernel/mm/transparent_hugepage/enabled") == SysFile::kKernels);
  CHECK(sort_of("/var/lib/statistics/stat") == SysFile::kKernels);
}

}  // namespace
}  // namespace crane
