#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that Crane needs, and nothing else: what is there already is left
# alone, so a second run does nothing. Usage: install_deps.sh [demo|accept]: with `demo`, only what
# building the programs and `make demo` need; with `accept`, what `make accept` needs, too. Exit: 0
# all there, 3 packages are missing and we are not root (they are named), otherwise apt's status.
set -eu

PROGRAMS="build-essential cmake ninja-build pkg-config python3 binutils libevent-dev libfmt-dev
  libspdlog-dev prometheus-cpp-dev
  libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libisal-dev libboost-dev libdb5.3-dev
  libssl-dev libibverbs-dev libzstd-dev libnetfilter-queue-dev libbpf-dev iptables
  lxc lxc-dev util-linux
  procps iproute2"
DEMO="apache2 apache2-utils curl ca-certificates openssl redis-server redis-tools"
TESTS="catch2 zstd librapidcheck-dev libbenchmark-dev spin clang-format-14 clang-14"
# The virtual machine with soft-RoCE of tests/vm; it fetches a kernel and virtme-ng by itself.
MACHINE="qemu-system-x86 ibverbs-providers python3-venv kmod busybox-static"
SERVERS="redis-server redis-tools memcached libmemcached-tools"
# The server matrix (tests/e2e/server_*.py), with clients that load each.
MATRIX="nginx-light php8.2-cgi php8.2-fpm civetweb gerbera slapd ldap-utils clamav-daemon clamdscan
  mariadb-server mariadb-client sysbench postgresql-15"
# Clients whose connections live through changes of the leader (tests/e2e/connections.py).
CLIENTS="wrk nghttp2-client"
# Plots of the measuring programs (eval).
PLOTS="python3-matplotlib"
# ssh and sshd: tests/e2e/hosts_ssh.py runs its own, in network namespaces.
# mkfs.xfs: tests/e2e/file_systems.py puts a replica on xfs.
# chromium: tests/e2e/page.py looks at a node's page.
# prometheus: tests/e2e/monitoring.py, which has promtool and a Prometheus read a node's metrics.
TOOLS="openssh-client openssh-server xfsprogs chromium prometheus"
# Servers that have no profile (tests/e2e/unprepared.py), and their clients.
UNPREPARED="vsftpd dovecot-imapd dnsmasq-base bind9-dnsutils curl"
# More of them (tests/e2e/ecosystems.py); javac compiles the Java server.
ECOSYSTEMS="gunicorn nodejs openjdk-17-jdk-headless mosquitto mosquitto-clients varnish"
# Servers that talk to others (tests/e2e/stories.py).
STORIES="haproxy squid tinyproxy stunnel4 php8.2-cli php8.2-mysql"
# And many more, only for `make accept` (tests/e2e/accept_*.py), with clients for them.
ACCEPT="lighttpd uwsgi-plugin-python3 beanstalkd ruby ruby-webrick puma erlang-base
  ngircd rabbitmq-server caddy nats-server etcd-server etcd-client netcat-openbsd
  swaks amqp-tools zookeeper libslf4j-java python3-kazoo"
# exim4 would take the place of a mail server that the machine has.
[ -e /usr/sbin/sendmail ] || ACCEPT="$ACCEPT exim4-daemon-light"
# Crane's own packages (tests/e2e/installed.py), and a bare Debian for them (production.py).
PACKAGING="debhelper lintian man-db shellcheck zsh debootstrap"
# Crane on a fleet (tests/e2e/fleet.py): ocf-tester, xmllint, and the image with --full.
FLEET="resource-agents-dev libxml2-utils buildah"
# For Porcupine, which judges histories of clients (tests/linear).
JUDGE="golang-go"

ALL="$PROGRAMS $DEMO $TESTS $SERVERS $MATRIX $CLIENTS $TOOLS $UNPREPARED $ECOSYSTEMS $STORIES
  $JUDGE $PACKAGING $FLEET $MACHINE $PLOTS"

case "${1:-all}" in
  demo) wanted="$PROGRAMS $DEMO" ;;
  all) wanted="$ALL" ;;
  accept) wanted="$ALL $ACCEPT" ;;
  *) echo "usage: $0 [demo|accept]" >&2; exit 2 ;;
esac

missing=
for package in $wanted; do
  case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
    installed) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "install_deps: missing packages:$missing; run as root: tests/install_deps.sh${1:+ $1}" >&2
  exit 3
fi

# Package scripts must not start the stock servers (apache would take port 80): policy-rc.d says
# no while we install. One that is there already is put back afterwards.
policy=/usr/sbin/policy-rc.d
saved=
if [ -e "$policy" ]; then
  saved="$policy.before-crane"
  cp -p "$policy" "$saved"
fi
restore() {
  if [ -n "$saved" ]; then mv -f "$saved" "$policy"; else rm -f "$policy"; fi
}
trap restore EXIT
trap 'exit 130' INT TERM
printf '#!/bin/sh\nexit 101\n' > "$policy"
chmod 755 "$policy"

# No cluster of Debian's own for postgres: the scenarios make theirs.
case " $missing " in
  *" postgresql-15 "*)
    cluster=/etc/postgresql-common/createcluster.conf
    mkdir -p "${cluster%/*}"
    [ -e "$cluster" ] || echo "create_main_cluster = false" > "$cluster"
    ;;
esac

export DEBIAN_FRONTEND=noninteractive
echo "install_deps: installing:$missing"
apt-get -q update
# shellcheck disable=SC2086
apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 install $missing

# systemd would start them at the next boot: they are here to be run under Crane.
if command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
  for pair in apache2=apache2 redis-server=redis-server memcached=memcached lxc=lxc-net \
    nginx-light=nginx php8.2-fpm=php8.2-fpm civetweb=civetweb gerbera=gerbera slapd=slapd \
    clamav-daemon=clamav-daemon clamav-daemon=clamav-freshclam mariadb-server=mariadb \
    vsftpd=vsftpd dovecot-imapd=dovecot mosquitto=mosquitto varnish=varnish varnish=varnishncsa \
    postgresql-15=postgresql lighttpd=lighttpd beanstalkd=beanstalkd.socket \
    beanstalkd=beanstalkd erlang-base=epmd.socket erlang-base=epmd ngircd=ngircd \
    exim4-daemon-light=exim4 squid=squid haproxy=haproxy tinyproxy=tinyproxy \
    stunnel4=stunnel4 rabbitmq-server=rabbitmq-server caddy=caddy \
    nats-server=nats-server prometheus=prometheus etcd-server=etcd \
    resource-agents-dev=logd; do
    case " $missing " in
      *" ${pair%=*} "*) systemctl disable --now "${pair#*=}" || true ;;
    esac
  done
fi

# An unrequested sshd must not start at boot, under any init.
case " $missing " in
  *" openssh-server "*)
    if command -v systemctl >/dev/null 2>&1; then systemctl disable ssh || true; fi
    if command -v update-rc.d >/dev/null 2>&1; then update-rc.d ssh disable || true; fi
    ;;
esac
