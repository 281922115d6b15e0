-- Market history. It is shared by all customers, so there is no customer_id.
-- Moments are whole minutes since 1970 (UTC), in columns that are named for what begins then.

create table markets (
  id smallint primary key,
  market text not null constraint markets_market unique,
  -- Simulated and real prices are never mixed in a market; null while it has none.
  source text constraint markets_source check (source in ('SIMULATED', 'REAL'))
);

insert into markets (id, market)
select ordinality, market
from unnest(array[
  'ETHEUR', 'ETHUSD', 'BTCEUR', 'BTCUSD', 'PAXGUSD', 'BCHUSD', 'LTCUSD', 'ETHGBP', 'BTCGBP', 'LTCGBP', 'BCHGBP',
  'USDPUSD', 'ETHBRL', 'BTCBRL', 'LTCBRL', 'BCHBRL', 'USDPGBP', 'USDPBRL', 'LINKUSD', 'MATICUSD', 'AAVEUSD',
  'UNIUSD', 'AAVEMXN', 'BCHMXN', 'BTCMXN', 'ETHMXN', 'LTCMXN', 'USDPMXN', 'AAVEEUR', 'BCHEUR', 'LTCEUR', 'LINKEUR',
  'MATICEUR', 'PAXGEUR', 'SOLEUR', 'USDPEUR', 'UNIEUR', 'PYUSDEUR', 'PYUSDGBP'
]) with ordinality as spec (market, ordinality);

-- What is known of each minute. There are millions of rows: the columns are in the order that wastes no bytes, and
-- there is no foreign key to check, because who writes has locked the market.
create table price_minutes (
  market_id smallint not null,
  -- Of two records of a minute the one that covers less time counts, then the later in the minute, then the newer.
  covers_minutes smallint not null,
  minute integer not null,
  second smallint not null,
  price numeric not null constraint price_minutes_price check (price > 0),
  primary key (market_id, minute)
);

-- The roll-ups: the sum and the number of the minutes that there are in each increment, so that the average is exact.
create table price_points (
  market_id smallint not null,
  increment_minutes integer not null,
  starts_at integer not null,
  minutes integer not null,
  sum numeric not null,
  -- In a day, and in four weeks: how many points of each increment up to a day begin in it, finest first. By these,
  -- a range of millions of points is counted, and a page deep in it found, without reading them.
  counts integer[],
  primary key (market_id, increment_minutes, starts_at)
);

-- How far each file was imported: a file is known by its content, and by how it was read.
create table price_imports (
  market_id smallint not null references markets,
  digest bytea not null,
  name text not null,
  records bigint not null,
  finished boolean not null,
  updated_at timestamptz not null,
  primary key (market_id, digest)
);
