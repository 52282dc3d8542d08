// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/why.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace crane::checkpoint {

Error Why::is(Code code, const char* step, std::string sentence) {
  text = std::move(sentence);
  return Error{code, 0, step};
}

Error Why::system(const char* step, const std::string& object) {
  const int number = errno;
  text = std::string("cannot ") + step + " " + object + ": " + std::strerror(number);
  Code code = Code::kSystem;
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      code = Code::kFull;
      text += "; make room on that file system or keep fewer checkpoints, then try again";
      break;
    case ENOENT:
      code = Code::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      code = Code::kExists;
      break;
    case EPERM:
    case EACCES:
      code = Code::kDenied;
      text += "; checkpoints need root's rights";
      break;
    default:
      break;
  }
  return Error{code, number, step};
}

}  // namespace crane::checkpoint
