// SPDX-License-Identifier: Apache-2.0
// All books, and the accounts that trade in them.
//
// Orders belong to an account, not to a connection: they outlive it. Trades are reported to the
// client that is logged on as the account, if there is one.
//
// Threads: any. A lock per book, one per account; an account's is taken inside a book's, so that an
// account gets the reports of a book in the book's order. Nothing is sent while a book is locked.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "eval/engine/book.h"
#include "eval/engine/wire.h"

namespace engine {

// A client that leaves this many bytes unread is disconnected.
inline constexpr std::size_t kUnsentMax = 1 << 20;

// The output channel to an account's client.
class Outlet {
 public:
  // `fd` (nonblocking, watched by `epoll` with `data`) becomes the client; an older one is
  // disconnected.
  void attach(int fd, int epoll, void* data);
  // Call it before `fd` is closed.
  void detach(int fd);

  void append(std::span<const Report> reports);
  // Sends the appended bytes; the rest waits until `epoll` reports room.
  void flush();

 private:
  std::mutex lock_;
  int fd_ = -1;
  int epoll_ = -1;
  void* data_ = nullptr;
  bool waits_ = false;  // for room
  std::string unsent_;
};

class Exchange {
 public:
  Exchange(std::size_t symbols, std::size_t accounts) : books_(symbols), outlets_(accounts) {}

  // nullptr: there is no such account.
  Outlet* outlet(std::uint64_t account) {
    return account < outlets_.size() ? &outlets_[account] : nullptr;
  }

  // Executes a request and appends its reports. `touched`: other accounts, whose outlets the caller
  // flushes afterwards, in addition to its own.
  void obey(Account who, const Request& request, std::vector<Account>& touched);

 private:
  struct Place {
    std::mutex lock;
    Book book;
  };
  void send_reports(Account who, const Request& request, const std::vector<Trade>& trades,
                    const Report& answer, std::vector<Account>& touched);

  std::vector<Place> books_;
  std::vector<Outlet> outlets_;
};

}  // namespace engine
