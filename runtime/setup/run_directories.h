// SPDX-License-Identifier: Apache-2.0
#pragma once
// The directories below /run that a server's package makes for it: with tmpfiles.d, and with its
// units (RuntimeDirectory=, mkdir in ExecStartPre=).  A container's /run is empty, and many servers
// refuse to start without these directories.
//
// Threads: any.  No errors: an unreadable package has no directories.

#include <string>
#include <vector>

namespace crane::setup {

// The directories of the Debian package of `program` (an absolute path), in the form of
// Profile::directories, "USER:/run/..".  `root`: the root of the file system, for tests.
std::vector<std::string> run_directories_of(const std::string& program,
                                            const std::string& root = "");

}  // namespace crane::setup
