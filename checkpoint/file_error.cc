// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file_error.h"

#include <cerrno>
#include <cstring>

namespace crane::checkpoint {

Error file_error(const char* step, const std::string& object) {
  const int number = errno;
  Error error{Code::kSystem, number, step,
              std::string("cannot ") + step + " " + object + ": " + std::strerror(number)};
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      error.code = Code::kFull;
      error.text += "; make room on that file system or keep fewer checkpoints, then try again";
      break;
    case ENOENT:
      error.code = Code::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      error.code = Code::kExists;
      break;
    case EPERM:
    case EACCES:
      error.code = Code::kDenied;
      error.text += "; checkpoints need root privilege";
      break;
    default:
      break;
  }
  return error;
}

}  // namespace crane::checkpoint
