// SPDX-License-Identifier: Apache-2.0
#include "eval/engine/exchange.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

namespace engine {
namespace {

void watch(int epoll, int fd, void* data, bool for_room) {
  epoll_event event{};
  event.events = EPOLLIN | (for_room ? std::uint32_t{EPOLLOUT} : 0u);
  event.data.ptr = data;
  epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

}  // namespace

void Outlet::attach(int fd, int epoll, void* data) {
  const std::lock_guard guard(lock_);
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
  fd_ = fd;
  epoll_ = epoll;
  data_ = data;
  waits_ = false;
  unsent_.clear();
}

void Outlet::detach(int fd) {
  const std::lock_guard guard(lock_);
  if (fd_ == fd) fd_ = -1;
}

void Outlet::append(std::span<const Report> reports) {
  const std::lock_guard guard(lock_);
  if (fd_ < 0) return;
  unsent_.append(reinterpret_cast<const char*>(reports.data()), reports.size_bytes());
}

void Outlet::flush() {
  const std::lock_guard guard(lock_);
  if (fd_ < 0 || unsent_.empty()) return;
  const ssize_t sent = send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool broken = sent < 0 && errno != EAGAIN && errno != EINTR;
  if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  if (broken || unsent_.size() > kUnsentMax) {
    shutdown(fd_, SHUT_RDWR);  // the reader sees the end, and closes it
    fd_ = -1;
    return;
  }
  if (waits_ == unsent_.empty()) {
    waits_ = !unsent_.empty();
    watch(epoll_, fd_, data_, waits_);
  }
}

// With the book's lock held: an account gets reports in the order of the book.
void Exchange::send_reports(Account who, const Request& request, const std::vector<Trade>& trades,
                            const Report& answer, std::vector<Account>& touched) {
  thread_local std::vector<Report> own;
  own.clear();
  for (const Trade& trade : trades) {
    Report report{.kind = ReportKind::kMade,
                  .symbol = request.symbol,
                  .side = other(trade.taker_side),
                  .quantity = trade.quantity,
                  .left = trade.maker_left,
                  .order = trade.maker.number,
                  .price = trade.price,
                  .number = trade.number};
    if (trade.maker.account == who) {
      own.push_back(report);
    } else {
      outlets_[trade.maker.account].append({&report, 1});
      touched.push_back(trade.maker.account);
    }
    report.kind = ReportKind::kTook;
    report.side = trade.taker_side;
    report.left = trade.taker_left;
    report.order = trade.taker.number;
    own.push_back(report);
  }
  own.push_back(answer);
  outlets_[who].append(own);
}

void Exchange::obey(Account who, const Request& request, std::vector<Account>& touched) {
  thread_local std::vector<Trade> trades;
  trades.clear();
  Report report{.symbol = request.symbol, .side = request.side, .order = request.order};
  if (request.symbol >= books_.size() || request.side > Side::kSell) {
    report.verdict = Verdict::kBadSymbol;
    outlets_[who].append({&report, 1});
    return;
  }
  Place& place = books_[request.symbol];
  const OrderId id{who, request.order};
  Answer answer;
  const std::lock_guard guard(place.lock);
  Book& book = place.book;
  switch (request.ask) {
    case Ask::kNew:
      answer = book.add(id, request.side, request.price, request.quantity, trades);
      break;
    case Ask::kReplace:
      answer = book.replace(id, request.price, request.quantity, trades);
      break;
    case Ask::kCancel:
      answer = book.cancel(id);
      break;
    case Ask::kCancelAll:
      report.total = book.cancel_all(who);
      break;
    case Ask::kBook: {
      const Summary sum = book.summary(request.side);
      report.kind = ReportKind::kBook;
      report.quantity = static_cast<Quantity>(sum.orders);
      report.price = sum.best;
      report.total = sum.open;
      report.number = sum.digest;
      break;
    }
    case Ask::kLogon:
      break;  // a repeated logon is only answered
  }
  report.verdict = answer.verdict;
  report.left = answer.left;
  send_reports(who, request, trades, report, touched);
}

}  // namespace engine
