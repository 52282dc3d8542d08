// SPDX-License-Identifier: Apache-2.0
#include "consensus/fabric/secure_link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace crane::consensus {
namespace {

constexpr std::size_t kReadStep = 64U << 10;
constexpr std::size_t kWireMax = 256U << 10;
// A buffer that grew beyond this for a backlog is freed.
constexpr std::size_t kSpareMax = 4U << 20;
// AES-GCM may protect some 2^24 records under one key (RFC 8446, 5.5); a pass is 16 at most.
constexpr std::uint64_t kPassesPerKey = 1U << 18;
constexpr std::string_view kIdentityPrefix = "crane1";

std::string identity_of(const LinkName& n) {
  return std::string(kIdentityPrefix) + "/" + std::to_string(value(n.from)) + "/" +
         std::to_string(value(n.to)) + "/" + std::to_string(n.plane);
}

bool parse_identity(std::string_view text, LinkName& out) noexcept {
  if (!text.starts_with(kIdentityPrefix)) return false;
  text.remove_prefix(kIdentityPrefix.size());
  std::uint8_t fields[3] = {};
  for (std::uint8_t& field : fields) {
    if (!text.starts_with('/')) return false;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), field);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  out = {ReplicaId{fields[0]}, ReplicaId{fields[1]}, fields[2]};
  return text.empty();
}

// The pre-shared key of a link as OpenSSL wants it; null on failure.
SSL_SESSION* session_for(SSL* ssl, const GroupSecret& secret, const std::string& identity) {
  unsigned char key[32];
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(identity.data()), identity.size(), key,
           &size) == nullptr) {
    return nullptr;
  }
  constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* const session = SSL_SESSION_new();
  const bool made = session != nullptr && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session, key, size) == 1 &&
                    SSL_SESSION_set_cipher(session, cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  OPENSSL_cleanse(key, sizeof key);
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

void set_option(int fd, int level, int name, int value) noexcept {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

// The functions that OpenSSL calls; they may access a link's members.
struct LinkCallbacks {
  static SecureLink* link_of(SSL* ssl) { return static_cast<SecureLink*>(SSL_get_app_data(ssl)); }

  static int use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* size,
                         SSL_SESSION** session) {
    SecureLink* const link = link_of(ssl);
    *id = reinterpret_cast<const unsigned char*>(link->identity_.data());
    *size = link->identity_.size();
    *session = session_for(ssl, link->context_.secret_, link->identity_);
    return *session != nullptr ? 1 : 0;
  }

  static int find_session(SSL* ssl, const unsigned char* id, std::size_t size,
                          SSL_SESSION** session) {
    SecureLink* const link = link_of(ssl);
    const LinkContext& context = link->context_;
    *session = nullptr;
    LinkName name;
    if (!parse_identity({reinterpret_cast<const char*>(id), size}, name)) return 1;
    if (!context.accepts(name)) {
      return 1;  // meant for another replica: the handshake continues without a key, and fails
    }
    link->name_ = name;
    *session = session_for(ssl, context.secret_, identity_of(name));
    return 1;
  }

  static int write(BIO* bio, const char* data, int size) {
    auto* const link = static_cast<SecureLink*>(BIO_get_data(bio));
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    link->wire_.insert(link->wire_.end(), bytes, bytes + size);
    return size;
  }

  static int read(BIO* bio, char* data, int size) {
    auto* const link = static_cast<SecureLink*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (link->drained_) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const ssize_t got = ::recv(link->fd_, data, static_cast<std::size_t>(size), 0);
    link->drained_ = got > 0 && got < size;
    if (got > 0) return static_cast<int>(got);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      BIO_set_retry_read(bio);
    } else {
      link->ended_ = true;
    }
    return got == 0 ? 0 : -1;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const m =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "crane socket");
      CRANE_ASSERT(m != nullptr);
      BIO_meth_set_write(m, write);
      BIO_meth_set_read(m, read);
      BIO_meth_set_ctrl(m, control);
      return m;
    }();
    return made;
  }
};

// --- addresses ----------------------------------------------------------------------------------

Result<SocketAddress> resolve(const std::string& address, std::uint16_t port) noexcept {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int failed = ::getaddrinfo(address.c_str(), service.c_str(), &hints, &found);
  if (failed != 0 || found == nullptr) {
    return Error{Code::kBadArgument, failed, "resolve the address of a replica"};
  }
  SocketAddress out;
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return out;
}

std::string to_text(const SocketAddress& address) {
  char host[64];
  char port[16];
  if (::getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return std::string(host) + ":" + port;
}

Result<int> listen_on(const SocketAddress& address) noexcept {
  const int fd = ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("make the replica's socket");
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd, address.get(), address.size) != 0 || ::listen(fd, 128) != 0) {
    const Error why = system_error("listen on the replica's address and port");
    ::close(fd);
    return why;
  }
  return fd;
}

// --- context ------------------------------------------------------------------------------------

Result<std::unique_ptr<LinkContext>> LinkContext::create(const GroupSecret& secret, ReplicaId self,
                                                         std::uint8_t replicas) noexcept {
  std::unique_ptr<LinkContext> out(new LinkContext);
  out->secret_ = secret;
  out->self_ = self;
  out->replicas_ = replicas;
  out->dialler_ = SSL_CTX_new(TLS_client_method());
  out->acceptor_ = SSL_CTX_new(TLS_server_method());
  for (SSL_CTX* const c : {out->dialler_, out->acceptor_}) {
    // LINK-S2.  No certificate authority is configured, so a certificate can only fail.
    if (c == nullptr || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") != 1) {
      ERR_clear_error();
      return Error{Code::kUnsupported, 0, "OpenSSL has no TLS 1.3 with AES-128-GCM"};
    }
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(c, 1);
    SSL_CTX_set_default_read_buffer_len(c, kReadStep);
    SSL_CTX_set_max_early_data(c, 0);
  }
  SSL_CTX_set_num_tickets(out->acceptor_, 0);
  SSL_CTX_set_verify(out->dialler_, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_psk_use_session_callback(out->dialler_, LinkCallbacks::use_session);
  SSL_CTX_set_psk_find_session_callback(out->acceptor_, LinkCallbacks::find_session);
  return out;
}

bool LinkContext::accepts(const LinkName& name) const noexcept {
  const bool by_operator = name.from == kOperator;
  if (name.to != self_ || by_operator != (name.plane == kOperatorPlane)) return false;  // LINK-S3
  return by_operator || (name.from != self_ && value(name.from) < replicas_);
}

LinkContext::~LinkContext() {
  OPENSSL_cleanse(secret_.data(), secret_.size());
  SSL_CTX_free(dialler_);
  SSL_CTX_free(acceptor_);
}

// --- link: connecting ---------------------------------------------------------------------------

SecureLink::SecureLink(LinkContext& context, int fd, unsigned user_timeout_ms) noexcept
    : context_(context), fd_(fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_user_timeout(user_timeout_ms);
  // After a short cut TCP retransmits every 200 ms, not after ever longer pauses.
  set_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

void SecureLink::set_user_timeout(unsigned ms) noexcept {
  set_option(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(ms));
}

SecureLink::~SecureLink() {
  SSL_free(ssl_);
  // A forked child may hold a copy of the descriptor: shut down explicitly.
  if (!handed_over_) ::shutdown(fd_, SHUT_RDWR);
  ::close(fd_);
}

bool SecureLink::begin_tls(SSL_CTX* context, bool accepting) noexcept {
  accepting_ = accepting;
  ssl_ = SSL_new(context);
  BIO* const bio = BIO_new(LinkCallbacks::method());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    return false;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  if (accepting) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
  return true;
}

Result<std::unique_ptr<SecureLink>> SecureLink::dial(LinkContext& context, const LinkName& name,
                                                     const SocketAddress& to,
                                                     unsigned user_timeout_ms) noexcept {
  const int fd = ::socket(to.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("make a socket");
  std::unique_ptr<SecureLink> out(new SecureLink(context, fd, user_timeout_ms));
  out->name_ = name;
  out->identity_ = identity_of(name);
  if (!out->begin_tls(context.dialler_, false)) {
    return Error{Code::kSystem, ENOMEM, "make a TLS connection"};
  }
  out->state_ = State::kConnecting;
  if (::connect(fd, to.get(), to.size) != 0 && errno != EINPROGRESS) {
    return Error{Code::kPeerFailed, errno, "connect"};
  }
  return out;
}

Result<std::unique_ptr<SecureLink>> SecureLink::accept(LinkContext& context, int fd,
                                                       unsigned user_timeout_ms) noexcept {
  std::unique_ptr<SecureLink> out(new SecureLink(context, fd, user_timeout_ms));
  if (!out->begin_tls(context.acceptor_, true)) {
    return Error{Code::kSystem, ENOMEM, "make a TLS connection"};
  }
  return out;
}

std::string SecureLink::peer_address() const {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return "an unknown address";
  }
  return to_text(address);
}

void SecureLink::fail(Failure why) noexcept {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  failure_ = why;
}

bool SecureLink::finish_connect() noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  SocketAddress peer;
  peer.size = sizeof peer.storage;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    connect_error_ = error;
    fail(Failure::kUnreachable);
    return false;
  }
  if (::getpeername(fd_, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) {
    return false;  // still under way
  }
  state_ = State::kHandshaking;
  return true;
}

void SecureLink::fail_handshake() noexcept {
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  ERR_clear_error();
  const bool alert = ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET;
  const bool binder = reason == SSL_R_BINDER_DOES_NOT_VERIFY;
  // The alert for a name that the other side does not accept: it continued without a key.
  if (alert && reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) {
    fail(Failure::kNotMember);
  } else if (binder || alert) {
    fail(Failure::kSecret);
  } else if (ended_) {
    fail(Failure::kUnreachable);
  } else {
    fail(Failure::kNotMember);
  }
}

SecureLink::State SecureLink::progress() noexcept {
  if (state_ == State::kConnecting && !finish_connect()) return state_;
  if (state_ != State::kHandshaking) return state_;
  drained_ = false;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) {
    // LINK-S1, LINK-S2: the pre-shared key was used; there is no other way in.
    if (SSL_session_reused(ssl_) != 1 || SSL_version(ssl_) != TLS1_3_VERSION) {
      fail(Failure::kNotMember);
    } else {
      state_ = State::kOpen;
    }
  } else {
    const int why = SSL_get_error(ssl_, done);
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) fail_handshake();
  }
  if (wire_at_ < wire_.size()) send_wire();  // also the alert that contains the reason
  return state_;
}

// --- link: bytes --------------------------------------------------------------------------------

void SecureLink::send_wire() noexcept {
  while (wire_at_ < wire_.size()) {
    const ssize_t sent =
        ::send(fd_, wire_.data() + wire_at_, wire_.size() - wire_at_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail(state_ == State::kOpen ? Failure::kClosed : Failure::kUnreachable);
      return;
    }
    wire_at_ += static_cast<std::size_t>(sent);
  }
  wire_.clear();
  wire_at_ = 0;
}

void SecureLink::flush() noexcept {
  while (state_ == State::kOpen) {
    if (wire_at_ < wire_.size()) send_wire();
    if (state_ != State::kOpen || wire_at_ < wire_.size() || out_at_ == out_.size()) break;
    if (++passes_ % kPassesPerKey == 0) SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
    std::size_t written = 0;
    ERR_clear_error();
    if (SSL_write_ex(ssl_, out_.data() + out_at_, std::min(out_.size() - out_at_, kWireMax),
                     &written) != 1) {
      fail(Failure::kClosed);
      break;
    }
    out_at_ += written;
  }
  if (out_at_ == out_.size()) {
    if (out_.capacity() > kSpareMax) out_ = {};
    out_.clear();
    out_at_ = 0;
  } else if (out_at_ > out_.size() / 2) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_at_));
    out_at_ = 0;
  }
}

void SecureLink::limit_unsent(unsigned bytes) noexcept {
  set_option(fd_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(bytes));
}

void SecureLink::make_room() {
  if (in_at_ == in_end_) {
    in_at_ = in_end_ = 0;
    if (in_.size() > kSpareMax) in_ = {};
  }
  if (in_.size() - in_end_ >= kReadStep / 4) return;
  if (in_at_ > 0) {
    std::memmove(in_.data(), in_.data() + in_at_, in_end_ - in_at_);
    in_end_ -= in_at_;
    in_at_ = 0;
  }
  // Grows with the bytes that arrived, not with the size that a frame's head announces.
  if (in_.size() - in_end_ < kReadStep) in_.resize(std::max(in_.size() * 2, in_end_ + kReadStep));
}

bool SecureLink::fill(std::size_t bytes_max) noexcept {
  std::size_t taken = 0;
  drained_ = false;
  while (state_ == State::kOpen && taken < bytes_max) {
    make_room();
    std::size_t got = 0;
    ERR_clear_error();
    if (SSL_read_ex(ssl_, in_.data() + in_end_, in_.size() - in_end_, &got) != 1) {
      if (SSL_get_error(ssl_, 0) != SSL_ERROR_WANT_READ || ended_) fail(Failure::kClosed);
      return false;
    }
    in_end_ += got;
    taken += got;
  }
  return state_ == State::kOpen;
}

}  // namespace crane::consensus
