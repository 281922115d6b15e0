#!/bin/bash
# Runs once, on an empty data folder: the role that owns the database and migrates it, and the service's, which owns
# nothing and gets its privileges from `bursar migrate`. Neither is a superuser, who would feel no privilege.
set -euo pipefail
psql --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$DATABASE_PASSWORD" --set=owner_password="$DATABASE_OWNER_PASSWORD" \
  --username="$POSTGRES_USER" --dbname=postgres <<'SQL'
create role bursar_owner login password :'owner_password';
create role bursar login password :'password';
create database bursar owner bursar_owner template template0 encoding 'UTF8' locale 'C';
SQL
