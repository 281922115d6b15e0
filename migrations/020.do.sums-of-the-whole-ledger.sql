-- The sums of all entries to the end of each closed day, as rows of day_sums of an id that nobody has (src/money/books/book.ts).
-- A report of the whole ledger then costs what its days do, however many customers there are.
insert into day_sums (customer_id, day, account, asset, debit, credit)
select 'ffffffff-ffff-ffff-ffff-ffffffffffff', day, account, asset, sum(debit) over days, sum(credit) over days
from (
  select day, account, asset, sum(debit) as debit, sum(credit) as credit
  from (
    select day, account, asset, debit - lag(debit, 1, 0::numeric) over own as debit, credit - lag(credit, 1, 0::numeric) over own as credit
    from day_sums
    window own as (partition by customer_id, account, asset order by day)
  ) moved
  group by day, account, asset
) of_day
window days as (partition by account, asset order by day);
