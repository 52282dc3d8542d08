// SPDX-License-Identifier: Apache-2.0
// Streams. Our own open opens the file at a turn; then libc makes the stream and allocates its
// memory outside the turn.
#include <cstring>

#include "runtime/preload/descriptors/flushing.h"
#include "runtime/preload/descriptors/inode.h"
#include "runtime/preload/descriptors/notify.h"
#include "runtime/preload/files/open.h"
#include "runtime/preload/files/stdio_streams.h"
#include "runtime/preload/ground/inside.h"
#include "runtime/preload/ground/real.h"
#include "runtime/preload/ground/wrappers.h"
#include "runtime/preload/self/scratch.h"
#include "runtime/preload/terminals/terminal.h"

extern "C" int __vdprintf_chk(int fd, int flag, const char* form, va_list list);

namespace crane {
namespace {

// The descriptor itself is stored as the cookie.
void* cookie_of(int fd) noexcept { return reinterpret_cast<void*>(static_cast<long>(fd) + 1); }
int descriptor_of(void* cookie) noexcept {
  return static_cast<int>(reinterpret_cast<long>(cookie) - 1);
}

// Makes a wrapped call from one of libc's callbacks, for the application or for Crane. A thread
// that has no slot any more makes the call unwrapped.
template <typename Call>
auto as_wrapped(Call call) noexcept {
  if (InsideCrane::inside()) return call();
  InsideCrane inside;
  return call();
}

ssize_t read_stream(void* cookie, char* b, size_t n) noexcept {
  const int fd = descriptor_of(cookie);
  if (self.slot == dmt::kNone) return real::read(fd, b, n);
  return as_wrapped([=] { return wrap::read(fd, b, n); });
}

ssize_t write_stream(void* cookie, const char* b, size_t n) noexcept {
  const int fd = descriptor_of(cookie);
  size_t done = 0;
  while (done < n) {
    const ssize_t put = self.slot == dmt::kNone
                            ? real::write(fd, b + done, n - done)
                            : as_wrapped([=] { return wrap::write(fd, b + done, n - done); });
    if (put <= 0) break;
    done += static_cast<size_t>(put);
  }
  // These functions return 0 for an error.
  return static_cast<ssize_t>(done);
}

int close_stream(void* cookie) noexcept {
  const int fd = descriptor_of(cookie);
  if (self.slot == dmt::kNone) return real::close(fd);
  return as_wrapped([=] { return wrap::close(fd); });
}

FILE* stream_of(int fd, const char* mode) noexcept {
  const cookie_io_functions_t calls = {read_stream, write_stream, nullptr, close_stream};
  FILE* f = real::fopencookie(cookie_of(fd), mode, calls);
  if (f == nullptr) return nullptr;
  f->_fileno = fd;  // fileno() works as usual
  // libc queries the kernel only for its own streams.
  if (terminal::terminal_file(fd) != 0) real::setvbuf(f, nullptr, _IOLBF, 0);
  return f;
}

// Converts the mode of fopen; negative: it is not valid.
int flags_of(const char* mode) noexcept {
  int flags;
  switch (mode[0]) {
    case 'r':
      flags = O_RDONLY;
      break;
    case 'w':
      flags = O_WRONLY | O_CREAT | O_TRUNC;
      break;
    case 'a':
      flags = O_WRONLY | O_CREAT | O_APPEND;
      break;
    default:
      return -EINVAL;
  }
  for (const char* m = mode + 1; *m != '\0' && *m != ','; ++m) {
    if (*m == '+') flags = (flags & ~O_ACCMODE) | O_RDWR;
    if (*m == 'x') flags |= O_EXCL;
    if (*m == 'e') flags |= O_CLOEXEC;
  }
  return flags;
}

}  // namespace

void adopt_standard_stream(int fd) noexcept {
  static bool adopted[3];
  if (fd < 0 || fd > 2 || adopted[fd] || is_plain(fd)) return;
  const OutsideCrane outside;
  FILE* f = stream_of(fd, fd == 0 ? "r" : "w");
  if (f == nullptr) return;
  adopted[fd] = true;
  if (fd == 0) stdin = f;
  if (fd == 1) stdout = f;
  if (fd == 2) {
    real::setvbuf(f, nullptr, _IONBF, 0);
    stderr = f;
  }
}

void adopt_standard_streams() noexcept {
  for (int fd = 0; fd <= 2; ++fd) adopt_standard_stream(fd);
}

namespace {

// The position of each stream when its writes were last reported to inotify. libc writes without a
// wrapper, so a thread that flushes or closes the stream compares the position.
constexpr std::int64_t kNotReported = 0;
std::int64_t reported[dmt::kFdsMax];  // one more than the position
constexpr int kPutting = 0x800;       // one of libc's flags: written to since the last read

bool has_range(int fd) noexcept { return fd >= 0 && fd < static_cast<int>(dmt::kFdsMax); }

// Starts the reports for a plain descriptor that becomes a stream.
void begin_reports(int fd) noexcept {
  if (has_range(fd)) reported[fd] = kNotReported;
}

// Whether the flushed stream has written since the last call of this function.
bool has_written(const FILE* f, int fd) noexcept {
  if (!has_range(fd) || !is_plain(fd) || (f->_flags & kPutting) == 0) return false;
  const std::int64_t position = raw_syscall(SYS_lseek, fd, 0, SEEK_CUR) + 1;
  const bool moved = position > 0 && position != reported[fd];
  reported[fd] = position;
  return moved;
}

// Reports the close of a flushed stream before its descriptor is closed.
void report_close(Turn& turn, const FILE* f, int fd) noexcept {
  regain(turn);
  if (has_written(f, fd)) notify::by_descriptor(turn.w, fd, IN_MODIFY);
  notify::closing(turn.w, {fd, fd});
}

}  // namespace

extern "C" int __vsnprintf_chk(char* text, size_t n, int flag, size_t room, const char* form,
                               va_list list) noexcept;

namespace {

// With `flag`, a %n in a format in writable memory ends the process.
int make_text(char* text, size_t n, int flag, const char* form, va_list list) noexcept {
  const OutsideCrane outside;
  return __vsnprintf_chk(text, n, flag, n, form, list);
}

}  // namespace

namespace wrap {

// libc's own function would write without the wrappers, so the text is made first.
int vdprintf(int fd, const char* form, va_list list) {
  return wrap::__vdprintf_chk(fd, 0, form, list);
}
int __vdprintf_chk(int fd, int flag, const char* form, va_list list) {
  if (is_plain(fd)) {
    const OutsideCrane outside;
    return real::__vdprintf_chk(fd, flag, form, list);
  }
  va_list again;
  va_copy(again, list);
  const int size = make_text(nullptr, 0, flag, form, list);
  ssize_t put = -1;
  if (size >= 0) {
    const Scratch<char> text(static_cast<std::size_t>(size) + 1);
    make_text(text.data(), text.size(), flag, form, again);
    put = write_stream(cookie_of(fd), text.data(), static_cast<std::size_t>(size));
  }
  va_end(again);
  return put >= 0 && put == size ? size : -1;
}
// Calls through the stub, which checks whether this thread has a slot.
int dprintf(int fd, const char* form, va_list list) { return ::vdprintf(fd, form, list); }
int __dprintf_chk(int fd, int flag, const char* form, va_list list) {
  return ::__vdprintf_chk(fd, flag, form, list);
}

FILE* fdopen(int fd, const char* m) {
  if (is_plain(fd)) {
    begin_reports(fd);
    const OutsideCrane outside;
    return real::fdopen(fd, m);
  }
  const int flags = flags_of(m);
  if (flags < 0) {
    fail(EINVAL);
    return nullptr;
  }
  const OutsideCrane outside;
  return stream_of(fd, m);
}

FILE* fopen(const char* p, const char* m) {
  const int flags = flags_of(m);
  if (flags < 0) {
    fail(EINVAL);
    return nullptr;
  }
  const int fd = wrap::open(p, flags, 0666);
  if (fd < 0) return nullptr;
  FILE* f = wrap::fdopen(fd, m);
  if (f == nullptr) wrap::close(fd);
  return f;
}
FILE* fopen64(const char* p, const char* m) { return wrap::fopen(p, m); }

FILE* freopen(const char* p, const char* m, FILE* f) {
  Turn turn(Op::freopen);
  const int before = f->_fileno, flags = flags_of(m);
  const bool reports = p != nullptr && flags >= 0 && notify::is_watched(turn.w, IN_ALL_EVENTS);
  const bool makes = reports && (flags & O_CREAT) != 0 && !exists(AT_FDCWD, p);
  if (reports && before >= 0) {
    {
      const OutsideCrane outside;
      real::fflush(f);
    }
    report_close(turn, f, before);
  }
  FILE* result;
  {
    const OutsideCrane outside;
    result = real::freopen(p, m, f);
  }
  regain(turn);
  if (reports && result != nullptr) {
    begin_reports(result->_fileno);
    notify::opened(turn.w, result->_fileno, flags, makes);
  }
  if (before >= 0 && (result == nullptr || result->_fileno != before)) {
    forget_descriptor(turn, before);
  }
  turn.result(result == nullptr ? -1 : result->_fileno);
  return result;
}
FILE* freopen64(const char* p, const char* m, FILE* f) { return wrap::freopen(p, m, f); }

int fflush(FILE* f) {
  int result;
  {
    const OutsideCrane outside;
    result = real::fflush(f);
  }
  if (f == nullptr || !notify::needs_late_report(IN_MODIFY)) return result;
  const int error = errno;
  if (has_written(f, f->_fileno)) notify::report_later(Op::fflush, f->_fileno, IN_MODIFY);
  errno = error;
  return result;
}

// libc's locks of streams are not operations: a thread that waited for one would keep the turn
// (TICK-2).
void flockfile(FILE* f) {
  real::flockfile(f);
  ++self.locked_streams;
}
int ftrylockfile(FILE* f) {
  const int result = real::ftrylockfile(f);
  if (result == 0) ++self.locked_streams;
  return result;
}
void funlockfile(FILE* f) {
  if (self.locked_streams > 0) --self.locked_streams;
  real::funlockfile(f);
}

int fclose(FILE* f) {
  const int fd = f->_fileno;
  if (fd >= 0 && !is_plain(fd)) {
    // A stream of ours: its own close takes the turn.
    int result;
    {
      const OutsideCrane outside;
      result = real::fclose(f);
    }
    Turn turn(Op::fclose);
    // The stream of libc has closed its descriptor without a wrapper, although it was bound later.
    if (!is_plain(fd) && raw_syscall(SYS_fcntl, fd, F_GETFD) < 0) forget_descriptor(turn, fd);
    turn.result(result);
    return result;
  }
  Turn turn(Op::fclose);
  await_flushes(fd, fd);
  const bool reports = fd >= 0 && notify::is_watched(turn.w, IN_ALL_EVENTS);
  int result, lost = 0;  // the error of the bytes that could not be written
  if (is_writable(fd)) {
    const OutsideCrane outside;
    // libc writes without a wrapper, so the buffered bytes are flushed first.
    if (real::fflush(f) != 0) lost = errno;
    note_written(fd);
    settle_time(turn.w, fd);
  }
  if (reports) report_close(turn, f, fd);
  {
    const OutsideCrane outside;
    result = real::fclose(f);
  }
  // The flush left libc no bytes, so its fclose cannot report the error.
  if (result == 0 && lost != 0) result = fail(lost);
  regain(turn);
  if (fd >= 0) forget_descriptor(turn, fd);
  turn.result(result);
  return result;
}

FILE* tmpfile() {
  char path[] = "/tmp/tmpf-XXXXXX";
  const int fd = wrap::mkstemp(path);
  if (fd < 0) return nullptr;
  wrap::unlink(path);
  return wrap::fdopen(fd, "w+");
}
FILE* tmpfile64() { return wrap::tmpfile(); }

}  // namespace wrap
}  // namespace crane
