-- The metrics read the age of the oldest statement that is not generated yet.
create index statements_initiated on statements (customer_id, created_at) where status = 'STATEMENT_STATUS_INITIATED';
