#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  rm -f /etc/systemd/system/multi-user.target.wants/gateway-server.service \
    /etc/systemd/system/multi-user.target.wants/gateway-agent@*.service
  # Settings with the encryption key. What the administrator and the gateway added stays.
  rm -f /etc/gateway/gateway.json
  for folder in /etc/gateway /var/lib/gateway; do
    if [ -d "$folder" ]; then rmdir --ignore-fail-on-non-empty "$folder"; fi
  done
fi
