-- While a worker asks a network's node about a withdrawal, the withdrawal is leased: no other worker asks about it until
-- the lease is over, and no transaction of the database is open meanwhile.
alter table broadcasts add column leased_until timestamptz;
