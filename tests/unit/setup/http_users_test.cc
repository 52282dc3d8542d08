// SPDX-License-Identifier: Apache-2.0
// Who may use HTTP: the file of users, the certificate's files, and the addresses.
#include "runtime/setup/http_users.h"

#include <openssl/ssl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "runtime/setup/group_file.h"
#include "runtime/setup/http_access.h"
#include "tests/unit/setup/scratch.h"

namespace crane::setup {
namespace {

const std::string kHash(86, 'x');

// The message of a refused file of users; empty: it is accepted.
std::string refusal(const std::string& text) {
  std::vector<HttpUser> users;
  const Outcome read = parse_http_users(text, "users", users);
  if (read.ok()) return "";
  CHECK(status_of(read) == Status::kHttpFiles);
  return read.error().text;
}

bool holds(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  return text.find(part) != std::string::npos;
}

std::string problem(const std::vector<std::string>& listen, const NodeOptions& options) {
  const auto found = http_problem(listen, options, HttpForm::kFile);
  return found ? found->key + ": " + found->cause + "; " + found->advice : "";
}

}  // namespace

TEST_CASE("a file of users has comments, names, roles and hashes") {
  std::vector<HttpUser> users;
  REQUIRE(parse_http_users("# who\n\n  ada:operator:$6$salt$" + kHash +
                               "\r\nprom-1:read:$6$rounds=10000$salt$" + kHash + "\n",
                           "users", users));
  REQUIRE(users.size() == 2);
  CHECK(users[0].name == "ada");
  CHECK(users[0].role == HttpRole::kOperator);
  CHECK(users[0].hash == "$6$salt$" + kHash);
  CHECK(users[1].role == HttpRole::kRead);
}

TEST_CASE("a wrong line of the users is refused with its number and the remedy") {
  const std::string good = "a:read:$6$s$" + kHash + "\n";
  CHECK(refusal(good).empty());
  CHECK(
      holds(refusal(good + "# x\nb:opertor:$6$s$" + kHash), "users:3: the role \"opertor\" of b"));
  CHECK(holds(refusal("b:opertor:$6$s$" + kHash), "did you mean operator?"));
  CHECK(holds(refusal("b.c:read:$6$s$" + kHash), "users:1: \"b.c\" is not a name"));
  CHECK(holds(refusal(":read:$6$s$" + kHash), "is not a name"));
  CHECK(holds(refusal("b:read:secret"), "its hash is not one of SHA-512"));
  CHECK(holds(refusal("b:read:secret"), "openssl passwd -6"));
  CHECK(holds(refusal("b:read:$y$j9T$x$y"), "its hash is not one of SHA-512"));
  CHECK(holds(refusal("b:read:$6$s$abc"), "its hash is not whole"));
  CHECK(holds(refusal("b:read:$6$rounds=10001$s$" + kHash), "more than 10000 rounds"));
  CHECK(holds(refusal("b:read:$6$rounds=x$s$" + kHash), "no number of rounds"));
  CHECK(holds(refusal(good + good), "users:2: a is there twice"));
  CHECK(holds(refusal("# nothing\n"), "it names no user"));
  std::string many;
  for (int i = 0; i <= 64; ++i) many += "u" + std::to_string(i) + ":read:$6$s$" + kHash + "\n";
  CHECK(holds(refusal(many), "users:65: there are more than 64 users"));
}

TEST_CASE("a message about the users never shows a hash") {
  for (const std::string& line :
       {"a:bad:$6$s$" + kHash, "a:read:$6$s$" + kHash + "y", "a:read:$5$s$" + kHash}) {
    CAPTURE(line);
    CHECK_FALSE(refusal(line).empty());
    CHECK(refusal(line).find("xxxxxxxx") == std::string::npos);
  }
}

TEST_CASE("users that others can read or change are refused") {
  const Scratch scratch;
  const std::string text = "a:read:$6$s$" + kHash + "\n";
  std::vector<HttpUser> users;
  CHECK(read_http_users(scratch.file("users", text, 0600), users));
  CHECK(read_http_users(scratch.file("users", text, 0640), users));
  for (const mode_t mode : {0644, 0604, 0660, 0602}) {
    const Outcome read = read_http_users(scratch.file("users", text, mode), users);
    REQUIRE_FALSE(read);
    CHECK(holds(read.error().text, "others may read it"));
    CHECK(status_of(read) == Status::kHttpFiles);
  }
  CHECK_FALSE(read_http_users(scratch.path, users));
  CHECK_FALSE(read_http_users(scratch.path + "/none", users));
  CHECK_FALSE(read_http_users(scratch.file("large", std::string(300'000, '#'), 0600), users));
}

TEST_CASE("a certificate without its key, or with another's, is refused") {
  const Scratch scratch;
  const auto make = [&](const std::string& name) {
    const std::string words =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        "-days 2 -subj /CN=crane -keyout " +
        scratch.path + "/" + name + ".key -out " + scratch.path + "/" + name + ".crt 2>/dev/null";
    REQUIRE(std::system(words.c_str()) == 0);
  };
  make("a");
  make("b");
  const auto place = [&](const char* name) { return scratch.path + "/" + name; };
  HttpTls tls;
  REQUIRE(read_http_tls(place("a.crt"), place("a.key"), tls));
  CHECK(tls.context != nullptr);
  CHECK(SSL_CTX_get_min_proto_version(tls.context.get()) == TLS1_2_VERSION);
  CHECK(tls.expires_unix_s > std::time(nullptr) + 86'400);
  const auto text = [&](const std::string& certificate, const std::string& key) {
    HttpTls other;
    const Outcome read = read_http_tls(certificate, key, other);
    CHECK(status_of(read) == Status::kHttpFiles);
    CHECK(other.context == nullptr);
    return read.error().text;
  };
  CHECK(holds(text(place("a.crt"), place("b.key")), "name the key of " + place("a.crt")));
  CHECK(holds(text(place("none"), place("a.key")), place("none")));
  CHECK(holds(text(place("a.crt"), place("none")), place("none")));
  CHECK(holds(text(place("a.crt"), place("a.crt")), "others may read it"));
  REQUIRE(chmod(place("a.crt").c_str(), 0600) == 0);
  CHECK(holds(text(place("a.crt"), place("a.crt")), "a private key in PEM"));
  CHECK(holds(text(place("a.key"), place("a.key")), "in PEM"));
  REQUIRE(chmod(place("a.key").c_str(), 0644) == 0);
  CHECK(holds(text(place("a.crt"), place("a.key")), "(mode 0644)"));
}

TEST_CASE("an address that other machines reach needs users and TLS, or the word open") {
  NodeOptions none, users, all, open;
  users.http_users = all.http_users = "/u";
  all.http_certificate = "/c";
  all.http_key = "/k";
  open.http_open = true;
  for (const char* here : {"9100", "127.0.0.1:9100", "127.8.8.8:9100", "[::1]:9100"}) {
    CAPTURE(here);
    CHECK(problem({here}, none).empty());
    CHECK(problem({here}, users).empty());
  }
  for (const char* there : {"0.0.0.0:9100", "10.0.0.1:9100", "[::]:9100", "[2001:db8::1]:9100"}) {
    CAPTURE(there);
    CHECK(
        holds(problem({"", "9100", there}, none), "listen: other machines reach it, and no users"));
    CHECK(holds(problem({there}, none), "[http] open = true"));
    CHECK(holds(problem({there}, users), "passwords would be sent unencrypted"));
    CHECK(problem({there}, all).empty());
    CHECK(problem({there}, open).empty());
    CHECK(holds(check_http_access(there, none).error().text, "--http-users"));
  }
  CHECK(holds(problem({""}, users), "users: needs the address"));
  CHECK(holds(problem({""}, open), "open: needs the address"));
  all.http_key.clear();
  CHECK(holds(problem({"9100"}, all), "certificate: needs [http] key"));
  all.http_key = "k";
  CHECK(holds(problem({"9100"}, all), "key: is not an absolute path"));
}

TEST_CASE("the group's file names the line of an address without protection") {
  GroupFile file;
  const std::string head =
      "[group]\nname = \"a\"\nsecret_file = \"/s\"\n[[replica]]\naddress = \"127.0.0.1\"\nport = "
      "1\n";
  const std::string tail = "[server]\ncommand = [\"x\"]\n[http]\n";
  const auto text = [&](const std::string& replica, const std::string& http) {
    GroupFile read;
    const Outcome p = parse_group_file(head + replica + tail + http, "g.toml", read);
    return p.ok() ? std::string() : p.error().text;
  };
  CHECK(text("", "listen = \"9100\"\n").empty());
  CHECK(holds(text("", "listen = \"0.0.0.0:9100\"\n"),
              "g.toml:10: [http] listen is \"0.0.0.0:9100\": other machines reach it"));
  CHECK(text("", "listen = \"0.0.0.0:9100\"\nopen = true\n").empty());
  CHECK(holds(text("http = \"10.0.0.1:9100\"\n", ""), "is \"10.0.0.1:9100\": other machines"));
  CHECK(holds(text("", "listen = \"9100\"\nuser = \"/u\"\n"), "did you mean users?"));
}

}  // namespace crane::setup
