// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/resolver.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <nss.h>
#include <resolv.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "proxy/clients/encode.h"
#include "proxy/clients/outbound.h"

namespace crane::proxy {
namespace {

constexpr int kPipe = 3;

// Sets the server of libc's resolver in this thread.
void use_server(const VirtualAddress& server) {
  if (::res_init() != 0) return;
  const HostAddress at = host_address(server);
  std::memset(_res.nsaddr_list, 0, sizeof _res.nsaddr_list);
  _res.nscount = 1;
  if (server.family == AF_INET) {
    std::memcpy(&_res.nsaddr_list[0], &at.bytes, sizeof _res.nsaddr_list[0]);
    return;
  }
  auto* const six = static_cast<sockaddr_in6*>(std::malloc(sizeof(sockaddr_in6)));
  if (six == nullptr) return;
  std::memcpy(six, &at.bytes, sizeof *six);
  _res._u._ext.nsaddrs[0] = six;  // libc frees it
  _res._u._ext.nscount = 1;
}

void resolve_addresses(const NameRequest& request, ResolvedBody& body) {
  addrinfo hints{};
  hints.ai_family = request.address.family;
  hints.ai_socktype = SOCK_STREAM;  // returns each address once
  hints.ai_flags = static_cast<int>(request.flags) &
                   (AI_CANONNAME | AI_ADDRCONFIG | AI_V4MAPPED | AI_ALL | AI_IDN | AI_CANONIDN);
  addrinfo* list = nullptr;
  body.error = ::getaddrinfo(request.name, nullptr, &hints, &list);
  if (body.error == EAI_SYSTEM) body.system_error = errno;
  if (body.error != 0) return;
  for (const addrinfo* a = list; a != nullptr && body.count < kNameAddressesMax; a = a->ai_next) {
    body.addresses[body.count++] = virtual_address(a->ai_addr, a->ai_addrlen);
  }
  if (list != nullptr && list->ai_canonname != nullptr) {
    std::strncpy(body.name, list->ai_canonname, sizeof body.name - 1);
  }
  ::freeaddrinfo(list);
}

void resolve_name(const NameRequest& request, ResolvedBody& body) {
  const HostAddress at = host_address(request.address);
  const int flags = (static_cast<int>(request.flags) & (NI_NOFQDN | NI_IDN)) | NI_NAMEREQD;
  body.error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&at.bytes), at.size, body.name,
                             sizeof body.name, nullptr, 0, flags);
  if (body.error == EAI_SYSTEM) body.system_error = errno;
}

// The main function of a question's process.
[[noreturn]] void run(int fd, pid_t parent, const NameRequest& request,
                      const ResolverOptions& options) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NAME, "crane-names");
  for (int signo = 1; signo < NSIG; ++signo) ::signal(signo, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (fd != kPipe) ::dup2(fd, kPipe);
  ::close_range(kPipe + 1, ~0U, 0);
  const ResolvedBody body = resolve(request, options);
  const auto* bytes = reinterpret_cast<const char*>(&body);
  for (std::size_t done = 0; done < sizeof body;) {
    const ssize_t n = ::write(kPipe, bytes + done, sizeof body - done);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  ::_exit(0);
}

}  // namespace

ResolvedBody resolve(const NameRequest& asked, const ResolverOptions& options) {
  NameRequest request = asked;
  request.name[sizeof request.name - 1] = '\0';
  if (options.server.family != 0) use_server(options.server);
  if (options.only_files) ::__nss_configure_lookup("hosts", "files");
  ResolvedBody body{};
  if (request.question == NameQuestion::kName) {
    resolve_name(request, body);
  } else {
    resolve_addresses(request, body);
  }
  if (options.only_files && body.error != 0) body.error = EAI_FAIL;
  return body;
}

Resolver::~Resolver() { forget_all(); }

void Resolver::forget_all() {
  for (Question& question : questions_) stop(question);
  questions_.clear();
}

void Resolver::ask(std::uint64_t number, const NameRequest& request) {
  Question& question = questions_.emplace_back();
  question.resolver = this;
  question.number = number;
  question.request = request;
  event_assign(&question.limit, base_, -1, 0, on_limit, &question);
  const timeval limit = {options_.limit_ms / 1000, (options_.limit_ms % 1000) * 1000};
  event_add(&question.limit, &limit);
  start_waiting();
}

void Resolver::start_waiting() {
  for (Question& question : questions_) {
    if (running_ >= options_.at_once) return;
    if (question.pid >= 0 || start(question)) continue;
    const timeval now = {0, 0};  // the answer arrives through the loop, like any other
    event_add(&question.limit, &now);
  }
}

bool Resolver::start(Question& question) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run(ends[1], parent, question.request, options_);
  ::close(ends[1]);
  if (pid < 0) {
    spdlog::error("cannot resolve a name: fork: {}", std::strerror(errno));
    ::close(ends[0]);
    return false;
  }
  question.pid = pid;
  question.fd = ends[0];
  ++running_;
  event_assign(&question.readable, base_, question.fd, EV_READ | EV_PERSIST, on_readable,
               &question);
  event_add(&question.readable, nullptr);
  return true;
}

void Resolver::on_readable(int, short, void* argument) {
  auto& question = *static_cast<Question*>(argument);
  question.resolver->read(question);
}

void Resolver::on_limit(int, short, void* argument) {
  auto& question = *static_cast<Question*>(argument);
  question.resolver->finish(question, EAI_AGAIN);
}

void Resolver::read(Question& question) {
  auto* const at = reinterpret_cast<char*>(&question.answer) + question.got;
  const ssize_t n = ::read(question.fd, at, sizeof question.answer - question.got);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) question.got += static_cast<std::size_t>(n);
  if (question.got == sizeof question.answer) return finish(question, 0);
  if (n <= 0) finish(question, EAI_AGAIN);  // the process was killed
}

void Resolver::stop(Question& question) noexcept {
  event_del(&question.limit);
  if (question.pid < 0) return;
  event_del(&question.readable);
  ::close(question.fd);
  ::kill(question.pid, SIGKILL);
  while (::waitpid(question.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  --running_;
}

void Resolver::finish(Question& question, int error) {
  stop(question);
  ResolvedBody answer{};
  answer.error = error;
  if (error == 0) answer = question.answer;
  answer.number = question.number;
  questions_.remove_if([&question](const Question& q) { return &q == &question; });
  start_waiting();
  owner_.answered(answer);
}

}  // namespace crane::proxy
