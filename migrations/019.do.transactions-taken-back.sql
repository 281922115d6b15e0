-- What the hot wallet of an EVM network has made and that has ended, newest first. A deep reorganisation may take some of it
-- back: then its kept bytes are broadcast again, and they are found among the newest.
create index broadcasts_ended on broadcasts (network, created_at)
  where state = 'DONE' and raw_transaction is not null
    and network in ('ETHEREUM', 'POLYGON_POS', 'BASE', 'ARBITRUM_ONE', 'INK', 'XLAYER');
create index evm_sweeps_ended on evm_sweeps (network, created_at) where kind = 'TOP_UP' and state in ('DONE', 'FAILED');
