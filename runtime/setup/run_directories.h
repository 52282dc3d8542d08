// SPDX-License-Identifier: Apache-2.0
#pragma once
// The directories below /run that a server's package makes for it: by tmpfiles.d, and by its units
// (RuntimeDirectory=, mkdir in ExecStartPre=).  A container's /run is a fresh one, and a server
// that finds none of them often refuses to start.
//
// Threads: any.  Nothing fails: a package that cannot be read makes none.

#include <string>
#include <vector>

namespace crane::setup {

// As Profile::directories, "USER:/run/..", of the Debian package that `program` (an absolute path)
// belongs to.  `root`: where the file system begins, for tests.
std::vector<std::string> run_directories_of(const std::string& program,
                                            const std::string& root = "");

}  // namespace crane::setup
