// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace crane::launcher {
namespace {

namespace fs = std::filesystem;
using checkpoint::Descriptor;
using checkpoint::file_error;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

}  // namespace

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

std::string NewFile::directory() const {
  const std::string parent = fs::path(path_).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<Descriptor> NewFile::open() {
  if (is_stdout()) {
    if (isatty(STDOUT_FILENO) != 0) {
      return failure(Code::kBadArgument, "write",
                     "standard output is a terminal; name a file, or write to a pipe");
    }
    return Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  }
  if (is_there(path_)) {
    return failure(Code::kExists, "create", path_ + " exists already; name another file");
  }
  fd_ = Descriptor(::open(directory().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!fd_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    temporary_ = directory() + "/." + fs::path(path_).filename().string() + ".new-" +
                 std::to_string(getpid());
    fd_ = Descriptor(::open(temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  }
  if (!fd_) {
    Error error = file_error("create", path_);
    if (error.text.find(';') == std::string::npos)
      error.text += "; name a file in a directory that exists and that you may write";
    return error;
  }
  return Descriptor(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
}

Outcome NewFile::name_it() {
  if (is_stdout()) return Done{};
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd_.get());
  const int named =
      temporary_.empty()
          ? linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW)
          : renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (named != 0) return file_error("create", path_);
  temporary_.clear();
  return checkpoint::sync_directory(directory());
}

Result<Descriptor> open_to_read(const std::string& path) {
  Descriptor fd(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  Error error = file_error("open", path);
  if (error.text.find(';') == std::string::npos) error.text += "; name a file that you may read";
  return error;
}

std::string shown_input(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace crane::launcher
