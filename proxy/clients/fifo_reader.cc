// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/fifo_reader.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace crane::proxy {

Result<int> open_fifo(const HostPath& place) {
  const auto failed = [](int error) { return Error{Code::kSystem, error, "open"}; };
  if (place.directory.empty()) return failed(ENOENT);
  const int file = find_below(place);
  if (file < 0) return failed(-file);
  struct stat status {};
  const bool is_fifo = ::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  const int fd = is_fifo ? ::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  const int error = is_fifo ? errno : ENXIO;
  ::close(file);
  if (fd < 0) return failed(error);
  return fd;
}

FifoReader::FifoReader(event_base* base, int fifo, int socket) : fifo_(fifo), socket_(socket) {
  event_assign(&bytes_, base, fifo_, EV_READ | EV_PERSIST, on_bytes, this);
  event_assign(&room_, base, socket_, EV_WRITE, on_room, this);
  event_assign(&end_, base, socket_, EV_READ, on_end, this);
  event_add(&bytes_, nullptr);
  event_add(&end_, nullptr);
}

FifoReader::~FifoReader() { stop(); }

void FifoReader::on_bytes(int, short, void* reader) { static_cast<FifoReader*>(reader)->read(); }
void FifoReader::on_room(int, short, void* reader) { static_cast<FifoReader*>(reader)->write(); }
// A reading end is never written to; its event means that it was closed.
void FifoReader::on_end(int, short, void* reader) { static_cast<FifoReader*>(reader)->stop(); }

// The next writer waits in open() until the server opens the FIFO again.
void FifoReader::stop() {
  if (std::exchange(is_over_, true)) return;
  event_del(&bytes_);
  event_del(&room_);
  event_del(&end_);
  ::close(fifo_);
  ::close(socket_);
}

void FifoReader::read() {
  const ssize_t got = ::read(fifo_, held_.data(), held_.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return stop();
  begin_ = 0;
  size_ = static_cast<std::size_t>(got);
  write();
}

void FifoReader::write() {
  const ssize_t put =
      ::send(socket_, held_.data() + begin_, size_ - begin_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put < 0 && errno != EAGAIN && errno != EINTR) return stop();
  if (put > 0) begin_ += static_cast<std::size_t>(put);
  if (begin_ < size_) {
    event_del(&bytes_);
    event_add(&room_, nullptr);
  } else {
    event_add(&bytes_, nullptr);
  }
}

}  // namespace crane::proxy
