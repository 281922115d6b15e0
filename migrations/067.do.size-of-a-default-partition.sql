-- As migration 053 made it, but on a distributed database it measures the shards of the default partition alone, without their
-- indexes. citus_shards measured those of all tables: 90 ms on a quiet machine, and seconds on a busy one.
create or replace function keep_partitions(parent text, kept_days integer) returns text
language plpgsql security definer
set search_path = pg_catalog, public, pg_temp
set lock_timeout = '100ms'
as $$
declare
  weeks_ahead constant integer := 4;
  moved_max constant integer := 10000;
  -- Attaching a partition reads the whole default partition, and all writers wait.
  default_bytes_max constant bigint := 32 * 1024 * 1024;
  -- The smallest id of a moment is its milliseconds in 12 hex digits, and then this (src/db/ids.ts, firstIdAt).
  rest_of_id constant text := '70000000000000000000';
  partition_key text := case parent when 'webhook_deliveries' then 'event_id' else 'id' end;
  this_week timestamp := date_trunc('week', clock_timestamp() at time zone 'UTC');
  oldest_kept timestamp;
  starts timestamp;
  name text;
  first_id uuid;
  end_id uuid;
  waiting integer;
  default_bytes bigint;
begin
  if parent is null or parent not in ('events', 'webhook_deliveries', 'webhook_attempts') then
    raise exception 'keep_partitions: % has no weekly partitions', coalesce(parent, 'null')
      using errcode = 'invalid_parameter_value';
  end if;
  if kept_days is null or kept_days < 7 then
    raise exception 'keep_partitions: kept_days must be 7 or more' using errcode = 'invalid_parameter_value';
  end if;
  -- One process at a time; the others have nothing to do.
  if not pg_try_advisory_xact_lock(7311002) then
    return null;
  end if;

  default_bytes := pg_relation_size(format('public.%I', parent || '_default'));
  if to_regclass('pg_catalog.pg_dist_partition') is not null then
    -- One connection to each node, because partitions are made on all shards of a node in one transaction.
    perform set_config('citus.multi_shard_modify_mode', 'sequential', true);
    -- With Citus, but not distributed, the table is measured as above.
    execute 'select coalesce((select citus_relation_size(logicalrelid) from pg_dist_partition where logicalrelid = $1), $2)'
      into default_bytes using format('public.%I', parent || '_default')::regclass, default_bytes;
  end if;

  for week in 0 .. weeks_ahead loop
    exit when default_bytes > default_bytes_max;
    starts := this_week + week * interval '7 days';
    name := parent || '_' || to_char(starts, 'YYYYMMDD');
    continue when to_regclass(format('public.%I', name)) is not null;
    first_id := (lpad(to_hex((extract(epoch from starts) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
    end_id := (lpad(to_hex((extract(epoch from starts + interval '7 days') * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
    execute format('select count(*) from (select 1 from public.%I where %I >= $1 and %2$I < $2 limit $3) r',
                   parent || '_default', partition_key)
      into waiting using first_id, end_id, moved_max + 1;
    -- Moving more would stop writers for too long. The default partition keeps these rows until they are too old.
    continue when waiting > moved_max;
    -- A writer that waits for the default partition's lock while another partition takes its rows is refused then. Rows of
    -- these weeks may be written now, so writers wait before they choose a partition.
    if week <= 1 then
      execute format('lock table public.%I in share row exclusive mode', parent);
    end if;
    execute format('create table public.%I (like public.%I including all)', name, parent);
    -- Attaching takes this lock, too. Taken first, no writer adds a row between the copy and the deletion.
    execute format('lock table public.%I in access exclusive mode', parent || '_default');
    execute format('insert into public.%I select * from public.%I where %I >= $1 and %3$I < $2',
                   name, parent || '_default', partition_key) using first_id, end_id;
    execute format('delete from public.%I where %I >= $1 and %2$I < $2', parent || '_default', partition_key)
      using first_id, end_id;
    execute format('alter table public.%I attach partition public.%I for values from (%L) to (%L)',
                   parent, name, first_id, end_id);
    return 'made ' || name;
  end loop;

  -- The history ends an hour before its partition is dropped, because bursar verify reads its end before the events.
  oldest_kept := date_trunc('week', clock_timestamp() at time zone 'UTC' - kept_days * interval '1 day');
  if parent = 'events' then
    update event_history set complete_from = oldest_kept at time zone 'UTC'
    where complete_from < oldest_kept at time zone 'UTC';
  end if;
  oldest_kept := date_trunc('week', clock_timestamp() at time zone 'UTC' - kept_days * interval '1 day' - interval '1 hour');
  select c.relname into name
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = format('public.%I', parent)::regclass and c.relname ~ ('^' || parent || '_\d{8}$')
    and to_timestamp(right(c.relname, 8), 'YYYYMMDD')::timestamp < oldest_kept
  order by c.relname
  limit 1;
  if found then
    execute format('drop table public.%I', name);
    return 'dropped ' || name;
  end if;

  -- Old rows of the default partition, an hour of them at a time.
  execute format('select %I from public.%I where %1$I < $1 order by 1 limit 1', partition_key, parent || '_default')
    into first_id
    using (lpad(to_hex((extract(epoch from oldest_kept) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
  if first_id is null then
    return null;
  end if;
  starts := least(oldest_kept, to_timestamp(('x' || left(replace(first_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
                                 at time zone 'UTC' + interval '1 hour');
  end_id := (lpad(to_hex((extract(epoch from starts) * 1000)::bigint), 12, '0') || rest_of_id)::uuid;
  execute format('delete from public.%I where %I < $1', parent || '_default', partition_key) using end_id;
  return 'deleted old rows of ' || parent || '_default';
end
$$;
