// SPDX-License-Identifier: Apache-2.0
// GOAL    A server finds the directories under /run that its package creates.
// METHOD  A package database, a tmpfiles.d file and units in a directory of the test.
// CHECKS  run_directories_of: both sources, owners, omitted lines, other packages.
#include "runtime/setup/run_directories.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace crane;

namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("the package of a program defines the directories that it needs", "[setup]") {
  char name[] = "/tmp/crane-test-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const std::string root = name;
  write(root + "/var/lib/dpkg/info/other.list", "/usr/sbin/other\n/lib/systemd/system/o.service\n");
  write(root + "/lib/systemd/system/o.service", "RuntimeDirectory=other\n");
  write(root + "/var/lib/dpkg/info/ftp.list",
        "/usr/sbin/ftpd\n/usr/lib/tmpfiles.d/ftp.conf\n/lib/systemd/system/ftp.service\n");
  write(root + "/usr/lib/tmpfiles.d/ftp.conf",
        "# comment\nd /run/ftp 0755 mail mail -\nD! /var/run/ftp/old 0700 root root\n"
        "f /run/ftp/file 0644\nd /var/cache/ftp 0755\nd /run/user/%U 0700\nd /run/none 0755 "
        "noone-there\n");
  write(root + "/lib/systemd/system/ftp.service",
        "[Service]\nUser=daemon\nRuntimeDirectory=one two/three\n"
        "ExecStartPre=-/bin/mkdir -p /var/run/ftp/empty\nExecStart=/usr/sbin/ftpd\n");
  const std::vector<std::string> wanted = {
      "mail:/run/ftp",   "/run/ftp/old",          "/run/none",
      "daemon:/run/one", "daemon:/run/two/three", "/run/ftp/empty"};
  CHECK(setup::run_directories_of("/usr/sbin/ftpd", root) == wanted);
  CHECK(setup::run_directories_of("/sbin/ftpd", root) == wanted);
  CHECK(setup::run_directories_of("/sbin/none", root).empty());
  CHECK(setup::run_directories_of("ftpd", root).empty());
  std::filesystem::remove_all(root);
}
