-- The bank's statements of the platform's account, and their lines. Statements follow each other without a gap: `position` counts
-- them. A line whose ordinal is above `lines` of its statement, which the MAC covers, is none. Rows are only ever added.
create table bank_statements (
  position integer not null,
  format text not null,
  account text not null,
  currency text not null,
  statement_id text not null,
  number integer,
  date date not null,
  opening numeric not null,
  closing numeric not null,
  lines integer not null,
  -- SHA-256 of all that the statement says.
  content_hash text not null,
  imported_by text not null,
  imported_at timestamptz not null,
  sealed_at timestamptz,
  mac text,
  primary key (position),
  constraint bank_statements_content unique (content_hash),
  constraint bank_statements_position check (position > 0)
);

create table bank_lines (
  position integer not null,
  ordinal integer not null,
  -- Derived from the hash of the statement and the ordinal.
  id uuid not null,
  date date not null,
  amount numeric not null,
  -- The bank's reference as bank_wires has it; of a line without one, made from its id.
  bank_reference text not null,
  customer_reference text,
  text text not null,
  code text not null,
  is_reversal boolean not null,
  is_return boolean not null,
  primary key (position, ordinal),
  constraint bank_lines_id unique (id),
  constraint bank_lines_ordinal check (ordinal > 0),
  constraint bank_lines_amount check (amount <> 0)
);

-- Which transfer a line is. A transfer is one line.
create table bank_matches (
  line_id uuid not null,
  transfer_id uuid not null,
  kind text not null,
  rule text not null,
  matched_by text not null,
  matched_at timestamptz not null,
  primary key (line_id),
  constraint bank_matches_transfer unique (transfer_id),
  constraint bank_matches_kind check (kind in ('DEPOSIT', 'SENT', 'RETURN', 'RECORDED')),
  constraint bank_matches_rule check (rule in ('PERSON', 'EXACT', 'REFERENCE'))
);
