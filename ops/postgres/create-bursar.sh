#!/bin/bash
# Runs once, on an empty data folder: an ordinary role, which owns the database. Entries are append-only by privilege,
# which a superuser would not feel.
set -euo pipefail
psql --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$DATABASE_PASSWORD" --username="$POSTGRES_USER" --dbname=postgres <<'SQL'
create role bursar login password :'password';
create database bursar owner bursar template template0 encoding 'UTF8' locale 'C';
SQL
