-- Kept bytes whose nonce another transaction used can never be mined: its hash. The withdrawal is signed anew only after the chain has
-- shown that transaction once more, so this is a hint and no proof.
alter table network_transactions add column used_by text;
