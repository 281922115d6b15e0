-- Quotes that no withdrawal has used: a customer may have so many, and expired ones are deleted.
create index fee_quotes_open on fee_quotes (customer_id, expires_at) where transfer_id is null;
create index fee_quotes_expired on fee_quotes (expires_at) where transfer_id is null;
