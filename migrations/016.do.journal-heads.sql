-- The last line of the signer's journal when it last answered for a wallet (docs/guides/signer.md, "Its journal").
alter table evm_nonces add column if not exists journal_head text;
