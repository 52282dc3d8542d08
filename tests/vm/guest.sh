#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside the virtual machine: guest.sh <share> <directory>.  Makes three soft-RoCE devices on
# three interfaces of one bridge, so that packets really travel between them.  Then runs the command
# in <share>/command.  Output and status go to files, because the kernel uses the console.
share=$1
cd "$2" || exit 1
exec > "$share/output" 2>&1 < /dev/null
export PATH=/usr/sbin:/usr/bin:/sbin:/bin CRANE_VM_SHARE=$share TMPDIR=/tmp

devices() {
  modprobe -a rdma_rxe ib_uverbs veth bridge || return 1
  ip link set lo up
  ip link add br0 type bridge
  ip link set br0 up
  local i
  for i in 1 2 3; do
    ip link add h$i type veth peer name p$i
    ip link set p$i master br0 up
    ip addr add 10.9.0.$i/24 dev h$i
    ip link set h$i up
    rdma link add rxe$i type rxe netdev h$i || return 1
  done
  # Routes the machine's own addresses over the wire, because lo carries no RDMA.
  for i in 1 2 3; do
    sysctl -qw net.ipv4.conf.h$i.accept_local=1 net.ipv4.conf.h$i.rp_filter=0 \
      net.ipv4.conf.h$i.arp_ignore=1 net.ipv4.conf.h$i.arp_announce=2
    ip rule add pref 10$i iif h$i lookup local
    ip rule add pref 20$i oif h$i lookup 10$i
    ip rule add pref 21$i from 10.9.0.$i lookup 10$i
    ip route add 10.9.0.0/24 dev h$i src 10.9.0.$i table 10$i
    ip route add local 10.9.0.$i dev h$i table 10$i
  done
  sysctl -qw net.ipv4.conf.all.rp_filter=0
  ip rule add pref 1000 lookup local
  ip rule del pref 0
  timeout 10 bash -c 'until [ "$(rdma link | grep -c "state ACTIVE")" = 3 ] && [ "$(cat \
    /sys/class/infiniband/rxe*/ports/1/gids/1 | grep -c ffff:0a09)" = 3 ]; do sleep 0.1; done'
}

ulimit -l unlimited
if devices; then
  bash -c "$(cat "$share/command")"
  echo $? > "$share/status"
else
  echo "vm: no soft-RoCE devices in the guest"
  echo 125 > "$share/status"
fi
