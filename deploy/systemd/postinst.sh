#!/bin/sh
set -e
systemd-sysusers gateway.conf
chgrp gateway /etc/gateway
file=/etc/gateway/gateway.json
if [ ! -e "$file" ]; then
  key=$(head -c 32 /dev/urandom | base64)
  (umask 077 && sed "s|\"encryption_key\": \"\"|\"encryption_key\": \"$key\"|" /usr/share/gateway/gateway.json > "$file")
  chgrp gateway "$file"
  chmod 0640 "$file"
fi
# Services are restarted by hand, after `gateway migrate up`.
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
