-- The history of a withdrawal shows the quote that it used.
create index fee_quotes_of_transfer on fee_quotes (customer_id, transfer_id) where transfer_id is not null;
