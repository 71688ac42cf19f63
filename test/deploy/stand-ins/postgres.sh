# Makes a database like the image of Postgres, and becomes the server.
set -e
data=/var/lib/postgresql/data
bin=$(echo /usr/lib/postgresql/*/bin)
mkdir -p "$data" && chown postgres "$data"
mkdir -p /run/postgresql && chown postgres /run/postgresql
if [ ! -e "$data/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /password && chown postgres /password
  setpriv --reuid=postgres --clear-groups "$bin/initdb" --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/password --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
  echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
  echo "create database $POSTGRES_USER" | setpriv --reuid=postgres --clear-groups "$bin/postgres" --single -D "$data" postgres
fi
exec setpriv --reuid=postgres --clear-groups "$bin/postgres" -D "$data" -c 'listen_addresses=*'
