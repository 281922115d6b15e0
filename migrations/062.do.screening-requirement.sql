-- Since when payments of this deployment must be screened. The first process with the settings of screening makes the row; only
-- the schema's owner removes it. A process without these settings then neither signs nor credits.
create table screening_requirement (
  id smallint primary key constraint screening_requirement_one_row check (id = 1),
  since timestamptz not null
);
-- Where payments were screened in the last days, they must be from now on.
insert into screening_requirement (id, since)
select 1, clock_timestamp()
where exists (select 1 from screenings where created_at > clock_timestamp() - interval '7 days');
